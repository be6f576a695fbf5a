"""`intersession serve`: the gateway as a process of its own. Needs the extra `gateway`."""

from intersession.gateway.process.alone import debug_alone
from intersession.gateway.process.following import following
from intersession.gateway.process.serve import given_config, refuse_open_door, serve, with_token
from intersession.gateway.process.server import listen
from intersession.gateway.process.startup import headline, startup_lines

__all__ = [
    "debug_alone",
    "following",
    "given_config",
    "headline",
    "listen",
    "refuse_open_door",
    "serve",
    "startup_lines",
    "with_token",
]

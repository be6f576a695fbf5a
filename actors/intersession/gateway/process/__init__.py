"""`intersession serve`: the gateway as a process of its own. Needs the extra `gateway`."""

from intersession.gateway.process.configured_agents import configured_agents
from intersession.gateway.process.serve import given_config, serve, with_token

__all__ = ["configured_agents", "given_config", "serve", "with_token"]

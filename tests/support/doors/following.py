"""A door beside the host that writes a log: a system that follows it, with a gateway of its own, in the same process."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from intersession import SessionSystem
from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.process.following import following
from intersession.gateway.process.mcp_mount import MCP_PATH, mcp_mount
from intersession_actors.running.runtime.clock import Clock
from intersession_events.stores.portable.log import PortableLog
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.running import merged

DOOR: dict[str, Any] = {
    "name": "front",
    "token": "the-token-of-a-door",
    "actAs": ["*"],
    "scopes": ["door", "operator.admin"],
}


def with_door(*configs: Mapping[str, Any], **limits: Any) -> dict[str, Any]:
    """Return a configuration with the credential of a door."""
    config = merged(GATEWAY, *configs)
    credentials = config["gateway"]["auth"]["credentials"]
    return merged(config, {"gateway": {"auth": {"credentials": [*credentials, DOOR | limits]}}})


class Front(NamedTuple):
    """A door: its system, and its gateway."""

    system: SessionSystem
    live: LiveGateway


@contextmanager
def writing(system: SessionSystem) -> Generator[LiveGateway]:
    """Serve a system's gateway, where the log says it is."""
    with LiveGateway(system) as live:
        assert isinstance(system.log, PortableLog)
        system.log.announce_gateway(live.address)
        yield live


@contextmanager
def door(
    url: str, config: Mapping[str, Any], *, clock: Clock | None = None, mcp: bool = False
) -> Generator[Front]:
    """Open a door to a log, with its `/mcp` if that is asked for: it takes its time to import."""
    with following(url, config=dict(config), clock=clock) as system:
        credentials = Credentials(lambda: system.config.gateway.auth)
        mount = mcp_mount(system, credentials) if mcp else None
        mounts = {} if mount is None else {MCP_PATH: mount}
        with LiveGateway(system, mounts=mounts, credentials=credentials) as live:
            yield Front(system, live)

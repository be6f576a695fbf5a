"""`intersession mcp`: a session's tools for an MCP client, over standard input and output."""

import os
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from cyclopts import Parameter

from intersession.cli.host import hosted
from intersession.cli.shell import (
    Agents,
    Answer,
    Common,
    ConfigFile,
    Store,
)
from intersession_actors.config import load_config
from intersession_actors.host import imported
from intersession_actors.service import resolve_target
from intersession_actors.system import SessionSystem
from intersession_events.errors import StoreLocked, StoreUnavailable
from intersession_events.stores import holder_of

TOKEN: Final = "INTERSESSION_GATEWAY_TOKEN"  # noqa: S105 - where one is


class _Elsewhere(NamedTuple):
    """The gateway of the log's host."""

    address: str
    token: str


def mcp(
    *,
    as_session: Annotated[
        str, Parameter(help="The session that the client is: its key in any form, or its session id.")
    ],
    agents: Agents = None,
    config: ConfigFile = None,
    store: Store = None,
) -> Answer:
    """Serve the session tools to an MCP client that starts this command.

    The client sees and reaches what its session may, and no more. The command is the log's writer until the client
    closes its end; messages to agents that are not here wait for a host that has them. Where the log has a host with a
    gateway, its tools are served, with the token in $INTERSESSION_GATEWAY_TOKEN, else the configuration's.
    """
    stdio = imported("intersession.mcp.stdio", what="intersession mcp", library="the MCP SDK", extra="mcp")
    with stdio.claimed_wire() as wire:
        match _host(Common(store=store), agents, config):
            case _Elsewhere(address, token):
                relay = imported(
                    "intersession.mcp.relay", what="intersession mcp", library="the MCP SDK", extra="mcp"
                )
                relay.relay_stdio(address, token, as_session, wire)
            case system:
                with system:
                    reader = system.service.reader
                    found = resolve_target(
                        reader, reader.requester(None), as_session, "send", field="--as-session"
                    )
                    stdio.serve_stdio(system, str(found.key), wire)
    return Answer(None, lambda _: None)


def _host(common: Common, agents: str | None, config: Path | None) -> SessionSystem | _Elsewhere:
    """Become the log's host, or say where its gateway is.

    Raises:
        StoreLocked: it has a host without a gateway.
        StoreUnavailable: there is no token for its gateway.
    """
    try:
        return hosted(common, agents=agents, config=config)
    except StoreLocked as locked:
        holder = holder_of(locked.path)
        if holder is None or holder.gateway is None:
            raise
        token = os.environ.get(TOKEN) or load_config(config).config.gateway.auth.secret
        if not token:
            raise StoreUnavailable(
                f"{locked.path} has a host with a gateway at {holder.gateway}; put its token into {TOKEN}"
            ) from locked
        return _Elsewhere(holder.gateway, token)

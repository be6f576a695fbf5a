"""`intersession mcp`: a session's tools for an MCP client, over standard input and output."""

from typing import Annotated

from cyclopts import Parameter

from intersession.cli.answer import Answer
from intersession.cli.hosting import hosted
from intersession.cli.options import Common, ConfigFile, Store
from intersession_actors.extras import imported
from intersession_actors.tools.resolve import resolve_target


def mcp(
    *,
    as_session: Annotated[
        str, Parameter(help="The session that the client is: its key in any form, or its session id.")
    ],
    agents: Annotated[
        str | None,
        Parameter(
            help="Who answers: module:NAME of a dict of agents, or of a function that takes the store's URL and "
            "returns a SessionSystem."
        ),
    ] = None,
    config: ConfigFile = None,
    store: Store = None,
) -> Answer:
    """Serve the session tools to an MCP client that starts this command.

    The client sees and reaches what its session may, and no more. The command is the log's writer until the client
    closes its end; messages to agents that are not here wait for a host that has them.
    """
    stdio = imported("intersession.mcp_stdio", what="intersession mcp", library="the MCP SDK", extra="mcp")
    with stdio.claimed_wire() as wire, hosted(Common(store=store), agents=agents, config=config) as system:
        reader = system.core.reader
        found = resolve_target(reader, reader.requester(None), as_session, "send", field="--as-session")
        stdio.serve_stdio(system, str(found.key), wire)
    return Answer(None, lambda _: None)

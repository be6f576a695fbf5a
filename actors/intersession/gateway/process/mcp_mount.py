"""The session tools over MCP beside the gateway's own routes, where the extra `mcp` is installed."""

from types import ModuleType
from typing import Any, Final

from intersession.gateway.admission import Credentials
from intersession_actors.host import MissingExtra, imported
from intersession_actors.system import SessionSystem

MCP_PATH: Final = "/mcp"


def mcp_over_http() -> ModuleType | None:
    """Return the module of MCP over HTTP; None without the extra. To import it takes seconds, once."""
    try:
        return imported("intersession.mcp.http", what="MCP over HTTP", library="mcp", extra="mcp")
    except MissingExtra:
        return None


def mcp_mount(
    system: SessionSystem, credentials: Credentials
) -> Any | None:  # its class is in what may be missing
    """Return the application to mount at `MCP_PATH`; None without the extra. It serves inside its `running()`."""
    mcp = mcp_over_http()
    if mcp is None:
        return None

    async def check(token: str) -> object:
        found = credentials.match(token.encode(errors="surrogatepass"))
        return None if found is None else mcp.McpCaller(caller=found.caller, scopes=found.scopes)

    # Host and Origin are judged before anything is mounted.
    return mcp.mcp_app(system, check=check, path=MCP_PATH, allowed_hosts=None)

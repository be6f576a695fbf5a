"""What `intersession doctor --probe` asks of the network: endpoints of models, and MCP servers."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec

from intersession_actors.outside.agents.configured import mcp_sources
from intersession_actors.outside.agents.own_tools.tool import ToolFailed
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError
from intersession_actors.running.failures.findings import Finding, wrong
from intersession_events.basics.errors import MissingExtra

_PROBE_S: Final = 5.0
_REFUSED: Final = (401, 403)


def mcp_findings(config: Config) -> Iterator[Finding]:
    """Yield the configured MCP servers that give no tools. Connects to each, one after the other."""
    for server_id, server in config.mcp.servers.items():
        alone = msgspec.structs.replace(config.mcp, servers={server_id: server})
        try:
            error = asyncio.run(_reached(msgspec.structs.replace(config, mcp=alone)))
        except (ConfigError, MissingExtra) as refused:
            error = str(refused)
        if error is not None:
            yield wrong(
                "mcp_server_down",
                f"mcp.servers.{server_id} gives no tools: {error}",
                "start it, look at its command or url, or disable it (enabled: false)",
            )


async def _reached(config: Config) -> str | None:
    for source in mcp_sources(config):
        try:
            await source.tools()
        except ToolFailed as error:
            return str(error)
        finally:
            ended = source.close()
            await asyncio.gather(*map(asyncio.wrap_future, ended))
    return None


def endpoint_findings(config: Config) -> Iterator[Finding]:
    """Yield the endpoints of configured models that don't answer. Calls each over the network, once."""
    for name, provider in config.models.providers.items():
        url = provider.get("baseUrl")
        if isinstance(url, str):
            yield from _asked(name, url, provider.get("apiKey"))


def _asked(name: str, url: str, key: object) -> Iterator[Finding]:
    path, where = (
        f"models.providers.{name}",
        f"{urlsplit(url).scheme}://{urlsplit(url).netloc.rpartition('@')[2]}",
    )
    if urlsplit(url).scheme not in {"http", "https"}:
        yield wrong(
            "endpoint_bad",
            f"{path}.baseUrl is no http or https address",
            "give the address of an endpoint of models",
        )
        return
    request = urllib.request.Request(f"{url.rstrip('/')}/models")  # noqa: S310 - checked above
    if isinstance(key, str) and key:
        request.add_header("authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=_PROBE_S):  # noqa: S310 - checked above
            return
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            yield wrong(
                "endpoint_refuses",
                f"{path} at {where} refuses the key (HTTP {error.code})",
                f"look at {path}.apiKey",
            )
    except (OSError, ValueError) as error:
        yield wrong(
            "endpoint_down",
            f"{path} at {where} does not answer: {error}",
            "start the endpoint, or look at the address and the network between",
        )

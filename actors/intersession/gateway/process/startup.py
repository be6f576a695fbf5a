"""The lines that `intersession serve` prints at its start: the configuration, continued work, and work that stands still."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from intersession.gateway.process.mcp_mount import MCP_PATH, mcp_is_installed
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.rules.config.config import Config
from intersession_events.basics.plain_json import JsonObject


def headline(system: SessionSystem) -> str:
    """Return what a host does, in the words before its address."""
    return (
        "following"
        if system.is_follower
        else f"serving {', '.join(system.status()['agents']) or 'no agents'}"
    )


def startup_lines(system: SessionSystem, address: str, *, config_file: Path | None) -> list[str]:
    """Return the lines for an operator at a start, without secrets."""
    status, config = system.status(), system.config
    source = "all defaults" if config_file is None else f"{config_file}, read again when it changes"
    return [
        f"log:      {system.log.path}, position {status['position']}, epoch {status['epoch']}",
        f"config:   {source}; log lines from {config.logging.level} on",
        *(_of_host(status, config) if status["writer"] is None else _of_follower(status["writer"])),
        *_doors(address, config),
        *_open(status),
    ]


def _of_host(status: JsonObject, config: Config) -> Iterator[str]:
    yield from _agents(status, config)
    yield from _channels(status, config)


def _of_follower(writer: JsonObject) -> Iterator[str]:
    where = f"at {writer['address']}" if writer["isConnected"] else f"not reached yet: {writer['error']}"
    yield f"writer:   {where}; what writes is handed on there"


def _agents(status: JsonObject, config: Config) -> Iterator[str]:
    for agent in status["agents"]:
        model = config.model_of(agent)
        provider = config.models.providers.get((model or "").partition("/")[0], {})
        where = f", model {model} at {_place(str(provider['baseUrl']))}" if provider.get("baseUrl") else ""
        yield f"agent:    {agent}{where}"
    silent = sorted({*config.agent_ids} - {*status["agents"]})
    if silent:
        yield f"agent:    nobody answers for {', '.join(silent)}; their messages wait"


def _channels(status: JsonObject, config: Config) -> Iterator[str]:
    for channel in status["channels"]:
        deliver = config.channels.get(channel, {}).get("deliver")
        yield f"channel:  {channel}" + (f", to {_place(str(deliver))}" if deliver else "")
    if not status["channels"]:
        yield "channel:  none; texts for people wait in the log"


def _doors(address: str, config: Config) -> Iterator[str]:
    paths = "WebSocket /, POST /tools/invoke, GET /events, GET /metrics"
    yield f"doors:    {address}: {paths}{f', MCP {MCP_PATH}' if mcp_is_installed() else ''}"
    credentials = len(config.gateway.auth.credentials)
    yield (
        f"lets in:  holders of gateway.auth.{config.gateway.auth.mode}"
        f"{f', and {credentials} limited credentials' if credentials else ''}"
    )


def _open(status: JsonObject) -> Iterator[str]:
    if (
        status["position"] is None
    ):  # the store went meanwhile; the process goes on, and does so when it is back
        yield f"store:    not available: {status['store']['error']}"
        return
    for key, number in sorted(status["parkedRuns"].items()):
        yield f"waits:    {number} in {key}, until its agent is here"
    for channel, number in sorted(status["deliveries"]["waiting"].items()):
        yield f"waits:    {number} for channel {channel}, until it is configured"


def _place(url: str) -> str:
    """Return where a URL leads, without anything in it that may be a secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host or '…'}"

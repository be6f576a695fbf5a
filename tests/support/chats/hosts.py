"""The bot hosts of the documentation, connected to a chat service of a test: here, or in a process that can be killed.

python -m support.chats.hosts Telegram 8080 shop
"""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

from support.chats.served import Served
from support.chats.shop import ENDPOINT, serve
from support.paths import DOCS, ROOT

PAGE = DOCS / "howto" / "bot-hosts.md"
HOSTS = dict(
    re.findall(
        r"^## (\w+)\n.*?^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
)
TOKENS = ("TELEGRAM_TOKEN", "DISCORD_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")
_PAUSE_S = 0.05


def names_of(title: str) -> dict[str, Any]:
    """Run the code of a host as an import would, in the working directory; return its names."""
    names: dict[str, Any] = {"__name__": "host"}
    os.environ.update(dict.fromkeys(TOKENS, "1:token"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the libraries, while they are imported
        exec(compile(HOSTS[title], f"{PAGE.name}: {title}", "exec"), names)  # noqa: S102 - the page's own code
    names["PAUSE"] = _PAUSE_S
    return names


@contextlib.contextmanager
def connected(title: str, names: dict[str, Any], port: int) -> Generator[Coroutine[Any, Any, None]]:
    """Have a host speak to a service at a port; yield what runs it."""
    match title:
        case "Telegram":
            import telegram  # noqa: PLC0415 - only where it is installed

            names["bot"] = telegram.Bot(
                "1:token",
                base_url=f"http://127.0.0.1:{port}/bot",
                base_file_url=f"http://127.0.0.1:{port}/file/bot",
            )
            yield names["main"]()
        case "Slack":
            for client in (names["slack"], names["patient"]):
                client.base_url = f"http://127.0.0.1:{port}/api/"
            yield names["main"]()
        case _:
            import discord.gateway  # noqa: PLC0415 - the same
            import discord.http  # noqa: PLC0415
            import yarl  # noqa: PLC0415

            route, gateway = discord.http.Route, discord.gateway.DiscordWebSocket
            before = route.BASE, gateway.DEFAULT_GATEWAY
            route.BASE = f"http://127.0.0.1:{port}/api"
            gateway.DEFAULT_GATEWAY = yarl.URL(f"ws://127.0.0.1:{port}/gateway")
            names["client"]._connection.guild_ready_timeout = 0.05
            try:
                yield _discord(names)
            finally:
                route.BASE, gateway.DEFAULT_GATEWAY = before


async def _discord(names: dict[str, Any]) -> None:
    async with names["system"], names["client"]:
        await names["client"].start("1:token")


def started(
    title: str, service: Served, folder: Path, *, shop: str | None = None
) -> "subprocess.Popen[bytes]":
    """Start a host in a process of its own, in a folder; it echoes, or serves the shop with a model on an endpoint."""
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "support.chats.hosts", title, str(service.port), *(["shop"] if shop else [])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, ENDPOINT: shop or ""},
    )


if __name__ == "__main__":
    if sys.argv[3:] == ["shop"]:
        serve(sys.argv[1])
    running = names_of(sys.argv[1])
    with connected(sys.argv[1], running, int(sys.argv[2])) as host:
        asyncio.run(host)

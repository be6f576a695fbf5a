"""A gateway with the demo played on it, for tests of the web debugger, and the rows of hostile texts said in it."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from intersession import SessionSystem
from intersession.cli.commands.demo import play_round
from intersession.cli.commands.demo_agents import AGENTS, CONFIG
from intersession_actors.outside.channels.channels import MemoryChannel
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.hostile import given, rows
from support.running import merged, wait_until_done

HOSTILE = [str(given(row)) for row in rows("R")]
_UNSEEN = re.compile(
    "[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff\\U000e0000-\\U000e007f]"
)


def seen(text: str) -> str:
    """Return a text as the pages show it: letters that nobody would see by their numbers."""
    return _UNSEEN.sub(
        lambda found: f"\\u{ord(found[0]):04x}" if ord(found[0]) < 0x10000 else f"\\u{{{ord(found[0]):x}}}",
        text,
    )


@contextmanager
def played(
    *, hostile: bool = False, store: Path | str | None = None, **config: Any
) -> Generator[tuple[SessionSystem, LiveGateway]]:
    """Serve the demo's log, in which everything has happened; in memory, if no file and no URL is given."""
    place = f"sqlite:///{store}" if isinstance(store, Path) else store or ":memory:"
    channel = MemoryChannel(idempotent=True)
    with (
        SessionSystem(
            place,
            agents=AGENTS,
            channels={"telegram": channel, "discord": channel},
            config=merged(CONFIG, GATEWAY, config),
        ) as system,
        LiveGateway(system) as gateway,
    ):
        play_round(system)
        for text in HOSTILE if hostile else ():
            system.inbound(
                channel="telegram", chat_id="ada", text=text, sender="ada", agent_id="main", wait=20
            )
        wait_until_done(system)
        yield system, gateway

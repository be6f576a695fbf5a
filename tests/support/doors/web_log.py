"""A gateway with the demo played on it, for tests of the web debugger, and the rows of hostile texts said in it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from intersession import SessionSystem
from intersession.cli.commands.demo_agents import AGENTS, CONFIG
from intersession.cli.commands.demo_play import play_round
from intersession_actors.channels import MemoryChannel
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.hostile import given, rows
from support.running import merged

HOSTILE = [str(given(row)) for row in rows("R")]


@contextmanager
def played(
    *, hostile: bool = False, store: Path | None = None, **config: Any
) -> Generator[tuple[SessionSystem, LiveGateway]]:
    """Serve the demo's log, in which everything has happened; in memory, if no file is given."""
    channel = MemoryChannel(idempotent=True)
    with (
        SessionSystem(
            ":memory:" if store is None else f"sqlite:///{store}",
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
        yield system, gateway

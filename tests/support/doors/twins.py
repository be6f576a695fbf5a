"""Systems that are the same to the last id and millisecond, so that what is done to one of them can be compared with the others."""

import itertools
from pathlib import Path
from typing import Any, Self

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.basics.keys.key import SessionKey
from intersession_projections.views.inline_views import inline_views
from support.any_log import Logs, log_at
from support.doors.gateway_live import GATEWAY
from support.fakes import ManualClock
from support.oracle import uuid
from support.running import WAIT, Gate, merged

ROOM = 6
"""How many runs may wait in one session of a twin."""

CONFIG: dict[str, Any] = merged(
    GATEWAY,
    {
        "gateway": {"tools": {"allow": ["sessions_send", "sessions_spawn"]}},
        "agents": {
            "defaults": {"subagents": {"maxChildrenPerAgent": 2, "allowAgents": ["ghost", "boxed"]}},
            "list": [
                {"id": "main", "default": True},
                {"id": "ops"},
                {"id": "slow"},
                {"id": "ghost"},
                {"id": "boxed", "sandbox": {"mode": "all"}},
                {"id": "vault"},
            ],
        },
        "audit": {"access": "off"},
        "models": {"providers": {"fake": {"models": [{"id": "one"}]}}},
        "session": {
            "sendPolicy": {"rules": [{"match": {"keyPrefix": "agent:ops:signal:"}, "action": "deny"}]}
        },
        "tools": {
            "sessions": {"visibility": "all"},
            "agentToAgent": {"enabled": True, "allow": ["main", "ops", "slow", "ghost", "boxed"]},
            "subagents": {"tools": {"alsoAllow": ["group:sessions"]}},
            "sessions_spawn": {
                "attachments": {"enabled": True, "maxFiles": 2, "maxFileBytes": 8, "maxTotalBytes": 12}
            },
        },
        "transcripts": {"mirror": False},
        "runs": {"shutdownGraceSeconds": 0, "inboxMax": ROOM},
    },
)
"""All see all but the vault. The agent `slow` answers when it is let, `ghost` and `boxed` never: nobody has them here."""

HELD = frozenset({"slow", "ghost", "boxed"})


class Twin:
    """One of them: a log, ids counted up, a clock that stands."""

    def __init__(self, logs: Logs, folder: Path) -> None:
        self.folder = folder
        self.gate = Gate(5 * WAIT)
        self.names: dict[str, str] = {}
        """What a test calls sessions whose key or id is only known once they are there."""
        self._clock, self._numbers = ManualClock(), itertools.count(1)
        self._log = log_at(
            logs.at(folder),
            inline=inline_views(),
            clock=self._clock.now_ms,
            monotonic=self._clock.monotonic,
            entropy=bytes,
            new_log_id=lambda: uuid(7_000_000),
        )
        self.system = self._started()

    def _started(self) -> SessionSystem:
        return SessionSystem(
            self._log,
            agents={"main": self._talks, "ops": self._talks, "slow": self._waits},
            channels={"telegram": MemoryChannel()},
            config=CONFIG,
            clock=self._clock,
            new_id=lambda: uuid(next(self._numbers)),
        )

    def restart(self) -> None:
        """Stop the system and start another one on the same log."""
        self.system.close(grace=0)
        self.system = self._started()

    def settle(self) -> None:
        """Wait until all that can happen has happened: what is left waits for an agent that does not answer."""
        log = self._log
        head = log.head()
        while not (self._is_settled() and log.head() == head):
            if log.head() == head and not log.wait_for(head + 1, timeout=WAIT):
                raise TimeoutError([item.topic for item in log.all()][-20:])
            head = log.head()

    def _is_settled(self) -> bool:
        service = self.system.service
        runs = service.runs.open_runs()
        waited_for = {run.run_id for run in runs if self._is_held(run.session_key)}
        flows = [
            *service.flows.open_exchanges(),
            *service.flows.open_spawns(),
            *service.flows.open_deliveries(),
        ]
        return len(waited_for) == len(runs) and all(self._waits_for(flow) in waited_for for flow in flows)

    def _waits_for(self, stream: str) -> str | None:
        kind, _, flow_id = stream.partition(":")
        flows = self.system.service.flows
        match kind:
            case "exchange":
                exchange = flows.exchange(flow_id)
                return None if exchange is None else exchange.awaits
            case "spawn":
                spawn = flows.spawn(flow_id)
                return None if spawn is None else spawn.run_id
            case _:
                return None

    def _is_held(self, key: str) -> bool:
        return SessionKey.parse(key).agent_id in HELD

    def _talks(self, turn: Turn) -> str:
        if turn.step == "announce":
            return "It was said." if "aloud" in turn.message else "ANNOUNCE_SKIP"
        if turn.step == "reply":
            return "and you?" if "talk" in turn.message else "REPLY_SKIP"
        if "fail" in turn.message:
            raise RuntimeError("no idea")
        return "NO_REPLY" if "silence" in turn.message else f"heard: {turn.message}"

    def _waits(self, turn: Turn) -> str:
        self.gate.stop(turn)
        return f"at last: {turn.message}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.open()
        self.system.close(grace=0)
        self._log.close()

"""What an auditor waits for: an import of a state, proving a log, rebuilding every view from it."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, per_second
from intersession_events.copies.checkpoints.taking import CheckpointTaker
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_projections.views.inline_views import inline_views

NAME = "audit"
START_S = 1_772_442_000
_TEXT = "The night's backups are complete; two files were skipped because they were open. " * 8


def measure(directory: Path, *, sessions: int = 50, messages: int = 400) -> list[Figure]:
    """Write a state as OpenClaw would, import it, then prove and rebuild what came of it."""
    state = write_state(directory / "state", sessions=sessions, messages=messages)
    with SqliteLog(directory / "log.db", inline=inline_views()) as log:
        imported = _seconds(lambda: import_openclaw(state, log, clock=lambda: START_S * 1000))
        events = log.head()
        verified = _seconds(lambda: verify_log(log))
        rebuilt = sum(_seconds(partial(log.rebuild, view.name)) for view in inline_views())
        read = _seconds(lambda: sum(1 for _ in log.all()))
        checkpointed = _seconds(partial(_checkpoint, log))
    return [
        Figure(benchmark=NAME, name=name, value=per_second(events, seconds), unit="events/s")
        for name, seconds in (
            (f"import of {sessions} sessions, {sessions * messages:,} messages", imported),
            ("read and prove each", read),
            ("verify", verified),
            ("rebuild all views", rebuilt),
            ("first checkpoint of a log", checkpointed),
        )
    ]


def _checkpoint(log: SqliteLog) -> None:
    taker = CheckpointTaker(log)
    while taker.fold():
        pass
    taker.know_heads()
    taker.take()


def write_state(root: Path, *, sessions: int, messages: int) -> Path:
    """Write an OpenClaw state directory of one agent."""
    folder = root / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    entries: dict[str, Any] = {}
    for number in range(sessions):
        session_id = f"{number:08x}-1111-4111-8111-{number:012x}"
        entries[f"agent:main:telegram:group:-{number + 1}"] = {
            "sessionId": session_id,
            "updatedAt": (START_S + messages) * 1000,
        }
        head = {"type": "session", "version": 3, "id": session_id, "timestamp": _time(0)}
        lines = [head, *(_message(at) for at in range(messages))]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{session_id}.jsonl").write_text(text, encoding="utf-8")
    (folder / "sessions.json").write_text(json.dumps(entries), encoding="utf-8")
    return root


def _message(at: int) -> dict[str, Any]:
    role = "user" if at % 2 == 0 else "assistant"
    content: Any = _TEXT if role == "user" else [{"type": "text", "text": _TEXT}]
    return {
        "type": "message",
        "id": f"{at:08x}",
        "parentId": None if at == 0 else f"{at - 1:08x}",
        "timestamp": _time(at),
        "message": {"role": role, "content": content, "timestamp": (START_S + at) * 1000},
    }


def _time(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(START_S + second))


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began

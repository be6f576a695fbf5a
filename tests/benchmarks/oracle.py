"""(h) Refusals of sessions that are there and may not be seen, beside those of sessions that are not there (X2)."""

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, quantile
from benchmarks.logs import draft as drafted
from benchmarks.logs import to, write
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import resolve_label
from intersession_actors.calls.tools.sessions_history import read_history
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.facts import Message, RunQueued, SessionOpened
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.oracle import uuid

NAME: Final = "oracle"
MAIN: Final = "agent:main:main"
STRANGER: Final = "agent:main:stranger"
SESSIONS: Final = 400
BETWEEN: Final = 20


def key_of(number: int) -> str:
    return f"agent:main:subagent:{uuid(number)}"


def _opened(key: str, number: int, spawned_by: str | None) -> SessionOpened:
    return SessionOpened(
        key=key,
        session_id=uuid(1_000_000 + number),
        agent_id="main",
        opened_by="operator",
        spawned_by=spawned_by,
        label=f"label {number:08d}",
    )


def _queued(number: int) -> RunQueued:
    message = Message(id=f"m{number}", role="user", content="hello", timestamp=1)
    run_id, session_id = uuid(3_000_000 + number), uuid(1_000_000 + number)
    return RunQueued(run_id=run_id, session_id=session_id, step="message", message=message)


def measure(directory: Path, *, pairs: int = 5_000) -> list[Figure]:
    """Ask for both in turn; the medians, in microseconds, and how far they are apart."""
    with SqliteLog(directory / "log.db", inline=inline_views()) as log:
        _fill(log)
        config = load_config({"tools": {"sessions": {"visibility": "tree"}}}).config
        reader = Reader(log, config=lambda: config, clock=SystemClock())
        figures: list[Figure] = []
        for name, ask in _ways(reader).items():
            figures += _compared(name, ask, pairs)
        return figures


def _fill(log: SqliteLog) -> None:
    """Open the session that asks, and sessions of three kinds: alone, spawned by a stranger, spawned by another of these."""
    write(log, iter([to(MAIN, drafted(_opened(MAIN, -1, None), "open-main"))]))
    spawned_by: Mapping[int, Callable[[int], str | None]] = {
        0: lambda _: None,
        1: lambda _: STRANGER,
        2: lambda number: key_of(number - 1),
        3: lambda _: STRANGER,
    }
    write(
        log,
        (
            to(
                key,
                drafted(_opened(key, number, parent), f"open-{number}"),
                drafted(_queued(number), f"run-{number}"),
            )
            for number in range(SESSIONS)
            for key, parent in ((key_of(number), spawned_by[number % 4](number)),)
        ),
    )


def _ways(reader: Reader) -> dict[str, Callable[[int, bool], None]]:
    requester = reader.requester(MAIN)

    def history(given: str) -> None:
        read_history(reader, requester, {"sessionKey": given})

    def by_key(number: int, there: bool) -> None:
        history(key_of(number if there else number + SESSIONS))

    def by_id(number: int, there: bool) -> None:
        history(uuid((1_000_000 if there else 2_000_000) + number))

    def by_label(number: int, there: bool) -> None:
        resolve_label(reader, requester, f"label {number if there else number + SESSIONS:08d}", None, "send")

    def debugged(number: int, there: bool) -> None:
        View(reader, requester).session(key_of(number if there else number + SESSIONS))

    def run_debugged(number: int, there: bool) -> None:
        View(reader, requester).flow(uuid((3_000_000 if there else 4_000_000) + number))

    return {
        "by key": by_key,
        "by session id": by_id,
        "by label": by_label,
        "by key, to the debugger": debugged,
        "by run id, to the debugger": run_debugged,
    }


def _compared(name: str, ask: Callable[[int, bool], Any], pairs: int) -> list[Figure]:
    samples: dict[bool, list[float]] = {True: [], False: []}
    gc.collect()
    gc.disable()
    try:
        for number in range(pairs + BETWEEN):
            # Now one first, now the other: what is warm after the first is no clue.
            for there in (True, False) if number % 2 else (False, True):
                began = time.perf_counter()
                with suppress(ToolRefused):
                    ask(number % SESSIONS, there)
                if number >= BETWEEN:
                    samples[there].append((time.perf_counter() - began) * 1e6)
    finally:
        gc.enable()
    middles = {there: quantile(taken, 0.5) for there, taken in samples.items()}
    return [
        Figure(benchmark=NAME, name=f"{name}, not there", value=middles[False], unit="us"),
        Figure(
            benchmark=NAME,
            name=f"{name}, not to be seen",
            value=middles[True],
            unit="us",
            ratios={f"{name}, not there": middles[True] / middles[False]},
        ),
    ]

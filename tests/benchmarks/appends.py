"""(a) Appends per second, each durable before it is acknowledged, against a loop that syncs once per transaction."""

import queue
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.bare import PAYLOAD_BYTES, Bare
from benchmarks.figures import Figure, per_second
from benchmarks.logs import draft, open_sessions, saying, session_key
from intersession_events.basics import ids
from intersession_events.log.recorded import Committed, Outcome, StreamAppend
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views

NAME = "appends"
SESSIONS = (1, 8, 512)
BATCH = 512
ROUNDS = 5
ONE = "bare rows, 1 a sync"
MANY = f"bare rows, {BATCH} a sync"
_DRIVERS = 4


class Sessions:
    """Sessions that each append one message after the other, as actors on a pool do: the next when the last is durable."""

    def __init__(self, log: SqliteLog, keys: Sequence[str], appends: int) -> None:
        self._log = log
        self._left = appends
        self._ready: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._acknowledged = 0
        self._appends = appends
        self._over = threading.Event()
        self._failed: list[Outcome] = []
        for key in keys:
            self._ready.put((key, log.stream(ids.session_stream(key), backwards=True, limit=1)[0].version))

    def run(self) -> float:
        """Return how many appends a second were acknowledged."""
        threads = [threading.Thread(target=self._drive, daemon=True) for _ in range(_DRIVERS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        self._over.wait()
        seconds = time.perf_counter() - began
        for _ in threads:
            self._ready.put(None)
        for thread in threads:
            thread.join()
        if self._failed:
            raise RuntimeError(f"an append was not taken: {self._failed[0]}")
        return per_second(self._acknowledged, seconds)

    def _drive(self) -> None:
        while (job := self._ready.get()) is not None:
            key, version = job
            with self._lock:
                number, self._left = self._left, self._left - 1
            if number <= 0:
                continue
            event = saying(key, f"message-{number}", "x" * PAYLOAD_BYTES)
            append = StreamAppend(
                stream=ids.session_stream(key),
                expected=version,
                drafts=(draft(event, f"said-{key}-{number}"),),
            )
            self._log.append((append,), partial(self._told, key, version))

    def _told(self, key: str, version: int, outcome: Outcome) -> None:
        if not isinstance(outcome, Committed):
            self._failed.append(outcome)
        self._acknowledged += 1  # only ever from the writer's thread
        if self._acknowledged == self._appends or self._failed:
            self._over.set()
        self._ready.put((key, version + 1))


def measure(directory: Path, *, appends: int = 20_000) -> list[Figure]:
    """Measure the bare machine, the log, and the log with the views that each append keeps current.

    All take turns, and the best turn of each counts: whatever else the machine does makes a turn slower, never faster.
    """
    rates: dict[str, float] = {}

    def turn(name: str, rate: float) -> None:
        rates[name] = max(rates.get(name, 0.0), rate)

    keys = [session_key(number) for number in range(max(SESSIONS))]
    bare = Bare(directory / "bare.db")
    with (
        SqliteLog(directory / "alone.db") as alone,
        SqliteLog(directory / "viewed.db", inline=inline_views()) as viewed,
    ):
        logs = {"log alone": alone, "log with its inline views": viewed}
        for log in logs.values():
            open_sessions(log, keys)
        for _ in range(ROUNDS):
            turn(ONE, bare.rows_per_second(appends // 20, each=1))
            turn(MANY, bare.rows_per_second(appends, each=BATCH))
            for name, log in logs.items():
                for number in SESSIONS:
                    sessions = Sessions(
                        log, keys[:number], max(number, appends // (20 if number == 1 else 5))
                    )
                    turn(f"{name}, {number} writing", sessions.run())
    bare.close()
    return [
        Figure(
            benchmark=NAME,
            name=name,
            value=rate,
            unit="a second",
            ratios={} if name in {ONE, MANY} else {against: rate / rates[against] for against in (ONE, MANY)},
        )
        for name, rate in rates.items()
    ]

"""What it takes to wake a session of many messages, and what an agent looks at of its transcript."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, quantile, timed
from benchmarks.logs import answering, draft, opening, saying, session_id, session_key, to, write
from benchmarks.systems import NO_LOOP, answers_at_once, system
from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.session.state import Session, evolve
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold
from intersession_events.basics import ids
from intersession_events.facts import Message, RunQueued, RunStarted
from intersession_events.log.recorded import Draft, StreamAppend
from intersession_events.log.states import EVERY
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views

NAME = "waking"
KEY = session_key(0)
STREAM = ids.session_stream(KEY)
MIB = 1024 * 1024
_TEXT = "The night's backups are complete; two files were skipped because they were open. "
_RUNS_AN_APPEND = 50
_EVENTS_A_RUN = 3
_EVENTS_ASKED = 1
_LAST = "waits"


def measure(directory: Path, *, messages: int = 200_000, times: int = 30) -> list[Figure]:
    """Wake a session again and again, then have an agent answer in it."""
    path = directory / "log.db"
    with SqliteLog(path, inline=inline_views()) as log:
        write(log, appends(messages))
        whole, folded = _measured(lambda: _naive(log))
        first, woken = _measured(lambda: wake(log))
        assert woken.hash == folded.hash
    with SqliteLog(path, inline=inline_views()) as log:
        waking = timed(lambda: wake(log), times)
        peak = _peak(lambda: wake(log))
        context = wake(log)
        looks = [
            (f"an agent {looking}", timed(look, 1)[0])
            for looking, look in (
                ("looks at the last 50", lambda: context.transcript[-50:]),
                ("looks at one in the middle", lambda: context.transcript[messages // 2]),
                ("reads all of it", lambda: sum(1 for _ in context.transcript)),
            )
        ]
        share = _bytes(log, "stored_snapshots") / _bytes(log, "stored_events")
    answered = _answered(directory)
    of = f"{messages:,} messages"
    against = "reading all of it"
    return [
        _figure(f"{of}, read and folded as a whole", whole, "ms"),
        _figure(f"{of}, first time, no snapshots yet", first, "ms", {against: first / whole}),
        *(
            _figure(f"{of}, p{share}", value, "ms", {against: value / whole})
            for share, value in ((50, quantile(waking, 0.5)), (95, quantile(waking, 0.95)))
        ),
        _figure(f"{of}, memory at most", peak / MIB, "MiB"),
        _figure("from a message to its answer, asleep before", answered, "ms"),
        *(_figure(name, value, "ms") for name, value in looks),
        _figure("snapshots, of the bytes of events", share * 100, "%"),
    ]


def wake(log: SqliteLog) -> RunContext:
    """Do what an actor does when it wakes for a run: where it stands, and what its agent will see."""
    contexts = ContextCache(log)
    folded = log.states.fold(STREAM, contexts.folding(KEY))
    contexts.offer(KEY, folded.state.transcript, contexts.erasures)
    context = contexts.at(KEY, _LAST, folded.version)
    assert context is not None
    return context


def appends(messages: int) -> Iterator[StreamAppend]:
    """Yield a session with half as many runs, and one that waits."""
    yield to(KEY, draft(opening(KEY), "opening"))
    drafts: list[Draft] = []
    for number in range(messages // 2):
        drafts += _run(number)
        if number % _RUNS_AN_APPEND == 0:
            yield to(KEY, *drafts)
            drafts = []
    # As many events behind the last snapshot as there can be.
    version = 1 + messages // 2 * _EVENTS_A_RUN
    more = (EVERY - 1 - _EVENTS_ASKED - version) % EVERY
    drafts += (draft(saying(KEY, f"n{number}", _TEXT), f"n{number}") for number in range(more))
    yield to(KEY, *drafts, *_asked(_LAST))


def _run(number: int) -> Iterator[Draft]:
    run_id = f"r{number}"
    yield from _asked(run_id)
    reply = Message(id=f"a{number}", role="assistant", content=_TEXT * 3, timestamp=number, run_id=run_id)
    for name, event in (
        ("s", RunStarted(run_id=run_id, attempt=1, context_hash="0" * 64)),
        ("c", answering(KEY, reply)),
    ):
        yield draft(event, f"{name}-{run_id}")


def _asked(run_id: str) -> Iterator[Draft]:
    asked = saying(KEY, f"m-{run_id}", _TEXT * 2).message
    yield draft(
        RunQueued(run_id=run_id, session_id=session_id(KEY), step="message", message=asked),
        f"q-{run_id}",
    )


def _naive(log: SqliteLog) -> RunContext:
    session, fold = Session(), TranscriptFold()
    for item in log.stream(STREAM):
        session = evolve(session, item)
        fold.apply(item)
    return fold.context(_LAST)


def _answered(directory: Path) -> float:
    with system(directory, {"main": answers_at_once}, NO_LOOP) as started:
        return timed(
            lambda: started.tools().call("sessions_send", {"sessionKey": KEY, "message": "go on"}), 1
        )[0]


def _measured(work: Callable[[], RunContext]) -> tuple[float, RunContext]:
    found: list[RunContext] = []
    (took,) = timed(lambda: found.append(work()), 1)
    return took, found[0]


def _peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _bytes(log: SqliteLog, table: str) -> int:
    found: int | None = None
    if log.query("SELECT 1 FROM sqlite_master WHERE name=?", (table,)):
        found = log.query(f"SELECT SUM(length(state)) FROM {table}")[0][0]  # noqa: S608 - one of ours
    return found or 0


def _figure(name: str, value: float, unit: str, ratios: dict[str, float] | None = None) -> Figure:
    return Figure(benchmark=NAME, name=name, value=value, unit=unit, ratios=ratios or {})

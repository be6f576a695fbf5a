"""How long a start takes beside what lies in the log: until the system is ready, until what was open has ended (O8)."""

import time
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.logs import open_sessions, session_key
from benchmarks.systems import NO_LOOP, answers_at_once, system
from intersession_events.facts import ExchangeClosed, parts_of
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views

NAME = "recovery"
AGENTS = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}


def prepared(directory: Path, *, sessions: int, messages: int, flows: int) -> int:
    """Make a log with many sessions, and sends that nobody has answered; return its last position."""
    directory.mkdir()
    keys = [session_key(number) for number in range(sessions)]
    with SqliteLog(directory / "log.db", inline=inline_views()) as log:
        open_sessions(log, keys, messages=messages)
    with system(directory, {}, NO_LOOP) as parked:
        parked.reload({**AGENTS, "session": NO_LOOP})
        for key in keys[:flows]:
            sent = parked.tools().call(
                "sessions_send", {"sessionKey": key, "message": "go on", "timeoutSeconds": 0}
            )
            assert sent["status"] == "accepted", sent
        return parked.log.head()


def recovered(directory: Path, *, after: int, flows: int) -> tuple[float, float]:
    """Start a system on a log; return the seconds until it was ready, and until all that was open had ended."""
    began = time.perf_counter()
    with system(directory, {"main": answers_at_once}, NO_LOOP) as started:
        ready = time.perf_counter() - began
        ended = 0
        for recorded in started.follow(after, timeout=60):
            ended += any(isinstance(part, ExchangeClosed) for part in parts_of(recorded.event))
            if ended == flows:
                break
        assert ended == flows
        return ready, time.perf_counter() - began


def measure(directory: Path, *, sessions: int = 1000, messages: int = 100, flows: int = 50) -> list[Figure]:
    """Start on a long log and on a short one with as many open flows."""
    long, short = directory / "long", directory / "short"
    end = prepared(long, sessions=sessions, messages=messages, flows=flows)
    bare_end = prepared(short, sessions=flows, messages=1, flows=flows)
    bare_ready, bare_over = recovered(short, after=bare_end, flows=flows)
    ready, over = recovered(long, after=end, flows=flows)
    size = f"{sessions * (messages + 1):,} events, {flows} open flows"
    against = "a short log"
    return [
        Figure(
            benchmark=NAME, name=f"ready, {size}", value=ready, unit="s", ratios={against: ready / bare_ready}
        ),
        Figure(
            benchmark=NAME,
            name=f"all ended, {size}",
            value=over,
            unit="s",
            ratios={against: over / bare_over},
        ),
    ]

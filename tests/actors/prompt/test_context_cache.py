"""Transcripts that are kept between runs: what a run sees is the same, wherever it is read from."""

from collections.abc import Iterator

import pytest

from intersession_actors.prompt import RunContext
from intersession_actors.prompt.transcript import build
from intersession_actors.session import ContextCache
from intersession_events.facts import (
    Event,
    Message,
    MessageRecorded,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionOpened,
)
from intersession_events.log import Recorded
from intersession_events.stores import SqliteLog
from support.log_drafts import anywhere, draft

KEY = "agent:main:main"
STREAM = f"session:{KEY}"


@pytest.fixture
def log() -> Iterator[SqliteLog]:
    """Return a log in which nothing is loaded before `step`."""
    with SqliteLog(":memory:", threads=False) as opened:
        opened.append_now(
            (
                anywhere(
                    STREAM,
                    draft(SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person"), "o"),
                ),
            )
        )
        yield opened


def ask(log: SqliteLog, run_id: str) -> tuple[Recorded, ...]:
    """Record a message and the run that is to answer it."""
    message = Message(id=f"in-{run_id}", role="user", content=f"What of {run_id}?", timestamp=1)
    queued = RunQueued(run_id=run_id, session_id="s", step="message", message_id=message.id)
    asked = MessageRecorded(session_id="s", message=message)
    return log.append_now(
        (anywhere(STREAM, draft(asked, f"m-{run_id}"), draft(queued, f"q-{run_id}")),)
    ).recorded


def answer(log: SqliteLog, run_id: str) -> tuple[Recorded, ...]:
    said = Message(id=f"out-{run_id}", role="assistant", content="Well.", timestamp=2, run_id=run_id)
    events: tuple[Event, ...] = (
        RunStarted(run_id=run_id, attempt=1, context_hash="h"),
        MessageRecorded(session_id="s", message=said),
        RunCompleted(run_id=run_id, attempt=1, reply="Well."),
    )
    drafts = (draft(event, f"{number}-{run_id}") for number, event in enumerate(events))
    return log.append_now((anywhere(STREAM, *drafts),)).recorded


def read(cache: ContextCache, run_id: str, version: int) -> list[RunContext | Exception]:
    found: list[RunContext | Exception] = []
    cache.read(KEY, run_id, found.append, version=version)
    return found


@pytest.mark.clause("PROV-4")
def test_a_transcript_that_was_kept_current_is_given_back_at_once_and_is_that_of_the_log(
    log: SqliteLog,
) -> None:
    cache = ContextCache(log)
    ask(log, "one")
    read(cache, "one", 3)
    log.step()

    cache.take(KEY, answer(log, "one"))
    cache.take(KEY, ask(log, "two"))

    assert read(cache, "two", 8) == [build(log.stream(STREAM), "two")]


@pytest.mark.clause("PROV-4")
def test_a_transcript_that_missed_something_is_read_up_to_the_end(log: SqliteLog) -> None:
    cache = ContextCache(log)
    ask(log, "one")
    read(cache, "one", 3)
    log.step()
    answer(log, "one")
    cache.take(KEY, ask(log, "two"))

    found = read(cache, "two", 8)
    assert found == []
    log.step()

    assert found == [build(log.stream(STREAM), "two")]

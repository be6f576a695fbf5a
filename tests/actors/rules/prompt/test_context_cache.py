"""Transcripts that are kept between runs: what a run sees is the same, wherever it is read from."""

import threading
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold
from intersession_actors.rules.prompt.window import Window
from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import (
    Event,
    Instructions,
    Message,
    MessageRecorded,
    Quote,
    RunAborted,
    RunCompleted,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionOpened,
)
from intersession_events.log.recorded import Recorded
from intersession_events.stores.sqlite.log import SqliteLog
from support.bare_events import bare
from support.log_drafts import anywhere, draft
from support.run_context import context_of

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
    """Record a run and the message that it is to answer."""
    message = Message(id=f"in-{run_id}", role="user", content=f"What of {run_id}?", timestamp=1)
    queued = RunQueued(run_id=run_id, session_id="s", step="message", message=message)
    return log.append_now((anywhere(STREAM, draft(queued, f"q-{run_id}")),)).recorded


def answer(log: SqliteLog, run_id: str) -> tuple[Recorded, ...]:
    said = Message(id=f"out-{run_id}", role="assistant", content="Well.", timestamp=2, run_id=run_id)
    events: tuple[Event, ...] = (
        RunStarted(run_id=run_id, attempt=1, context_hash="h"),
        RunCompleted(run_id=run_id, attempt=1, session_id="s", message=said, message_is_reply=True),
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
    read(cache, "one", 2)
    log.step()

    cache.take(KEY, answer(log, "one"))
    cache.take(KEY, ask(log, "two"))

    assert read(cache, "two", 5) == [context_of(log.stream(STREAM), "two")]


@pytest.mark.clause("PROV-4")
def test_a_transcript_that_missed_something_is_read_up_to_the_end(log: SqliteLog) -> None:
    cache = ContextCache(log)
    ask(log, "one")
    read(cache, "one", 2)
    log.step()
    answer(log, "one")
    cache.take(KEY, ask(log, "two"))

    found = read(cache, "two", 5)
    assert found == []
    log.step()

    assert found == [context_of(log.stream(STREAM), "two")]


@pytest.mark.clause("PROV-4")
def test_a_context_is_given_for_the_version_that_is_asked_for_or_not_at_all(log: SqliteLog) -> None:
    """Before: what was said between the reading and the start of a run was in the log, not in the hash."""
    cache = ContextCache(log)
    ask(log, "one")
    read(cache, "one", 2)
    log.step()

    cache.take(KEY, ask(log, "two"))

    assert cache.at(KEY, "one", 3) == context_of(log.stream(STREAM), "one")
    assert cache.at(KEY, "one", 2) is None


@pytest.mark.clause("ERASE-1")
def test_what_an_actor_read_before_words_were_erased_is_not_kept(log: SqliteLog) -> None:
    """Before: a session that woke just then had the erased words in its next contexts."""
    cache = ContextCache(log)
    ask(log, "one")
    known = cache.erasures
    transcript = log.states.fold(STREAM, cache.folding(KEY)).state.transcript
    cache.erased(KEY)

    cache.offer(KEY, transcript, known)
    assert cache.at(KEY, "one", 2) is None
    cache.offer(KEY, transcript, cache.erasures)
    assert cache.at(KEY, "one", 2) is not None


class Before:
    """A lock before whose next holder something is done."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._do = [do]

    def __enter__(self) -> None:
        if self._do:
            self._do.pop()()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.clause("ERASE-1")
def test_nor_is_what_a_run_read(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ContextCache(log)
    ask(log, "one")
    found = read(cache, "one", 2)
    monkeypatch.setattr(cache, "_lock", Before(lambda: cache.erased(KEY)))
    log.step()

    assert found == [context_of(log.stream(STREAM), "one")]
    assert cache.at(KEY, "one", 2) is None


MOMENTS = st.lists(
    st.sampled_from(["ask", "say", "look", "start", "answer", "cut off", "give up"]), max_size=40
)


@pytest.mark.clause("PROV-4")
@for_all(MOMENTS)
def test_however_often_and_whenever_a_context_is_looked_at_it_is_that_of_the_log(moments: list[str]) -> None:
    """A fold that is asked at any point goes on to the same hash as one that never was."""
    events: list[Event] = [SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")]
    fold, kept, waiting = TranscriptFold(), 0, list[str]()
    running: str | None = None
    attempt = 0
    for number, moment in enumerate(moments):
        match moment:
            case "ask":
                said = Message(id=f"m{number}", role="user", content=f"{number}?", timestamp=number)
                queued = RunQueued(run_id=f"r{number}", session_id="s", step="message", message=said)
                events.append(queued)
                waiting.append(queued.run_id)
            case "say":
                role: Literal["user", "assistant"] = "assistant" if running else "user"
                words = Message(id=f"m{number}", role=role, content="so", timestamp=number, run_id=running)
                events.append(MessageRecorded(session_id="s", message=words))
            case "start" if running is None and waiting:
                running, attempt = waiting.pop(0), attempt + 1
                events.append(RunStarted(run_id=running, attempt=attempt, context_hash="h"))
            case "answer" if running is not None:
                last = Message(
                    id=f"m{number}", role="assistant", content="so", timestamp=number, run_id=running
                )
                events.append(RunCompleted(run_id=running, attempt=attempt, session_id="s", message=last))
                running, attempt = None, 0
            case "cut off" if running is not None:
                events.append(RunInterrupted(run_id=running, attempt=attempt))
                waiting.insert(0, running)
                running = None
            case "give up" if waiting and not (attempt and running is None):
                events.append(RunAborted(run_id=waiting.pop(), attempt=0, by="me"))
            case "look" if running is None and waiting:
                whole = [recorded(version, event) for version, event in enumerate(events, start=1)]
                expected, before = context_of(whole, waiting[0]), fold.state()
                ahead = fold.context_behind(
                    whole[kept:], waiting[0], None
                )  # as if they were appended with its start
                assert ahead is not None
                assert (ahead.hash, ahead.used, ahead.version) == (expected.hash, expected.used, len(events))
                assert fold.state() == before
                for item in whole[kept:]:
                    fold.apply(item)
                kept = len(events)
                assert ahead == expected
                assert fold.context(waiting[0]) == expected
            case _:
                pass


def recorded(version: int, event: Event) -> Recorded:
    return bare(STREAM, version, event)


def test_transcripts_that_nobody_uses_are_dropped_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: they were counted, however long they were."""
    monkeypatch.setattr("intersession_actors.owners.session.context_cache.MOST_BYTES", 3_000)
    opened = SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")
    with SqliteLog(":memory:", threads=False) as log:
        cache = ContextCache(log)
        kept: list[list[str]] = []
        for name in "abcd":
            stream = f"session:{name}"
            long = Message(id=f"long-{name}", role="user", content="x" * 1_000, timestamp=1)
            asked = Message(id=f"in-{name}", role="user", content="and?", timestamp=1)
            log.append_now(
                (
                    anywhere(
                        stream,
                        draft(opened, f"o-{name}"),
                        draft(MessageRecorded(session_id="s", message=long), f"l-{name}"),
                        draft(
                            RunQueued(run_id=name, session_id="s", step="message", message=asked),
                            f"q-{name}",
                        ),
                    ),
                )
            )
            cache.read(name, name, lambda _context: None, version=3)
            log.step()
            kept.append([each for each in "abcd" if is_at_hand(cache, each)])

        alone = ContextCache(log)
        monkeypatch.setattr("intersession_actors.owners.session.context_cache.MOST_BYTES", 10)
        alone.read("a", "a", lambda _context: None, version=3)
        log.step()
        forgotten = cache.at("a", "a", 3)

        assert kept == [["a"], ["a", "b"], ["b", "c"], ["c", "d"]]
        assert is_at_hand(alone, "a")
        assert forgotten is not None
        assert [message.id for message in forgotten.transcript] == ["long-a"]


def is_at_hand(cache: ContextCache, name: str) -> bool:
    transcript = cache.transcript_at(name, 3)
    return transcript is not None and transcript.window.size > 0


@pytest.mark.clause("PROV-4")
def test_a_run_whose_message_the_stream_does_not_have_is_told_as_damage(log: SqliteLog) -> None:
    queued = RunQueued(run_id="one", session_id="s", step="message", answers="is nowhere")
    log.append_now((anywhere(STREAM, draft(queued, "q-one")),))

    found = read(ContextCache(log), "one", 2)
    log.step()

    [error] = found
    assert isinstance(error, CorruptEvent)


def quoting(log: SqliteLog, asked: Quote, replied: Quote | None = None) -> tuple[Recorded, ...]:
    """Record an announce turn that quotes what was said before."""
    message = Message(id="in-last", role="user", content="Announce?", timestamp=3)
    told = Instructions(form="announce.1", session=KEY, is_target=True, asked=asked, replied=replied)
    queued = RunQueued(run_id="last", session_id="s", step="announce", message=message, instructions=told)
    return log.append_now((anywhere(STREAM, draft(queued, "q-last")),)).recorded


@pytest.mark.clause("ANN-1", "PROV-4")
def test_a_quote_that_is_not_at_hand_is_never_read_in_an_actors_own_thread(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ContextCache(log)
    ask(log, "one")
    read(cache, "one", 2)
    log.step()
    cache.take(KEY, answer(log, "one"))
    (asking,) = quoting(log, Quote(message_id="in-one"), Quote(run_id="one"))
    cache.take(KEY, (asking,))
    at_hand = cache.at(KEY, "last", 5)
    whole = context_of(log.stream(STREAM), "last")
    assert at_hand == whole
    assert "What of one?\n" in whole.system_context
    assert "Well.\n" in whole.system_context

    fold = cache.transcript_at(KEY, 5)
    assert fold is not None
    fold.window.shrink(0)
    monkeypatch.setattr(SqliteLog, "stream", lambda *_, **__: pytest.fail("the log was read"))
    assert cache.at(KEY, "last", 5) is None
    monkeypatch.undo()
    found = read(cache, "last", 5)
    log.step()
    assert found == [whole]


@pytest.mark.clause("PROV-4", "H4")
def test_a_quote_of_what_the_transcript_does_not_have_is_told_as_damage(log: SqliteLog) -> None:
    ask(log, "one")
    answer(log, "one")
    quoting(log, Quote(message_id="in-two"))

    with pytest.raises(CorruptEvent, match="no message in-two, which a run quotes"):
        context_of(log.stream(STREAM), "last")


@pytest.mark.clause("PROV-4")
@for_all(
    st.lists(st.integers(1, 40), max_size=8), st.lists(st.integers(1, 40), max_size=8), st.integers(10, 200)
)
def test_messages_that_came_to_nothing_are_taken_back_whatever_there_was_no_room_for(
    sizes: list[int], more: list[int], room: int
) -> None:
    window = Window(0, room=room)
    for number, size in enumerate(sizes):
        window.add(Message(id=f"{number}", role="user", content="", timestamp=0), size, size)
    start, before = window.at_hand(len(sizes))

    for size in more:
        window.add(Message(id="nothing", role="user", content="", timestamp=0), size, size)
    window.end_at(len(sizes))

    assert window.end == len(sizes)
    first, at_hand = window.at_hand(window.end)
    assert first >= start
    assert at_hand == before[first - start :]
    assert window.size == sum(sizes[first:])
    assert window.tokens_at_hand(window.end) == (first, sizes[first:])

"""Views remember the rows that they wrote: what they write is the same, whatever was undone, and far fewer are read."""

from itertools import count
from random import Random
from typing import Any

import pytest

from benchmarks.logs import SECOND_MS, START_MS, open_sessions, saying, session_key, turn, write
from benchmarks.logs import draft as drafted
from benchmarks.logs import to as said_to
from intersession_events.basics import ids
from intersession_events.facts import (
    DeliveryDecided,
    DeliveryDone,
    DeliveryStarted,
    Event,
    Route,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    SessionPatched,
    SessionReset,
)
from intersession_events.log.recorded import ANY_VERSION, Committed, Outcome, StreamAppend, Unavailable
from intersession_events.stores.sqlite.connections import raw_of
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.every_day import every_day
from support.faulty_store import FAULT, cut_off, disk_full, faulty


@pytest.fixture(autouse=True)
def no_fault() -> None:
    """Let commits go well again."""
    FAULT.before = FAULT.after = None


def event_of(chance: Random) -> tuple[str, Event]:
    """Return an event of one of three sessions, or of an exchange of theirs."""
    key, run, generation = session_key(chance.randrange(3)), f"run-{chance.randrange(4)}", chance.choice("gh")
    of_session: list[Event] = [
        saying(key, f"m-{chance.randrange(99)}", "hello"),
        RunQueued(run_id=run, session_id=generation, answers="m", step="message"),
        RunStarted(run_id=run, attempt=1, context_hash="0" * 64),
        RunCompleted(run_id=run, attempt=1, text="It is done."),
        SessionPatched(values={"label": chance.choice("xy")}),
        SessionReset(session_id=generation, previous_session_id="g"),
        SessionArchived(session_id=generation, reason="deleted"),
        SessionOpened(
            key=key,
            session_id=generation,
            agent_id="main",
            opened_by="person",
            spawned_by=session_key(chance.randrange(3)),
        ),
    ]
    flow = f"e-{chance.randrange(2)}"
    of_flow: list[Event] = [
        DeliveryDecided(
            delivery_id=flow,
            session_key=key,
            route=Route(channel="x", to="1"),
            text="hello",
            key=flow,
            purpose="announce",
        ),
        DeliveryStarted(delivery_id=flow, attempt=1),
        DeliveryDone(delivery_id=flow, attempt=1),
    ]
    if chance.random() < 0.2:
        return f"delivery:{flow}", chance.choice(of_flow)
    return ids.session_stream(key), chance.choice(of_session)


@pytest.mark.clause("J1", "J2", "LIST-8")
@pytest.mark.parametrize("seed", every_day(range(12), 0, 1, 2, 3))
def test_views_that_remember_have_the_rows_of_views_made_anew_though_transactions_are_undone(
    log_url: str, seed: int
) -> None:
    """Some transactions are refused, of some the answer is lost; each has one append or several."""
    chance, told = Random(seed), list[Outcome]()  # noqa: S311 - the same ones each time
    with log_at(log_url, inline=inline_views(), environment=faulty(log_url), threads=False) as log:
        open_sessions(log, [session_key(number) for number in range(3)])
        for number in range(60):
            stream, event = event_of(chance)
            one = drafted(event, str(number), START_MS + chance.randrange(100) * SECOND_MS)
            log.append([StreamAppend(stream=stream, expected=ANY_VERSION, drafts=(one,))], told.append)
            fate = chance.randrange(8)
            if fate < 4:
                FAULT.before = disk_full() if fate == 0 else None
                FAULT.after = cut_off() if fate == 1 else None
                log.step()
        FAULT.before = FAULT.after = None
        log.step()
        assert {type(one) for one in told} == {Committed, Unavailable}
        assert views_proven(log, inline_views())[0] == []


@pytest.mark.clause("J1")
def test_more_sessions_than_are_remembered_have_the_rows_of_views_made_anew(log_url: str) -> None:
    keys = [session_key(number) for number in range(2_100)]
    with log_at(log_url, inline=inline_views(), threads=False) as log:
        open_sessions(log, keys)
        for turns in range(2):
            write(log, (turn(key, turns) for key in (*keys[::300], *keys[-2:])))
        assert views_proven(log, inline_views())[0] == []


_NOT_OF_VIEWS = ("stored_events", "sqlite_sequence", "log_identity", "BEGIN", "COMMIT", "--")


@pytest.mark.clause("J2")
@pytest.mark.sqlite("what a server is asked is counted in tests/system/test_postgres_round_trips.py")
def test_a_message_and_a_turn_take_few_statements_for_views() -> None:
    """What is known from the batch before is not asked for again."""
    taken: list[str] = []
    number = count()

    def statements(log: SqliteLog, *appends: StreamAppend) -> int:
        taken.clear()
        log.append_now(list(appends))
        # A trigger has its statement named once more.
        mine = [one for one, before in zip(taken, ["", *taken], strict=False) if one != before]
        return sum(not any(name in one for name in _NOT_OF_VIEWS) for one in mine)

    def message(key: str) -> StreamAppend:
        name = f"said-{next(number)}"
        time = START_MS + (5_000 + next(number)) * SECOND_MS
        return said_to(key, drafted(saying(key, name, "hello", time), name, time))

    key = session_key(0)
    with SqliteLog(":memory:", inline=inline_views(), threads=False) as log:
        open_sessions(log, [key])
        traced: list[Any] = []
        transact = log._the_writer().transact
        transact(lambda cursor: traced.append(raw_of(cursor)), 10)
        traced[0].set_trace_callback(taken.append)
        statements(log, message(key))
        statements(log, turn(key, 1))

        assert statements(log, message(key)) == 5
        assert statements(log, turn(key, 2)) == 4
        # Sixteen versions of a row are put by at once, and with them where their messages lie.
        beside = 0
        for _ in range(32):
            statements(log, message(key))
            beside += sum("session_versions" in one or "session_messages" in one for one in set(taken))
        assert beside == 4
        traced[0].set_trace_callback(None)

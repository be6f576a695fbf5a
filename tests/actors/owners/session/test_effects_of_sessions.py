"""What the events of a session ask for, as lists of effects."""

from typing import Any

import msgspec
import pytest

from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.session.commands import DeadlinePassed, Enqueue, Unbind
from intersession_actors.owners.session.effects import (
    CallAgent,
    CancelAgent,
    Remember,
    WatchThread,
    beside,
    effects,
)
from intersession_actors.owners.session.state import Session, evolve
from intersession_actors.owners.streams.commands import ChildGone, RunEnded
from intersession_actors.owners.streams.effects import (
    AttemptDue,
    DropStopwatch,
    Effect,
    Pass,
    Report,
    Sleep,
    StartStopwatch,
    StopTimer,
    TellFlow,
    TellSession,
    Until,
)
from intersession_actors.owners.streams.world import NOT_A_FORK, ForkOf
from intersession_events.facts import (
    Budget,
    Event,
    LateReplyDropped,
    Message,
    Route,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    ThreadBound,
    ThreadUnbound,
)
from support.bare_events import bare

KEY = "agent:main:main"
STREAM = f"session:{KEY}"
BUDGET = Budget(root="r", path=(KEY,), hops=1)
OPENED = SessionOpened(key=KEY, session_id="s1", agent_id="main", opened_by="person")
ATTEMPT = ("attempt", "r1", "1")
DEADLINE = ("deadline", "r1")
STARTED = RunStarted(run_id="r1", attempt=1, context_hash="h", tools=None, deadline_ms=8_000)
ENDED = RunCompleted(run_id="r1", attempt=1, text="fine")
FAILED = RunFailed(run_id="r1", attempt=1, code="backend", error="backend: down")


def queued(**fields: Any) -> RunQueued:
    message = Message(id="m1", role="user", content="hello", timestamp=0)
    given: dict[str, Any] = {
        "run_id": "r1",
        "session_id": "s1",
        "step": "message",
        "message": message,
        "budget": BUDGET,
    }
    return RunQueued(**given | fields)


TURN = queued(step="reply", exchange_id="x1", timeout_ms=5_000)


def asked_by(
    *events: Event, ahead: str | None = None, fork: ForkOf = NOT_A_FORK, command: Any = None, last: int = 1
) -> tuple[list[Effect], Session]:
    """Return what the `last` of some events ask for beside that they are remembered, and the session after them."""
    states = [Session()]
    recorded = [bare(STREAM, number, event, time=1_000 * number) for number, event in enumerate(events, 1)]
    for item in recorded:
        states.append(evolve(states[-1], item))
    fresh = recorded[-last:]
    before, after = states[-1 - last], states[-1]
    asked = [*effects(KEY, command, before, after, fresh, fork=fork, told_ahead=ahead)]
    assert asked.count(Remember(fresh)) == 1
    return [effect for effect in asked if effect != Remember(fresh)], after


def word(status: Any, **fields: Any) -> TellFlow:
    ended = RunEnded(
        stream="exchange:x1",
        run_id="r1",
        status=status,
        started_ms=3_000,
        ended_ms=4_000,
        cause="e4",
        **fields,
    )
    return TellFlow(ended)


def told(kind: Any, number: int, **fields: Any) -> Report:
    caused = CausedBy(session_key=KEY, budget=BUDGET, event=f"e{number}")
    return Report(kind, {"session_key": KEY, "run_id": "r1", "attempt": 1} | fields, caused)


@pytest.mark.clause("LOOP-7", "O4")
def test_the_start_of_a_run_that_is_durable_has_its_clock_watched_and_its_agent_called() -> None:
    asked, after = asked_by(OPENED, TURN, STARTED)

    assert after.running is not None
    passed = TellSession(KEY, DeadlinePassed(run_id="r1", attempt=1))
    assert asked == [
        AttemptDue("r1", 1),
        StartStopwatch(ATTEMPT),
        Sleep(DEADLINE, passed, until=(Until(ATTEMPT, 3_000, 5_000),)),
        CallAgent(after.running, OPENED),
    ]


@pytest.mark.clause("S3", "O6")
@pytest.mark.parametrize(("then", "passes"), [((), [Pass("S3")]), ((STARTED,), [])])
def test_a_message_that_waits_for_its_start_passes_a_point_of_the_crash_matrix(
    then: tuple[Event, ...], passes: list[Effect]
) -> None:
    run = msgspec.structs.replace(TURN, timeout_ms=0)
    said = Enqueue(budget=BUDGET, message=Message(id="m1", role="user", content="", timestamp=0), queue=run)

    asked, _ = asked_by(OPENED, run, *then, command=said, last=1 + len(then))

    assert [effect for effect in asked if isinstance(effect, Pass)] == passes


@pytest.mark.clause("LOOP-1", "O4")
def test_a_flow_hears_of_the_end_of_its_run_once() -> None:
    heard = word("ok", text="fine", in_transcript=False)

    assert asked_by(OPENED, TURN, STARTED, ENDED)[0] == [DropStopwatch(ATTEMPT), heard]
    assert asked_by(OPENED, TURN, STARTED, ENDED, ahead="e4")[0] == [DropStopwatch(ATTEMPT)]


@pytest.mark.clause("LOOP-7", "GATE-5")
def test_nobody_works_on_a_run_that_broke_or_was_aborted() -> None:
    over = [DropStopwatch(ATTEMPT), StopTimer(DEADLINE), CancelAgent("r1")]
    why = {"code": "backend", "error": "backend: down", "traceback": None}

    failed, _ = asked_by(OPENED, TURN, STARTED, FAILED)
    aborted, _ = asked_by(OPENED, TURN, STARTED, RunAborted(run_id="r1", by="ann"))

    assert failed == [told("run_failed", 4, **why), *over, word("error", error="backend: down")]
    assert aborted == [*over, word("aborted", by="ann")]


@pytest.mark.clause("O9")
def test_the_operator_is_told_of_what_was_cut_off_or_came_too_late() -> None:
    cut = RunInterrupted(run_id="r1", attempt=1)
    late = LateReplyDropped(run_id="r1", attempt=1, reply="fine")

    assert asked_by(OPENED, TURN, STARTED, cut)[0] == [
        told("run_interrupted", 4),
        DropStopwatch(ATTEMPT),
    ]
    assert asked_by(OPENED, TURN, STARTED, cut, late)[0] == [told("late_reply", 5)]


@pytest.mark.clause("FORK-6")
def test_where_a_fork_was_cut_in_the_middle_of_a_run_nothing_went_wrong() -> None:
    fork = ForkOf(cut_runs=("r1",))

    asked, _ = asked_by(OPENED, TURN, STARTED, RunInterrupted(run_id="r1", attempt=1), fork=fork)

    assert asked == [DropStopwatch(ATTEMPT)]


@pytest.mark.clause("INB-2")
def test_the_operator_is_told_of_a_word_for_silence_to_a_person_alone() -> None:
    silent = msgspec.structs.replace(ENDED, text="REPLY_SKIP")
    route = Route(channel="telegram", to="42")

    assert asked_by(OPENED, queued(route=route), STARTED, silent)[0] == [
        told("reply_withheld", 4),
        DropStopwatch(ATTEMPT),
    ]
    assert asked_by(OPENED, queued(), STARTED, silent)[0] == [DropStopwatch(ATTEMPT)]


@pytest.mark.clause("HIST-7")
def test_a_spawn_hears_that_its_child_is_archived() -> None:
    child = msgspec.structs.replace(OPENED, spawn_id="w1")

    assert asked_by(child, SessionArchived(session_id="s1", reason="deleted"))[0] == [
        TellFlow(ChildGone(stream="spawn:w1"))
    ]
    assert asked_by(OPENED, SessionArchived(session_id="s1", reason="deleted"))[0] == []


@pytest.mark.clause("SPAWN-12")
def test_a_thread_is_measured_from_when_it_was_bound_and_from_what_was_said_there_last() -> None:
    route = Route(channel="chat", to="42", thread="7")
    bound = ThreadBound(route=route, idle_ms=60_000)

    asked, after = asked_by(OPENED, bound)
    assert asked == [StartStopwatch(("bound", KEY)), WatchThread(after)]
    asked, after = asked_by(OPENED, bound, queued())
    assert asked == [StartStopwatch(("said", KEY)), WatchThread(after)]
    asked, after = asked_by(OPENED, bound, ThreadUnbound(route=route, reason="idle"))
    assert asked == [DropStopwatch(("bound", KEY)), DropStopwatch(("said", KEY)), WatchThread(after)]


@pytest.mark.clause("SPAWN-12", "D4")
def test_a_thread_that_is_due_is_not_watched_while_the_store_is_asked_to_take_it_away() -> None:
    """Before: its timer rang at once, and the store that was away was asked again and again, without a pause."""
    _, state = asked_by(OPENED, ThreadBound(route=Route(channel="chat", to="42"), idle_ms=60_000))
    is_due = Unbind(only_due=True)

    assert beside(is_due, state, leads_to_events=True) == ()
    assert beside(is_due, state, leads_to_events=False) == (WatchThread(state),), "it is not time yet"

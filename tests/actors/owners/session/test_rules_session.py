"""The rules of a session: given what happened, when it is told something, then what follows."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession_actors.outside.agents.result import Answered
from intersession_actors.owners.session.answers import decide_answer, decide_failure
from intersession_actors.owners.session.commands import (
    Abort,
    AddMessage,
    Archive,
    Enqueue,
    Patch,
    RecordMessages,
    Reset,
)
from intersession_actors.owners.session.rules import (
    Beginning,
    Circumstances,
    Start,
    decide_abort,
    decide_add,
    decide_archive,
    decide_enqueue,
    decide_messages,
    decide_patch,
    decide_reset,
    decide_start,
    decide_wake,
)
from intersession_actors.owners.session.state import Session, evolve
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.rules.policy.chain import Spent
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.facts import (
    Budget,
    Event,
    LateReplyDropped,
    Limits,
    Message,
    MessageRecorded,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    SessionPatched,
    SessionReset,
    TextBlock,
    decode,
    encode,
    topic_of,
    unsaid,
)
from intersession_events.log.recorded import Recorded
from support.bare_events import bare

KEY = "agent:main:main"
BUDGET = Budget(root="r", path=("agent:ops:main", KEY), hops=1)
NOTHING = Spent()
OPENED = SessionOpened(key=KEY, session_id="s1", agent_id="main", opened_by="person")


def recorded(number: int, event: Event) -> Recorded:
    return bare(f"session:{KEY}", number, event, time=number * 1000, correlation="root")


def state_after(*events: Event) -> Session:
    state = Session()
    for number, event in enumerate(events, start=1):
        state = evolve(state, recorded(number, event))
    return state


def queued(run_id: str, **fields: Any) -> RunQueued:
    return RunQueued(run_id=run_id, session_id="s1", step="message", answers=f"m-{run_id}", **fields)


def accepted(run_id: str, **fields: Any) -> RunQueued:
    return RunQueued(run_id=run_id, session_id="s1", step="message", message=message(run_id), **fields)


def message(run_id: str) -> Message:
    return Message(id=f"m-{run_id}", role="user", content="hello", timestamp=0)


def started(run_id: str, attempt: int = 1) -> RunStarted:
    return RunStarted(run_id=run_id, attempt=attempt, context_hash="h", tools=None)


def enqueue(run_id: str, **fields: Any) -> Enqueue:
    return Enqueue(budget=BUDGET, message=message(run_id), queue=queued(run_id), **fields)


def knowing(**known: Any) -> Circumstances:
    return Circumstances(log_id="log", key=KEY, **known)


def start(state: Session, spent: Spent = NOTHING) -> list[Event]:
    context = RunContext(
        message=message("r"), transcript=(), partial=(), system_context="", hash="h", version=1
    )
    begins = Start(Beginning(None, None, None, None), context)
    return decide_start(state, knowing(start=begins, spent=spent, now_ms=500))


def answer(state: Session, run_id: str, attempt: int, reply: str | None = "fine") -> list[Event]:
    answered = Answered(text=reply)
    return decide_answer(state, answered, run_id=run_id, attempt=attempt, reply=reply, messages=())


# --- the queue


@pytest.mark.clause("SEND-3")
def test_a_message_and_its_run_are_accepted_together() -> None:
    assert decide_enqueue(state_after(OPENED), enqueue("r1")) == [
        accepted("r1", budget=BUDGET),
    ]


@pytest.mark.clause("LOOP-5")
def test_a_run_whose_chain_has_used_all_it_may_meanwhile_ends_and_says_why() -> None:
    used_up = Budget(root="r0", limits=Limits(runs=1, tokens=10))
    state = state_after(OPENED, queued("r1", budget=used_up), queued("r2"))

    assert start(state, Spent(runs=1, tokens=9)) == [started("r1")]
    (failed,) = start(state, Spent(runs=1, tokens=12))

    assert isinstance(failed, RunFailed)
    assert (failed.run_id, failed.code) == ("r1", "limit")
    assert failed.error.startswith("limit: session.agentToAgent.limits.tokens is 10 and ")
    assert "12" in failed.error
    after = state_after(OPENED, queued("r1", budget=used_up), queued("r2"), failed)
    assert start(after, Spent(tokens=12)) == [started("r2")]


@pytest.mark.clause("LOOP-5")
def test_the_run_that_a_chain_begins_with_starts_whatever_was_used() -> None:
    own = Budget(root="r1", limits=Limits(tokens=10))

    assert start(state_after(OPENED, queued("r1", budget=own)), Spent(tokens=12)) == [started("r1")]


@pytest.mark.clause("SEND-10")
def test_runs_start_one_at_a_time_in_the_order_they_were_accepted() -> None:
    two = state_after(OPENED, queued("r1"), queued("r2"))
    busy = state_after(OPENED, queued("r1"), queued("r2"), started("r1"))
    free = state_after(
        OPENED, queued("r1"), queued("r2"), started("r1"), RunCompleted(run_id="r1", attempt=1, text="x")
    )

    assert start(two) == [started("r1")]
    assert start(busy) == []
    assert start(free) == [started("r2")]


@pytest.mark.clause("LOOP-7")
def test_the_deadline_counts_from_the_start_of_the_attempt() -> None:
    (begun,) = start(state_after(OPENED, queued("r1", timeout_ms=2_000)))
    (unlimited,) = start(state_after(OPENED, queued("r1")))

    assert isinstance(begun, RunStarted)
    assert begun.deadline_ms == 500 + 2_000
    assert isinstance(unlimited, RunStarted)
    assert unlimited.deadline_ms == 0


@pytest.mark.clause("SEND-2")
def test_a_session_that_does_not_exist_takes_a_message_only_with_its_opening() -> None:
    refused = decide_enqueue(Session(), enqueue("r1"))
    opened = decide_enqueue(Session(), enqueue("r1", opening=OPENED))

    assert isinstance(refused, Refused)
    assert refused.code == "not_visible"
    assert opened == [
        OPENED,
        accepted("r1", budget=BUDGET),
    ]


@pytest.mark.clause("HIST-6", "X5")
def test_a_send_is_bound_to_the_generation_that_was_authorised() -> None:
    state = state_after(OPENED, SessionReset(session_id="s2", previous_session_id="s1"))

    refused = decide_enqueue(state, enqueue("r1", session_id="s1"))

    assert isinstance(refused, Refused)
    assert refused.code == "not_visible"
    assert not isinstance(decide_enqueue(state, enqueue("r1", session_id="s2")), Refused)


@pytest.mark.clause("L5")
def test_a_full_queue_refuses_what_is_not_of_the_system() -> None:
    state = state_after(OPENED, queued("r1"), started("r1"), queued("r2"))

    refused = decide_enqueue(state, enqueue("r3", at_most=2))

    assert isinstance(refused, Refused)
    assert refused.code == "busy"
    assert not isinstance(decide_enqueue(state, enqueue("r3", at_most=3)), Refused)
    assert not isinstance(decide_enqueue(state, enqueue("r3")), Refused)


@pytest.mark.clause("INB-1")
def test_a_route_is_recorded_when_it_changes() -> None:
    route = RouteChanged(route=Route(channel="telegram", to="42"))

    assert not isinstance(first := decide_enqueue(state_after(OPENED), enqueue("r1", route=route)), Refused)
    assert first[0] == route
    assert not isinstance(
        again := decide_enqueue(state_after(OPENED, route), enqueue("r2", route=route)), Refused
    )
    assert route not in again


@pytest.mark.clause("INB-1")
def test_the_name_of_a_chat_is_recorded_once_and_does_not_undo_a_patch() -> None:
    route = RouteChanged(route=Route(channel="telegram", to="42"), display_name="Ops room")
    named = state_after(OPENED, route, SessionPatched(values={"displayName": "War room"}))

    decided = decide_enqueue(named, enqueue("r1", route=route))

    assert not isinstance(decided, Refused)
    assert route not in decided


# --- attempts


@pytest.mark.clause("SEND-5")
def test_an_answer_ends_the_run_that_is_under_way() -> None:
    state = state_after(OPENED, queued("r1"), started("r1"))

    assert answer(state, "r1", 1) == [RunCompleted(run_id="r1", attempt=1, text="fine")]


@pytest.mark.clause("SEND-5", "HIST-3")
@pytest.mark.parametrize(
    ("reply", "is_reply", "text"), [("It is warm.", True, None), ("warm", False, "warm"), (None, False, None)]
)
def test_the_last_message_of_an_answer_is_recorded_with_the_end_of_its_run(
    reply: str | None, is_reply: bool, text: str | None
) -> None:
    """That the reply is its text is told by itself: once the text is erased, nobody could tell."""
    state = state_after(OPENED, queued("r1"), started("r1"))
    first, last = (
        Message(id=name, role="assistant", content=words, timestamp=0, run_id="r1")
        for name, words in (("a", "I look."), ("b", "It is warm."))
    )

    events = decide_answer(
        state, Answered(text=reply), run_id="r1", attempt=1, reply=reply, messages=(first, last)
    )

    end = RunCompleted(
        run_id="r1", attempt=1, session_id="s1", message=last, message_is_reply=is_reply, text=text
    )
    assert events == [MessageRecorded(session_id="s1", message=first), end]
    assert end.reply == reply
    erased = unsaid(end)
    assert isinstance(erased, RunCompleted)
    assert erased.reply == (None if reply is None else "[erased]")
    assert "warm" not in encode(erased).decode()


@pytest.mark.clause("L3")
@pytest.mark.parametrize("attempt", [1, 3])
def test_an_answer_of_another_attempt_is_kept_and_not_used(attempt: int) -> None:
    state = state_after(
        OPENED, queued("r1"), started("r1"), RunInterrupted(run_id="r1", attempt=1), started("r1", 2)
    )

    assert answer(state, "r1", attempt) == [LateReplyDropped(run_id="r1", attempt=attempt, reply="fine")]


@pytest.mark.clause("L3")
def test_a_failure_ends_only_the_attempt_it_is_of() -> None:
    state = state_after(OPENED, queued("r1"), started("r1"))

    assert decide_failure(state, run_id="r1", attempt=2, code="timeout", error="late") == []
    assert decide_failure(state, run_id="r1", attempt=1, code="timeout", error="late") == [
        RunFailed(run_id="r1", attempt=1, code="timeout", error="timeout: late")
    ]


@pytest.mark.clause("S5")
def test_an_attempt_that_was_cut_off_is_tried_again_before_what_waited_behind_it() -> None:
    cut_off = state_after(OPENED, queued("r1"), queued("r2"), started("r1"))

    (interrupted,) = decide_wake(cut_off, knowing(retries=1))

    assert interrupted == RunInterrupted(run_id="r1", attempt=1)
    assert start(evolve(cut_off, recorded(9, interrupted))) == [started("r1", 2)]


@pytest.mark.clause("S5")
@pytest.mark.parametrize(("retries", "attempt"), [(0, 1), (1, 2), (3, 4)])
def test_a_run_that_is_out_of_attempts_ends_as_interrupted(retries: int, attempt: int) -> None:
    history: list[Event] = [OPENED, queued("r1")]
    for number in range(1, attempt):
        history += [started("r1", number), RunInterrupted(run_id="r1", attempt=number)]
    history.append(started("r1", attempt))

    (failed,) = decide_wake(state_after(*history), knowing(retries=retries))

    assert isinstance(failed, RunFailed)
    assert (failed.code, failed.attempt) == ("interrupted", attempt)


@pytest.mark.clause("S5", "CTX-3")
def test_an_attempt_that_was_refused_as_too_long_is_none_that_was_cut_off() -> None:
    history: list[Event] = [OPENED, queued("r1")]
    for number in (1, 2):
        too_long = RunInterrupted(run_id="r1", attempt=number, too_long="8,000 tokens are too many")
        history += [started("r1", number), too_long]
    cut_off = state_after(*history, started("r1", 3))

    (first,) = decide_wake(cut_off, knowing(retries=1))
    assert first == RunInterrupted(run_id="r1", attempt=3)
    (second,) = decide_wake(
        state_after(*history, started("r1", 3), first, started("r1", 4)), knowing(retries=1)
    )
    assert isinstance(second, RunFailed)


@pytest.mark.clause("P7", "SPAWN-8")
@pytest.mark.parametrize(
    ("given", "age_ms", "ends"),
    [
        ({"spawn_id": "p", "caller": "operator"}, 1_500, True),
        ({"spawn_id": "p", "caller": "operator"}, 1_499, False),
        ({"spawn_id": "p"}, 1_500, False),  # its requester's run on the result: a limit for each attempt
        ({}, 1_500, False),
    ],
)
def test_a_sub_agent_whose_time_was_over_while_the_process_was_down_is_not_tried_again(
    given: dict[str, Any], age_ms: int, ends: bool
) -> None:
    begun = RunStarted(run_id="r1", attempt=1, context_hash="h", deadline_ms=2_000)
    state = state_after(OPENED, queued("r1", timeout_ms=1_500, **given), begun)

    (event,) = decide_wake(state, knowing(retries=1, age_ms=age_ms))

    assert event == (
        RunFailed(run_id="r1", attempt=1, code="timeout", error="timeout: the run had 1.5 s")
        if ends
        else RunInterrupted(run_id="r1", attempt=1)
    )


def test_a_session_at_rest_has_nothing_to_make_good() -> None:
    assert decide_wake(state_after(OPENED, queued("r1")), knowing(retries=1)) == []


@pytest.mark.clause("S5")
def test_the_attempts_of_one_run_are_not_counted_for_the_next() -> None:
    state = state_after(
        OPENED,
        queued("r1"),
        queued("r2"),
        started("r1"),
        RunInterrupted(run_id="r1", attempt=1),
        started("r1", 2),
        RunCompleted(run_id="r1", attempt=2, text="x"),
    )

    assert start(state) == [started("r2", 1)]


@pytest.mark.clause("S5", "GATE-5")
def test_an_abort_in_the_queue_does_not_give_an_interrupted_run_its_attempts_back() -> None:
    state = state_after(
        OPENED,
        queued("r1"),
        queued("r2"),
        started("r1"),
        RunInterrupted(run_id="r1", attempt=1),
        RunAborted(run_id="r2", attempt=0, by="me"),
    )

    assert start(state) == [started("r1", 2)]


@pytest.mark.clause("GATE-5")
def test_a_run_is_aborted_while_it_waits_and_while_it_runs() -> None:
    state = state_after(OPENED, queued("r1"), queued("r2"), started("r1"))

    assert decide_abort(state, Abort(run_id="r1", by="me")) == [RunAborted(run_id="r1", attempt=1, by="me")]
    assert decide_abort(state, Abort(run_id="r2", by="me")) == [RunAborted(run_id="r2", attempt=0, by="me")]
    assert decide_abort(state, Abort(run_id="r9", by="me")) == []


@pytest.mark.clause("GATE-5")
def test_an_abort_of_a_session_ends_what_runs_and_what_waits_in_one_decision() -> None:
    """Before: aborting a session started its queued runs one after the other."""
    state = state_after(OPENED, queued("r1"), queued("r2"), started("r1"), queued("r3"))

    aborted = decide_abort(state, Abort(run_id=None, by="me"))

    assert aborted == [
        RunAborted(run_id="r1", attempt=1, by="me"),
        RunAborted(run_id="r2", attempt=0, by="me"),
        RunAborted(run_id="r3", attempt=0, by="me"),
    ]
    assert start(state_after(OPENED, queued("r1"), queued("r2"), started("r1"), queued("r3"), *aborted)) == []


@pytest.mark.clause("GATE-4")
def test_a_message_that_interrupts_stops_the_run_only_if_it_is_accepted() -> None:
    """Before: `busy: "interrupt"` ended the run under way before the new message was accepted."""
    state = state_after(OPENED, queued("r1"), queued("r2"), started("r1"))

    taken = decide_enqueue(state, enqueue("r3", interrupts="me", at_most=2))
    refused = decide_enqueue(state, enqueue("r3", interrupts="me", at_most=1))

    assert not isinstance(taken, Refused)
    assert [type(event) for event in taken] == [RunAborted, RunQueued]
    assert taken[0] == RunAborted(run_id="r1", attempt=1, by="me")
    assert isinstance(refused, Refused)
    assert refused.code == "busy"


@pytest.mark.clause("GATE-5")
def test_a_run_that_was_aborted_in_the_queue_never_starts() -> None:
    state = state_after(OPENED, queued("r1"), queued("r2"), RunAborted(run_id="r1", attempt=0, by="me"))

    assert start(state) == [started("r2")]


@pytest.mark.clause("GATE-5")
def test_an_abort_keeps_the_text_so_far() -> None:
    said = Message(
        id="m2", role="assistant", content=(TextBlock(text="Half of it"),), timestamp=0, run_id="r1"
    )
    state = state_after(OPENED, queued("r1"), started("r1"), MessageRecorded(session_id="s1", message=said))

    (aborted,) = decide_abort(state, Abort(run_id="r1", by="me"))

    assert isinstance(aborted, RunAborted)
    assert aborted.partial == "Half of it"


def test_only_the_attempt_under_way_puts_messages_into_the_transcript() -> None:
    state = state_after(OPENED, queued("r1"), started("r1", 2))
    said = RecordMessages(run_id="r1", attempt=2, messages=(message("x"),))
    late = RecordMessages(run_id="r1", attempt=1, messages=(message("x"),))

    assert decide_messages(state, said) == [MessageRecorded(session_id="s1", message=message("x"))]
    assert isinstance(decide_messages(state, late), Refused)


# --- settings, generations, the end


@pytest.mark.clause("GATE-2")
def test_a_patch_changes_what_it_names_and_null_clears() -> None:
    state = state_after(OPENED, SessionPatched(values={"label": "ops", "model": "m"}))

    assert decide_patch(state, Patch(values={"label": "dev", "model": "m"}, cleared=("displayName",))) == [
        SessionPatched(values={"label": "dev"})
    ]
    assert decide_patch(state, Patch(values={}, cleared=("label",))) == [
        SessionPatched(values={}, cleared=("label",))
    ]
    assert decide_patch(state, Patch(values={"label": "ops"})) == []


@pytest.mark.clause("GATE-2")
@pytest.mark.parametrize("name", ["spawnedBy", "spawnDepth", "sessionId", "label "])
def test_lineage_and_unknown_settings_are_not_patched(name: str) -> None:
    refused = decide_patch(state_after(OPENED), Patch(values={name: "x"}))

    assert isinstance(refused, Refused)
    assert refused.code == "invalid_request"


@pytest.mark.clause("GATE-2")
def test_a_reset_begins_a_generation_and_keeps_the_settings() -> None:
    state = state_after(OPENED, SessionPatched(values={"label": "ops"}))

    reset = decide_reset(state, Reset(session_id="s2"))

    assert isinstance(reset, list)
    assert reset == [SessionReset(session_id="s2", previous_session_id="s1")]
    after = evolve(state, recorded(9, reset[0]))
    assert (after.session_id, after.settings) == ("s2", {"label": "ops"})


@pytest.mark.clause("GATE-2")
def test_a_reset_ends_what_runs_and_what_waits() -> None:
    state = state_after(OPENED, queued("r1"), queued("r2"), started("r1"))

    events = decide_reset(state, Reset(session_id="s2", by="operator"))

    assert events == [
        RunFailed(run_id="r2", attempt=0, code="target_gone", error="target_gone: the session was reset"),
        RunAborted(run_id="r1", attempt=1, by="operator", gone=True, reset=True),
        SessionReset(session_id="s2", previous_session_id="s1", by="operator"),
    ]


@pytest.mark.clause("HIST-7")
def test_archiving_ends_what_runs_and_what_waits() -> None:
    state = state_after(OPENED, queued("r1"), queued("r2"), started("r1"))

    events = decide_archive(state, Archive(reason="deleted"))

    assert not isinstance(events, Refused)
    assert [type(event) for event in events] == [RunFailed, RunAborted, SessionArchived]
    assert isinstance(events[0], RunFailed)
    assert (events[0].run_id, events[0].code) == ("r2", "target_gone")
    assert isinstance(events[1], RunAborted)
    assert events[1].gone
    after = state_after(OPENED, queued("r1"), queued("r2"), started("r1"), *events)
    assert after.idle
    assert not after.exists
    assert isinstance(decide_archive(after, Archive(reason="deleted")), Refused)


@pytest.mark.clause("HIST-6")
def test_what_was_authorised_for_another_generation_is_refused() -> None:
    """Before: what is done is bound to the session id that was authorised."""
    state = state_after(OPENED, SessionReset(session_id="s2", previous_session_id="s1"))

    decided = [
        decide_enqueue(state, enqueue("r1", session_id="s1")),
        decide_archive(state, Archive(reason="deleted", session_id="s1")),
        decide_reset(state, Reset(session_id="s3", previous="s1")),
        decide_add(state, AddMessage(message=message("r1"), session_id="s1")),
    ]

    assert [each.code for each in decided if isinstance(each, Refused)] == ["not_visible"] * 4


@pytest.mark.clause("SPAWN-11")
def test_a_child_is_not_archived_while_it_has_work_to_do() -> None:
    command = Archive(reason="expired", only_idle=True)

    refused = decide_archive(state_after(OPENED, queued("r1")), command)

    assert isinstance(refused, Refused)
    assert refused.code == "busy"
    assert decide_archive(state_after(OPENED), command) == [
        SessionArchived(session_id="s1", reason="expired")
    ]


@pytest.mark.clause("HIST-7")
def test_an_archived_session_takes_nothing_and_can_be_opened_anew() -> None:
    state = state_after(
        OPENED,
        SessionPatched(values={"sendPolicy": "deny"}),
        SessionArchived(session_id="s1", reason="deleted"),
    )
    new = SessionOpened(key=KEY, session_id="s2", agent_id="main", opened_by="person")

    assert isinstance(decide_add(state, AddMessage(message=message("x"))), Refused)
    assert isinstance(decide_enqueue(state, enqueue("r1")), Refused)
    opened = decide_enqueue(state, enqueue("r1", opening=new))
    assert not isinstance(opened, Refused)
    assert opened[0] == new
    assert evolve(state, recorded(9, new)).send_override is None


STEPS = st.lists(
    st.sampled_from(["enqueue", "start", "answer", "fail", "abort", "cut off", "late"]), max_size=60
)


@pytest.mark.clause("SEND-10", "O1", "O2")
@for_all(STEPS)
def test_whatever_happens_runs_end_once_and_start_in_order(steps: list[str]) -> None:  # noqa: C901 - one case a step
    log: list[Event] = [OPENED]
    names = 0
    for step in steps:
        state = state_after(*log)
        running = state.running.waiting.queued.run_id if state.running is not None else "none"
        attempt = state.running.attempt if state.running is not None else 1
        match step:
            case "enqueue":
                names += 1
                decided = decide_enqueue(state, enqueue(f"r{names}"))
                assert not isinstance(decided, Refused)
                log += decided
            case "start":
                log += start(state)
            case "answer":
                log += answer(state, running, attempt) if running != "none" else []
            case "late":
                log += answer(state, "r1", 7)
            case "fail":
                log += decide_failure(state, run_id=running, attempt=attempt, code="backend", error="x")
            case "abort":
                log += decide_abort(state, Abort(run_id=f"r{names}", by="me"))
            case _:
                log += decide_wake(state, knowing(retries=1))

    ends = [event.run_id for event in log if isinstance(event, RunCompleted | RunFailed | RunAborted)]
    assert len(ends) == len(set(ends))
    starts = [(event.run_id, event.attempt) for event in log if isinstance(event, RunStarted)]
    assert len(starts) == len(set(starts)), "no attempt is made twice"
    first_starts = [run_id for run_id, attempt in starts if attempt == 1]
    assert first_starts == sorted(first_starts, key=lambda run_id: int(run_id[1:]))
    under_way: str | None = None
    for event in log:
        if isinstance(event, RunStarted):
            assert under_way is None
            under_way = event.run_id
        elif isinstance(event, RunCompleted | RunFailed | RunAborted | RunInterrupted):
            under_way = None if event.run_id == under_way else under_way
    assert state_after(*[decode(topic_of(event), encode(event)) for event in log]) == state_after(*log)

"""A call of an earlier attempt is known by its content in the record: its id has nothing of its words (ERASE-4)."""

import uuid
from collections.abc import Sequence

import msgspec
import pytest

from intersession_actors.calls.service.callers import CallingRun
from intersession_actors.calls.tools.made_before import CallsBefore, asks_for, call_ids, words_of
from intersession_events.basics import ids
from intersession_events.facts import Budget, Message, ToolCallBlock

LOG, SOURCE, RUN = str(uuid.UUID(int=1)), str(uuid.UUID(int=2)), "a-run"
SEND = {"sessionKey": "agent:ops:main", "message": "pay"}
SAID = words_of("sessions_send", SEND)


def called(attempt: int, number: int, arguments: object = SEND, log_id: str = LOG) -> ToolCallBlock:
    source = msgspec.json.encode(arguments).decode()
    return ToolCallBlock(
        id=f"{call_ids(log_id, RUN, attempt)}{number}", name="sessions_send", arguments=source
    )


def before(attempt: int, done: Sequence[ToolCallBlock], log_ids: Sequence[str] = (LOG,)) -> CallsBefore:
    run = CallingRun(run_id=RUN, attempt=attempt, budget=Budget(root=RUN))
    messages = [Message(id=f"m{one.id}", role="assistant", content=(one,), timestamp=1) for one in done]
    return CallsBefore(log_ids, run, messages)


@pytest.mark.clause("SEND-13", "ERASE-4")
def test_the_nth_call_in_the_same_words_is_the_nth_of_the_attempts_before() -> None:
    done = [called(1, 4), called(1, 1, {"message": "x"}), called(1, 2), called(2, 1)]
    calls = before(3, done)

    found = [calls.found("call_new", SAID, time) for time in (1, 2, 3, 4)]

    assert [one and one.call_id for one in found] == [done[0].id, done[2].id, done[3].id, None]


@pytest.mark.clause("WORK-6", "ERASE-4")
def test_a_call_that_a_worker_sends_to_the_next_writer_is_known_by_its_place_alone() -> None:
    calls = before(2, [called(1, 1), called(2, 8)])

    assert [one and one.call_id for one in (calls.found(called(2, 8).id, SAID, 2),)] == [called(2, 8).id]
    assert calls.found(called(2, 7).id, SAID, 2) is None  # the eighth is another one in the same words
    again = calls.found(called(2, 6).id, SAID, 1)
    assert again is not None
    assert again.call_id == called(1, 1).id


@pytest.mark.clause("SEND-13", "FORK-4")
def test_a_call_before_a_fork_is_cut_may_have_asked_under_either_log() -> None:
    made = before(2, [called(1, 1, log_id=SOURCE)], (LOG, SOURCE)).found("call_new", SAID, 1)

    assert made is not None
    assert made.may_have_asked_for == tuple(
        (log_id, ids.derive(log_id, "run", made.call_id)) for log_id in (LOG, SOURCE)
    )


@pytest.mark.clause("SEND-13")
def test_a_call_of_the_first_logs_has_asked_under_an_id_of_its_words() -> None:
    """0.1.0 made both ids of the words; an attempt that was cut off there goes on here."""
    old = ids.derive(LOG, "call", RUN, SAID, 1)
    block = msgspec.structs.replace(called(1, 1), id=f"call_{old}")

    made = before(2, [block]).found("call_new", SAID, 1)

    assert made is not None
    assert made.may_have_asked_for == ((LOG, ids.derive(LOG, "run", RUN, SAID, 1)),)
    assert asks_for(LOG, called(1, 1).id, RUN, SAID, 1) == ids.derive(LOG, "run", called(1, 1).id)


@pytest.mark.clause("SEND-13")
def test_a_call_that_an_agent_records_of_its_own_is_none_of_a_session_tool() -> None:
    own = msgspec.structs.replace(called(1, 1), id="call_abc")

    assert before(2, [own]).found("call_new", SAID, 1) is None

"""Waiting for a run: whoever sees the end first, the log or the waiter, everybody who waits hears of it once."""

from collections.abc import Iterator

import pytest

from intersession_actors.calls.service.waits import End, RunWaits, Wait, WaitGraph
from intersession_events.facts import RunCompleted, TurnEnded
from support.any_log import AnyLog, log_at
from support.log_drafts import anywhere, draft

RUN = "run-1"


@pytest.fixture
def log(passing_url: str) -> Iterator[AnyLog]:
    with log_at(passing_url) as opened:
        yield opened


def end(log: AnyLog, run_id: str = RUN) -> None:
    log.append_now(
        (anywhere("session:x", draft(RunCompleted(run_id=run_id, attempt=1, text="yes"), run_id)),)
    )


def is_done(future: End) -> bool:
    future.result(timeout=20)
    return future.done()


@pytest.mark.clause("SEND-9", "GATE-3")
def test_a_waiter_that_sees_the_end_itself_may_have_been_told_already(log: AnyLog) -> None:
    waits = RunWaits(log)
    future = waits.expect(RUN)
    end(log)
    assert is_done(future)

    waits.finish(RUN, future)

    assert is_done(future)


@pytest.mark.clause("SEND-9", "GATE-3")
def test_a_waiter_that_saw_the_end_itself_keeps_nothing_from_the_others(log: AnyLog) -> None:
    waits = RunWaits(log)
    first, second = waits.expect(RUN), waits.expect(RUN)
    waits.finish(RUN, first)

    end(log)

    assert is_done(first)
    assert is_done(second)


@pytest.mark.clause("GATE-3")
def test_who_gave_up_is_not_told(log: AnyLog) -> None:
    waits = RunWaits(log)
    gone, there = waits.expect(RUN), waits.expect(RUN)

    assert waits.forget(RUN, gone)
    assert not waits.forget(RUN, gone)
    end(log)

    assert is_done(there)
    assert not gone.done()


@pytest.mark.clause("SEND-9")
def test_who_waits_is_handed_the_event_that_ended_the_run(log: AnyLog) -> None:
    waits = RunWaits(log)
    waited = waits.expect(RUN)

    end(log)

    assert waited.result(timeout=20) == RunCompleted(run_id=RUN, attempt=1, text="yes")


@pytest.mark.clause("SEND-9", "LIVE-1")
def test_who_waits_for_a_first_reply_is_handed_the_end_of_its_run_that_came_in_a_commit_before(
    log: AnyLog,
) -> None:
    waits = RunWaits(log)
    waited = waits.expect("exchange:e", RUN)

    end(log)
    assert not waited.done()
    turn = TurnEnded(run_id=RUN, turn=0, speaker="agent:ops:main", status="ok")
    log.append_now((anywhere("exchange:e", draft(turn, "turn")),))

    assert waited.result(timeout=20) == RunCompleted(run_id=RUN, attempt=1, text="yes")
    assert not waits.forget("exchange:e", waited, RUN)
    assert waits._ended == {}


@pytest.mark.clause("SEND-10")
def test_only_waits_that_lead_to_the_caller_close_a_cycle() -> None:
    now = 0.0
    graph = WaitGraph(lambda: now)
    for number in range(40):  # none of these leads from c to a
        graph.begin(f"x{number}", "a", seconds=9)
    begun = [graph.begin("a", "b", seconds=2), graph.begin("b", "c", seconds=9)]

    assert all(isinstance(one, Wait) for one in begun)
    assert graph.begin("c", "a", seconds=9) == ("a", "b", "c", "a")
    now = 2.0  # a was cut off, and never said that it waits no longer
    assert isinstance(graph.begin("c", "a", seconds=9), Wait)
    graph.run_ended("c", "r")  # none of its runs waits
    assert graph.begin("a", "b", seconds=9) == ("b", "c", "a", "b")

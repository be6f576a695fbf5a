"""The threads of the doors are shared fairly: no caller and no waiting call can hold them all (findings A13, A21)."""

import threading
from functools import partial
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.assembly.methods.methods import _lane  # pyright: ignore[reportPrivateUsage]
from intersession_actors.calls.service.callers import OPERATOR, Caller
from intersession_actors.running.host.door_threads import ABOUT, DoorThreads, LimitedLane
from intersession_actors.running.host.threads import FairQueue
from intersession_events.basics.errors import StoreUnavailable

WAIT = 20.0


class Hanging:
    """Calls that say which they are, and hang until they may go on."""

    def __init__(self) -> None:
        self.began: Queue[int] = Queue()
        self.go_on = threading.Event()

    def call(self, number: int) -> None:
        self.began.put(number)
        assert self.go_on.wait(WAIT)


def test_who_calls_a_hundred_times_lets_the_others_in_between() -> None:
    threads = DoorThreads(2)
    done: Queue[str] = Queue()
    go_on = threading.Event()
    held = threads.submit(lambda: go_on.wait(WAIT), "held")
    other_held = threads.submit(lambda: go_on.wait(WAIT), "held too")
    for number in range(100):
        threads.submit(lambda number=number: done.put(f"flood {number}"), "flood")  # type: ignore[misc]
    for name in ("ann", "bob"):
        threads.submit(lambda name=name: done.put(name), name)  # type: ignore[misc]
    go_on.set()
    order = [done.get(timeout=WAIT) for _ in range(102)]

    assert held.result(WAIT)
    assert other_held.result(WAIT)
    assert max(order.index("ann"), order.index("bob")) < 8
    assert len(set(order)) == 102
    threads.shutdown()


def test_one_caller_never_holds_more_than_half_of_the_threads() -> None:
    threads, hanging = DoorThreads(4), Hanging()
    for number in range(10):
        threads.submit(partial(hanging.call, number), "slow")
    assert [hanging.began.get(timeout=WAIT) for _ in range(2)] == [0, 1]

    assert threads.submit(lambda: "here", "another").result(WAIT) == "here"
    assert hanging.began.empty()
    hanging.go_on.set()
    assert [hanging.began.get(timeout=WAIT) for _ in range(8)] == list(range(2, 10))
    threads.shutdown()


def test_what_is_about_the_system_is_answered_though_every_thread_hangs() -> None:
    threads, hanging = DoorThreads(4), Hanging()
    for number in range(20):
        threads.submit(partial(hanging.call, number), number)
    for _ in range(4):
        hanging.began.get(timeout=WAIT)

    assert threads.submit(lambda: "well", ABOUT).result(WAIT) == "well"
    assert hanging.began.empty()
    hanging.go_on.set()
    threads.shutdown()


def test_what_was_taken_before_the_end_is_finished_and_nothing_more_is_taken() -> None:
    threads = DoorThreads(1)
    go_on = threading.Event()
    first = threads.submit(lambda: go_on.wait(WAIT))
    second = threads.submit(lambda: "second")
    threads.shutdown()
    go_on.set()

    assert first.result(WAIT)
    assert second.result(WAIT) == "second"
    with pytest.raises(StoreUnavailable, match="closed"):
        threads.submit(lambda: "third")


def test_what_the_work_raises_is_the_callers() -> None:
    def fail() -> None:
        raise SystemExit(1)

    threads = DoorThreads(1)
    with pytest.raises(SystemExit):
        threads.submit(fail).result(WAIT)
    threads.shutdown()


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=40))
def test_lanes_are_served_in_turns_and_each_in_its_order(lanes: list[str | None]) -> None:
    queue: FairQueue[tuple[str | None, int]] = FairQueue()
    for number, lane in enumerate(lanes):
        queue.put(lane, (lane, number))
    taken: list[tuple[str | None, int]] = []
    while (item := queue.take()) is not None:
        taken.append(item)

    assert sorted(number for _, number in taken) == list(range(len(lanes)))
    assert queue.clear() == []
    for lane in set(lanes):
        own = [number for of, number in taken if of == lane]
        assert own == sorted(own)
        # Before the n-th of a lane, no other lane had more than n.
        for nth, number in enumerate(own):
            before = taken[: taken.index((lane, number))]
            assert all(sum(of == other for of, _ in before) <= nth + 1 for other in set(lanes))


def test_a_lane_that_may_not_go_on_is_passed_over_and_keeps_its_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "b1"):
        queue.put(item[0], item)
    queue.remove("a", "a1")
    queue.remove("a", "nothing")

    assert queue.take(lambda lane: lane != "a") == "b1"
    assert queue.take(lambda lane: lane != "a") is None
    assert queue.take() == "a2"
    queue.put("c", "c1")
    assert queue.clear() == ["c1"]
    assert queue.take() is None


READER = Caller.by_credential("reader", ("agent:main:*",))


@pytest.mark.clause("L6")
def test_a_limited_credential_has_four_of_sixteen_threads_and_the_operator_is_answered_meanwhile() -> None:
    """Each of its questions was a lane of its own, so that the operator's had one turn among dozens."""
    threads, go = DoorThreads(16), threading.Event()
    at_work, started = threading.Semaphore(0), list[int]()

    def holds(number: int) -> None:
        started.append(number)
        at_work.release()
        go.wait(WAIT)

    asked = [threads.submit(partial(holds, number), LimitedLane("reader")) for number in range(40)]
    for _ in range(4):
        assert at_work.acquire(timeout=WAIT)
    answered = [threads.submit(lambda: "answered", ("operator", name)).result(WAIT) for name in range(20)]
    held = len(started)
    go.set()
    for one in asked:
        one.result(WAIT)
    threads.shutdown()

    assert answered == ["answered"] * 20
    assert held == 4
    assert started == list(range(40))


@pytest.mark.clause("L6")
def test_whatever_a_limited_credential_asks_is_in_one_lane() -> None:
    asked = [("chat.history", {"sessionKey": str(number)}) for number in range(5)] + [("debug.runs", {})]

    assert {_lane(method, params, READER) for method, params in asked} == {LimitedLane("credential:reader")}
    assert len({_lane(method, params, OPERATOR) for method, params in asked}) == 6

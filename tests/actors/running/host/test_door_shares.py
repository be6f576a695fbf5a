"""A limited credential has a share of the threads of the doors, however much it asks, and whatever it asks for."""

import threading
from functools import partial

import pytest

from intersession_actors.assembly.methods.methods import _lane  # pyright: ignore[reportPrivateUsage]
from intersession_actors.calls.service.callers import OPERATOR, Caller
from intersession_actors.running.host.door_threads import DoorThreads, LimitedLane

WAIT = 20.0
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

"""Workers that wait for calls through the gateway: who is given what, and who looks itself."""

from collections.abc import Sequence
from typing import Any

from intersession_actors.outside.workers.takers import Asking, Takers
from intersession_events.log.work_queue import Offer, Taker
from support.work_queue import offer, worker

WORKERS = (worker("w1"), worker("w2", "research"), worker("w3"))


def made(calls: Sequence[Offer]) -> Any:
    return {"offers": [one.id for one in calls]}


def waiting(*names: str, most: int = 1, looks: bool = False) -> tuple[Takers, list[Asking]]:
    takers = Takers()
    return takers, [takers.asks(Taker(name, most), made, looks=looks) for name in names]


def test_those_are_chosen_that_can_make_the_calls_the_longest_first() -> None:
    takers, (first, other, third) = waiting("w1", "w2", "w3")

    assert takers.of([offer("a"), offer("b", agent="research")], WORKERS) == [first, other]
    assert takers.of([offer("c"), offer("d")], WORKERS) == [third]
    assert takers.all() == []


def test_one_with_room_for_all_is_chosen_alone() -> None:
    takers, (first, third) = waiting("w1", "w3", most=2)

    assert takers.of([offer("a"), offer("b")], WORKERS) == [first]
    assert takers.all() == [third]


def test_one_that_looks_itself_is_given_nothing_but_told_to_look_again() -> None:
    takers, (asking,) = waiting("w1", looks=True)

    assert takers.of([offer("a")], WORKERS) == []
    assert takers.of([offer("a")], WORKERS, looking=True) == [asking]
    asking.give(())
    assert asking.given.result(0) is None


def test_those_wait_on_for_whom_nothing_could_be_taken_unless_they_are_over() -> None:
    takers, (first, third) = waiting("w1", "w3")
    chosen = takers.of([offer("a"), offer("b")], WORKERS)
    takers.asks_no_more(first)

    assert takers.put_back(chosen) == [first]
    assert takers.of([offer("a")], WORKERS) == [third]
    third.give([offer("a")])
    assert third.given.result(0) == {"offers": ["run-a"]}


def test_an_error_reaches_the_one_that_waits() -> None:
    def broken(_: Sequence[Offer]) -> Any:
        raise ValueError("of its events")

    asking = Takers().asks(Taker("w1", 1), broken, looks=False)
    asking.give([offer("a")])

    assert isinstance(asking.given.exception(0), ValueError)

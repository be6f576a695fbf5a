"""Tries a race in every order that departs from the plain one at most so often, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from support.races.turns import Turns

Race = Callable[[Turns], Callable[[], None]]
"""Adds its threads, and returns what has to hold when they have come to rest."""

MOST: Final = 1_000_000


@dataclass
class Explored:
    """What came of it: how many orders were tried, and the first that failed, as its choices."""

    orders: int
    error: BaseException | None = None
    failed: Sequence[int] = ()


def explored(race: Race, *, departures: int) -> Explored:
    """Try a race until an order fails, or none is left, with no departure first.

    In the plain order a thread goes on until it has to wait, and then the one that was added first does. Almost every race
    that was ever found needs one or two departures from that.
    """
    orders = 0
    for most in range(departures + 1):
        plan: list[int] | None = []
        while plan is not None:
            points, error = _once(race, plan)
            orders += 1
            if error is not None:
                return Explored(orders, error, tuple(chosen for chosen, _ in points))
            if orders == MOST:
                raise RuntimeError(f"there are more than {MOST} orders: allow fewer departures")
            plan = _next(points, most)
    return Explored(orders)


def _once(race: Race, plan: Sequence[int]) -> tuple[list[tuple[int, int]], BaseException | None]:
    """Have a race once, and return each choice, of how many it was one, and what went wrong."""
    points: list[tuple[int, int]] = []

    def choose(choices: int) -> int:
        chosen = plan[len(points)] if len(points) < len(plan) else 0
        points.append((chosen, choices))
        return chosen

    turns = Turns(choose)
    with turns.taken():
        try:
            holds = race(turns)
            turns.go()
            holds()
        except BaseException as error:  # noqa: BLE001 - an order that fails in whatever way is what is looked for
            return points, error
    return points, None


def _next(points: Sequence[tuple[int, int]], most: int) -> list[int] | None:
    """Return the choices that lead to the next order with just so many departures: the last that can be made otherwise."""
    before = [0]
    for chosen, _ in points:
        before.append(before[-1] + (chosen > 0))
    for index in range(len(points) - 1, -1, -1):
        chosen, choices = points[index]
        if chosen + 1 < choices and before[index] < most:
            return [chosen for chosen, _ in points[:index]] + [chosen + 1]
    return None

"""The sessions whose exchanges are held, as the coordinator knows them: told of each commit, and at the start of what stands."""

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from intersession_actors.holding.rule import RuleCaller
from intersession_actors.policy import HoldOrder
from intersession_events import facts
from intersession_events.log import Recorded

HELD: Final = "hold"
"""The setting of a session, as its events have it."""
_STREAM: Final = "session:"


class HeldSessions:
    """Which sessions are held. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: dict[str, tuple[int, HoldOrder | None]] = {}

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take in what was recorded, in whichever order it is told."""
        for recorded in batch:
            if not isinstance(recorded.event, facts.SessionPatched | facts.SessionArchived):
                continue
            found = order_in(recorded)
            if found is not None:
                self._put(recorded.stream.removeprefix(_STREAM), recorded.position, *found)

    def orders(self, *keys: str | None) -> tuple[HoldOrder, ...]:
        """Return what is wanted of the exchanges of some sessions."""
        with self._lock:
            found = (self._orders.get(key, (0, None))[1] for key in keys if key is not None)
            return tuple(order for order in found if order is not None)

    def _put(self, key: str, position: int, order: HoldOrder | None) -> None:
        with self._lock:
            if position >= self._orders.get(key, (0, None))[0]:
                self._orders[key] = position, order


def order_in(recorded: Recorded) -> tuple[HoldOrder | None] | None:
    """Return what an event of a session says of a hold: an order, or that there is none; None if it says nothing."""
    match recorded.event:
        case facts.SessionPatched(values=values, by=by) if HELD in values:
            before = next((one for one in get_args(facts.HoldBefore) if one == values[HELD]), None)
            if before is None:
                return (None,)
            return (HoldOrder(source="session", before=before, by=by or "operator", order=recorded.id),)
        case facts.SessionPatched(cleared=cleared) if HELD in cleared:
            return (None,)
        case facts.SessionArchived():
            return (None,)
        case _:
            return None


class Holds(NamedTuple):
    """What an actor is handed of holds: the sessions that are held, and the host's rule, where there is one."""

    sessions: HeldSessions
    rule: RuleCaller | None = None

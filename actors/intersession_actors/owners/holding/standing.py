"""The held sessions, as the coordinator knows them: from each commit, and at the start from the view."""

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from intersession_actors.owners.holding.rule import RuleCaller
from intersession_actors.rules.policy.holding import HoldOrder
from intersession_events import facts
from intersession_events.basics.ids import SESSIONS
from intersession_events.log.recorded import Recorded

HELD: Final = "hold"
"""The setting of a session, as its events have it."""
_MOST_OVER: Final = 100
"""Commits that are told out of order are neighbours, so the last of these are enough."""


class HeldSessions:
    """The held sessions. Its methods may be called from any thread."""

    HANDLES = facts.SessionPatched | facts.SessionArchived

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: dict[str, tuple[int, HoldOrder]] = {}
        self._over: dict[str, int] = {}
        """Where holds ended lately, for an older event that is told after that."""

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take in recorded events, in any order."""
        for recorded in batch:
            found = order_in(recorded)
            if found is not None:
                self._put(recorded.stream.removeprefix(SESSIONS), recorded.position, *found)

    def orders(self, *keys: str | None) -> tuple[HoldOrder, ...]:
        """Return the ordered holds for the exchanges of some sessions."""
        with self._lock:
            return tuple(self._orders[key][1] for key in keys if key is not None and key in self._orders)

    def _put(self, key: str, position: int, order: HoldOrder | None) -> None:
        with self._lock:
            if position < max(self._orders[key][0] if key in self._orders else 0, self._over.get(key, 0)):
                return
            self._orders.pop(key, None)
            self._over.pop(key, None)
            if order is not None:
                self._orders[key] = position, order
                return
            self._over[key] = position
            if len(self._over) > _MOST_OVER:
                del self._over[next(iter(self._over))]


def order_in(recorded: Recorded) -> tuple[HoldOrder | None] | None:
    """Return a session event's order of a hold, or its end; None for an unrelated event."""
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
    """An actor's access to holds: the held sessions, and the host's rule, if there is one."""

    sessions: HeldSessions
    rule: RuleCaller | None = None

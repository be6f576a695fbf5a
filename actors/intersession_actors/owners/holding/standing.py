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


class HeldSessions:
    """The held sessions. Its methods may be called from any thread."""

    HANDLES = facts.SessionPatched | facts.SessionArchived

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: dict[str, HoldOrder] = {}

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take in recorded events, in the order of the log."""
        for recorded in batch:
            found = order_in(recorded)
            if found is None:
                continue
            key, (order,) = recorded.stream.removeprefix(SESSIONS), found
            with self._lock:
                if order is None:
                    self._orders.pop(key, None)
                else:
                    self._orders[key] = order

    def orders(self, *keys: str | None) -> tuple[HoldOrder, ...]:
        """Return the ordered holds for the exchanges of some sessions."""
        with self._lock:
            return tuple(self._orders[key] for key in keys if key is not None and key in self._orders)


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

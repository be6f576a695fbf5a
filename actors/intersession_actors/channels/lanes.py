"""Seats for the calls of each channel, so that one that hangs holds up itself and no other; for the caller of channels."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from intersession_actors.host import Call


class Calls(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many calls of a channel are under way, wait for a seat, and are lost: given up, and not come back."""

    under_way: int
    waiting: int
    lost: int


class Waiting(NamedTuple):
    """A call that waits for a seat: how it begins, and what is done if it never will."""

    begin: Callable[[], None]
    drop: Callable[[], None]


class _Lane:
    def __init__(self) -> None:
        self.under_way = 0
        self.waiting: deque[Waiting] = deque()
        self.lost: set[Call] = set()

    def still_lost(self) -> int:
        self.lost = {call for call in self.lost if call.is_zombie}
        return len(self.lost)


class Lanes:
    """One lane for each channel, in which `seats` calls may be under way; others wait in order of arrival."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._lock = threading.Lock()
        self._lanes: defaultdict[str, _Lane] = defaultdict(_Lane)
        self._closed = False

    def enter(self, name: str, waiting: Waiting) -> None:
        """Begin a call, or let it wait for a seat. Neither `begin` nor `drop` is called under a lock."""
        with self._lock:
            lane = self._lanes[name]
            closed, free = self._closed, lane.under_way < self._seats
            if free and not closed:
                lane.under_way += 1
            elif not closed:
                lane.waiting.append(waiting)
        if closed:
            waiting.drop()
        elif free:
            waiting.begin()

    def leave(self, name: str) -> None:
        """Free a seat: the call came back or was given up. The next one begins."""
        with self._lock:
            lane = self._lanes[name]
            waiting = lane.waiting.popleft() if lane.waiting else None
            if waiting is None:
                lane.under_way -= 1
        if waiting is not None:
            waiting.begin()

    def lose(self, name: str, call: Call) -> None:
        """Count a call that was given up until it comes back: a thread, or a task that does not end."""
        with self._lock:
            self._lanes[name].lost.add(call)

    def lost(self, name: str) -> int:
        """How many calls of a channel were given up and have not come back."""
        with self._lock:
            return self._lanes[name].still_lost() if name in self._lanes else 0

    def calls(self) -> dict[str, Calls]:
        """Return the calls of each channel that has any, by name."""
        with self._lock:
            counted = {
                name: Calls(under_way=lane.under_way, waiting=len(lane.waiting), lost=lane.still_lost())
                for name, lane in sorted(self._lanes.items())
            }
        return {
            name: calls for name, calls in counted.items() if calls.under_way or calls.waiting or calls.lost
        }

    def close(self) -> None:
        """Begin nothing more, and drop what waits."""
        with self._lock:
            self._closed = True
            left = [waiting for lane in self._lanes.values() for waiting in lane.waiting]
            for lane in self._lanes.values():
                lane.waiting.clear()
        for waiting in left:
            waiting.drop()

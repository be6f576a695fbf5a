"""Seats for the calls of each channel: a channel that hangs delays only itself."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from intersession_actors.running.host.calls import Call


class Calls(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How many calls of a channel are running, wait for a seat, and are lost: given up, and not returned.

    `paused`: no more begin, since the service wants to be left alone (ANN-8).
    """

    under_way: int
    waiting: int
    lost: int
    paused: bool = False


class Waiting(NamedTuple):
    """A waiting call: how it begins, and what happens if it never does."""

    begin: Callable[[], None]
    drop: Callable[[], None]


class _Lane:
    def __init__(self) -> None:
        self.under_way = 0
        """Calls, and seats that are kept for one."""
        self.waiting: deque[Waiting] = deque()
        self.asking: dict[str, Callable[[], None]] = {}
        """Who is to be told of a free seat, in order, by the key of what will be called."""
        self.lost: set[Call] = set()
        self.paused = False
        """Whether no seat is given: the service wants to be left alone (ANN-8)."""

    def still_lost(self) -> int:
        self.lost = {call for call in self.lost if call.is_zombie}
        return len(self.lost)


class Lanes:
    """One lane for each channel with `seats` concurrent calls; others wait in order of arrival.

    A seat can be kept before there is a call (`keep`), by a key that the call then has.
    """

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._lock = threading.Lock()
        self._lanes: defaultdict[str, _Lane] = defaultdict(_Lane)
        self._closed = False
        self._kept: dict[str, str] = {}
        """Seats without a call, the lane of each by its key."""

    def keep(self, name: str, key: str, free: Callable[[], None]) -> bool:
        """Reserve a seat for a call; without a free one, `free` is called when there is. Repeated, it is the same seat."""
        with self._lock:
            lane = self._lanes[name]
            if self._kept.get(key) == name:
                return True
            if self._closed or lane.paused or lane.under_way >= self._seats:
                lane.asking[key] = free
                return False
            lane.under_way += 1
            self._kept[key] = name
            return True

    def give_back(self, key: str) -> None:
        """Free the reserved seat of a call that will not be made, if there is one."""
        with self._lock:
            name = self._kept.pop(key, None)
            for lane in self._lanes.values():
                lane.asking.pop(key, None)
        if name is not None:
            self.leave(name)

    def enter(self, name: str, waiting: Waiting, key: str = "") -> None:
        """Begin a call, or let it wait for a seat. Neither `begin` nor `drop` is called under a lock."""
        with self._lock:
            lane = self._lanes[name]
            kept = self._kept.get(key) == name
            closed, free = self._closed, kept or lane.under_way < self._seats
            if kept:
                del self._kept[key]
            elif free and not closed:
                lane.under_way += 1
            elif not closed:
                lane.waiting.append(waiting)
        if closed:
            waiting.drop()
        elif free:
            waiting.begin()

    def leave(self, name: str) -> None:
        """Free a seat after a call returned or was given up. The next call begins, or is told of its seat."""
        with self._lock:
            lane = self._lanes[name]
            begin: Callable[[], None] | None = None
            if lane.waiting:
                begin = lane.waiting.popleft().begin
            elif lane.asking and not lane.paused:
                key = next(iter(lane.asking))
                begin = lane.asking.pop(key)
                self._kept[key] = name
            else:
                lane.under_way -= 1
        if begin is not None:
            begin()

    def pause(self, name: str) -> None:
        """Give no more seats of a channel, until `resume`."""
        with self._lock:
            self._lanes[name].paused = True

    def resume(self, name: str) -> None:
        """Give seats again: those that ask are told, in order."""
        with self._lock:
            lane, told = self._lanes[name], list[Callable[[], None]]()
            lane.paused = False
            while lane.asking and lane.under_way < self._seats and not self._closed:
                key = next(iter(lane.asking))
                told.append(lane.asking.pop(key))
                self._kept[key] = name
                lane.under_way += 1
        for free in told:
            free()

    def lose(self, name: str, call: Call) -> None:
        """Count a call that was given up until it returns: a thread, or a task that does not end."""
        with self._lock:
            self._lanes[name].lost.add(call)

    def lost(self, name: str) -> int:
        """How many calls of a channel were given up and have not returned."""
        with self._lock:
            return self._lanes[name].still_lost() if name in self._lanes else 0

    def calls(self) -> dict[str, Calls]:
        """Return the calls of each channel, by name."""
        with self._lock:
            counted = {
                name: Calls(
                    under_way=lane.under_way,
                    waiting=len(lane.waiting) + len(lane.asking),
                    lost=lane.still_lost(),
                    paused=lane.paused,
                )
                for name, lane in sorted(self._lanes.items())
            }
        return {
            name: calls
            for name, calls in counted.items()
            if calls.under_way or calls.waiting or calls.lost or calls.paused
        }

    def close(self) -> None:
        """Begin no more calls, and drop waiting ones."""
        with self._lock:
            self._closed = True
            left = [waiting for lane in self._lanes.values() for waiting in lane.waiting]
            for lane in self._lanes.values():
                lane.waiting.clear()
                lane.asking.clear()
        for waiting in left:
            waiting.drop()

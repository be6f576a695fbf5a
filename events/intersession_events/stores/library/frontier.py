"""Knows the last position of the log, and tells those that wait for a position or listen for commits."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, get_args

import msgspec

from intersession_events.facts import Event, kinds_of
from intersession_events.log.log import Kinds, OnCommitted
from intersession_events.log.recorded import Recorded

_LOGGER: Final = logging.getLogger("intersession.store")


class _Listener(msgspec.Struct, frozen=True, eq=False):
    hear: OnCommitted
    kinds: tuple[type[Event], ...] | None
    first: bool


class _Listeners:
    """Some listeners, and the kinds of events that each asked for."""

    def __init__(self, known: tuple[_Listener, ...]) -> None:
        self.known = known
        self.asking: dict[type[msgspec.Struct], list[_Listener]] = {}
        for listener in known:
            for kind in listener.kinds or ():
                self.asking.setdefault(kind, []).append(listener)


def _tell(listeners: _Listeners, recorded: Sequence[Recorded]) -> None:
    """Give events to listeners by their kinds; an error of one does not reach the others."""
    if not listeners.known:
        return
    asking, asked = listeners.asking, dict[_Listener, list[Recorded]]()
    for item in recorded:
        for kind in kinds_of(item.event):
            for listener in asking.get(kind, ()):
                batch = asked.setdefault(listener, [])
                if not batch or batch[-1] is not item:
                    batch.append(item)
    for listener in listeners.known:
        heard = recorded if listener.kinds is None else asked.get(listener)
        if not heard:
            continue
        try:
            listener.hear(heard)
        except (Exception, SystemExit):
            _LOGGER.exception("a listener to commits raised; it must not")


class Frontier:
    """The position of the last event, waiters for positions, and listeners to commits."""

    def __init__(self, head: int) -> None:
        self._head = head
        self._moved = threading.Condition()
        self._closed = False
        self._first = self._others = _Listeners(())

    def waits_on(self, condition: threading.Condition) -> None:
        """Make waiting threads wait on another condition: a simulation's."""
        self._moved = condition

    @property
    def head(self) -> int:
        """The position of the last committed event."""
        return self._head

    def advance(self, position: int) -> int:
        """Note a commit, wake those that wait for it, and return the position of its last event."""
        with self._moved:
            self._head = max(self._head, position)
            self._moved.notify_all()
            return self._head

    def tell_first(self, recorded: Sequence[Recorded]) -> None:
        """Give committed events to the listeners that come before those that wait for the commit."""
        _tell(self._first, recorded)

    def tell_others(self, recorded: Sequence[Recorded]) -> None:
        """Give committed events to all other listeners."""
        _tell(self._others, recorded)

    def tell(self, recorded: Sequence[Recorded], position: int) -> None:
        """Give events to all listeners, for commits that no caller here waits for, and advance to a position between the two groups."""
        self.tell_first(recorded)
        self.advance(position)
        self.tell_others(recorded)

    def listen(self, hear: OnCommitted, of: Kinds = None, *, first: bool = False) -> Callable[[], None]:
        """Call a listener with everything that is committed from now on, or with events of some kinds. Returns a function that stops it."""
        kinds = None if of is None else (of,) if isinstance(of, type) else get_args(of)
        listener = _Listener(hear, kinds, first)
        self._listening(lambda known: (*known, listener))
        return lambda: self._listening(lambda known: tuple(one for one in known if one is not listener))

    def _listening(self, change: Callable[[tuple[_Listener, ...]], tuple[_Listener, ...]]) -> None:
        with self._moved:
            known = change((*self._first.known, *self._others.known))
            self._first = _Listeners(tuple(one for one in known if one.first))
            self._others = _Listeners(tuple(one for one in known if not one.first))

    @property
    def is_closed(self) -> bool:
        """Whether the log is closed, and gets no further."""
        return self._closed

    def wait_for(self, position: int, timeout: float) -> bool:
        """Wait until the log has reached a position; False if it does not in time, or is closed."""
        self.wait_until(lambda: self._head >= position, timeout)
        return self._head >= position

    def wait_until(self, happened: Callable[[], bool], timeout: float) -> None:
        """Wait for a condition that a commit or a `wake` can make true, at most until the log is closed."""
        with self._moved:
            self._moved.wait_for(lambda: happened() or self._closed, timeout)

    def wake(self) -> None:
        """Let all waiting threads check their condition again."""
        with self._moved:
            self._moved.notify_all()

    def close(self) -> None:
        """Wake all waiting threads."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()

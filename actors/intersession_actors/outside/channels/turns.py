"""The texts on their way: whose turn it is among those to one place (ANN-5), and what this process has asked of channels.

Texts to one place arrive in the order in which they were decided.

A text waits while an earlier one to its place is under way or is tried again. One that has failed for ten minutes holds nothing
back for good: right after each of its failures the one behind it is tried. Where that one arrives, the service is well, and the
text that fails is left to itself.
"""

import threading
from bisect import insort
from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, NamedTuple, Self, TypeVar

from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_events.facts import Route

LONGEST_WAIT_S: Final = 600.0
"""How long a failing text, from its first failure in this process, holds back later ones."""


class Place(NamedTuple):
    """A place whose texts have one order."""

    channel: str
    account: str | None
    to: str
    thread: str | None

    @classmethod
    def of(cls, route: Route) -> Self:
        """Return the place of a route."""
        return cls(route.channel, route.account, route.to, route.thread)


class _Text:
    def __init__(self, key: str, order: int) -> None:
        self.key = key
        self.order = order
        self.failing_since: float | None = None
        self.fails = False
        """Whether its last attempt failed, and it waits to be tried again."""
        self.left_alone = False
        """Whether it holds nothing back any more, and nothing holds it back."""
        self.passes = False
        """Whether it may go out before those ahead of it, once."""
        self.free: Callable[[], None] | None = None
        """Who is to be told when it may go out, if that is waited for."""


class Turns:
    """Outgoing texts, by place and in order. Its methods may be called from any thread."""

    def __init__(self, clock: Clock | None = None, threads: Threads | None = None) -> None:
        self._clock = clock
        self._lock = (threads or MachineThreads()).changed()
        self._lines: dict[Place, list[_Text]] = {}
        self._places: dict[str, Place] = {}

    def __len__(self) -> int:
        """Return how many texts are kept in mind."""
        return len(self._places)

    def enter(self, place: Place, key: str, order: int) -> None:
        """Add a text by the position of its decision. A known one keeps its place."""
        with self._lock:
            self._entered(place, key, order)

    def take(self, place: Place, key: str, order: int, free: Callable[[], None]) -> bool:
        """Return whether a text may go out now; if not, `free` is called when it may."""
        with self._lock:
            line = self._entered(place, key, order)
            text = next(text for text in line if text.key == key)
            if text.passes or text.left_alone or _first(line) is text:
                text.passes, text.fails, text.free = False, False, None
                return True
            text.free = free
            return False

    def waits(self, key: str) -> bool:
        """Whether a text waits for an earlier one that failed and will be retried."""
        with self._lock:
            line = self._line_of(key)
            text = next((text for text in line if text.key == key), None)
            first = _first(line)
            return text is not None and first is not None and first is not text and first.fails

    def failed(self, key: str) -> None:
        """Note that a text failed and will be retried."""
        with self._lock:
            line = self._line_of(key)
            text = next((text for text in line if text.key == key), None)
            if text is None:
                return
            text.fails = True
            if text.failing_since is None:
                text.failing_since = self._now()
            free = self._let_next_pass(line, text) if self._holds_too_long(text) else None
        if free is not None:
            free()

    def over(self, key: str, *, arrived: bool = False) -> None:
        """Remove a finished text. If it `arrived`, earlier texts that fail too long no longer hold back others."""
        with self._lock:
            line = self._line_of(key)
            at = next((at for at, text in enumerate(line) if text.key == key), None)
            if at is None:
                return
            place = self._places.pop(key)
            text = line.pop(at)
            if not line:
                del self._lines[place]
            if arrived and not text.left_alone:
                for ahead in line[:at]:
                    ahead.left_alone = ahead.left_alone or self._holds_too_long(ahead)
            first = _first(line)
            free = first.free if first is not None else None
            if first is not None:
                first.free = None
        if free is not None:
            free()

    def _entered(self, place: Place, key: str, order: int) -> list[_Text]:
        if key not in self._places:
            self._places[key] = place
            insort(self._lines.setdefault(place, []), _Text(key, order), key=lambda text: text.order)
        return self._lines[self._places[key]]

    def _line_of(self, key: str) -> list[_Text]:
        place = self._places.get(key)
        return [] if place is None else self._lines[place]

    def _let_next_pass(self, line: list[_Text], text: _Text) -> Callable[[], None] | None:
        behind = next((one for one in line[line.index(text) + 1 :] if not one.left_alone), None)
        if behind is None or behind.free is None:
            return None  # it is at work, or waits for its own time
        free, behind.free, behind.passes = behind.free, None, True
        return free

    def _holds_too_long(self, text: _Text) -> bool:
        return text.failing_since is not None and self._now() - text.failing_since >= LONGEST_WAIT_S

    def _now(self) -> float:
        return self._clock.monotonic() if self._clock is not None else 0.0


def _first(line: list[_Text]) -> _Text | None:
    return next((text for text in line if not text.left_alone), None)


R = TypeVar("R")


class CallState(Enum):
    """The state of a call without an outcome."""

    DUE = "due"
    """It is about to be made: that it begins is on record, or soon will be, and the channel does not know of it."""
    UNDER_WAY = "under way"
    NEVER = "never"
    """This process has not made it, or its outcome is on record."""


class Attempts(Generic[R]):
    """The calls of this process by idempotency key and attempt. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, int], R | CallState] = {}

    def due(self, key: str, attempt: int) -> None:
        """Note a call that is about to be made."""
        with self._lock:
            self._asked[key, attempt] = CallState.DUE

    def begin(self, key: str, attempt: int) -> None:
        """Note a call that is made."""
        with self._lock:
            self._asked[key, attempt] = CallState.UNDER_WAY

    def came(self, key: str, attempt: int, result: R) -> None:
        """Store an outcome until it is recorded."""
        with self._lock:
            self._asked[key, attempt] = result

    def recorded(self, key: str, attempt: int) -> None:
        """Drop an attempt whose outcome is recorded."""
        with self._lock:
            self._asked.pop((key, attempt), None)

    def of(self, key: str, attempt: int) -> R | CallState:
        """Return an attempt's outcome, or its state, or None if it is unknown here."""
        with self._lock:
            return self._asked.get((key, attempt), CallState.NEVER)

"""The texts on their way: whose turn it is among those to one place (ANN-5), and what this process has asked of channels.

Texts to one place go out in the order in which they were decided. A text waits while an earlier one to its place is under way or is
tried again: until the channel has taken that one, or it is given up, or its age is up.
"""

import threading
from bisect import insort
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Generic, NamedTuple, Self, TypeVar

from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_events.facts import DeliveryDecided, Route
from intersession_events.log.recorded import Recorded

_MOST_COUNTED: Final = 4_096
"""The number of places without a text on its way whose count is kept in memory."""


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
    def __init__(self, key: str, order: int, number: int | None) -> None:
        self.key = key
        self.order = order
        self.number = number
        """Which text of its place it is, from 1; None if nobody has counted, 0 if that could not be found out."""
        self.fails = False
        """Whether its last attempt failed, and it waits to be tried again."""
        self.free: Callable[[], None] | None = None
        """Who is to be told when it may go out, if that is waited for."""


class Turns:
    """Outgoing texts, by place and in order, each with its number there. Its methods may be called from any thread.

    It hears of each text as that is recorded (`take`, of the log's listeners), so the order is that of the log, whichever session's
    word reaches the outbox first.
    """

    HANDLES = DeliveryDecided

    def __init__(self, threads: Threads | None = None) -> None:
        self._lock = (threads or MachineThreads()).changed()
        self._lines: dict[Place, list[_Text]] = {}
        self._places: dict[str, Place] = {}
        self._last: dict[Place, tuple[int, int | None]] = {}
        """The last text of each place that was recorded since the start: its position in the log, and its number, if that is known."""

    def __len__(self) -> int:
        """Return how many texts are kept in mind."""
        return len(self._places)

    def take(self, batch: Sequence[Recorded]) -> None:
        """Enter the texts of a commit."""
        for recorded in batch:
            event = recorded.event
            if isinstance(event, DeliveryDecided) and recorded.stream.startswith("delivery:"):
                place = Place.of(event.route)
                with self._lock:
                    _, last = self._last.get(place, (0, None))
                    number = None if last is None else last + 1
                    self._last[place] = (recorded.position, number)
                    self._entered(place, recorded.stream, recorded.position, number)

    def enter(self, place: Place, key: str, order: int, number: int | None = None) -> None:
        """Add a text by the position of its decision, and its number, if that is known. A known one keeps its place."""
        with self._lock:
            self._entered(place, key, order, number)

    def is_next(self, place: Place, key: str, order: int, free: Callable[[], None]) -> bool:
        """Return whether a text may go out now; if not, `free` is called when it may."""
        with self._lock:
            line = self._entered(place, key, order, None)
            text = next(text for text in line if text.key == key)
            text.free = None if line[0] is text else free
            if line[0] is text:
                text.fails = False
            return line[0] is text

    def is_idle(self, place: Place) -> bool:
        """Whether no text is to go out at a place."""
        with self._lock:
            return place not in self._lines

    def number(self, key: str) -> int | None:
        """Return which text of its place a text is, from 1; None if nobody has counted, 0 if that could not be found out."""
        with self._lock:
            return next((text.number for text in self._line_of(key) if text.key == key), 0)

    def numbered(self, key: str, number: int) -> None:
        """Note which text of its place a text is: so those are numbered that are recorded from now on."""
        with self._lock:
            text = next((text for text in self._line_of(key) if text.key == key), None)
            if text is None:
                return
            text.number = number
            place = self._places[key]
            if number and self._last.get(place) == (text.order, None):
                self._last[place] = (text.order, number)

    def waits(self, key: str) -> bool:
        """Whether a text waits for an earlier one that failed and will be retried."""
        with self._lock:
            line = self._line_of(key)
            return bool(line) and line[0].key != key and line[0].fails

    def failed(self, key: str) -> None:
        """Note that a text failed and will be retried."""
        with self._lock:
            for text in self._line_of(key):
                text.fails = text.fails or text.key == key

    def over(self, key: str) -> None:
        """Remove a finished text; the next one may go out."""
        with self._lock:
            line = self._line_of(key)
            at = next((at for at, text in enumerate(line) if text.key == key), None)
            if at is None:
                return
            place = self._places.pop(key)
            line.pop(at)
            free = None
            if line:
                free, line[0].free = line[0].free, None
            else:
                del self._lines[place]
                self._forget()
        if free is not None:
            free()

    def _entered(self, place: Place, key: str, order: int, number: int | None) -> list[_Text]:
        if key not in self._places:
            self._places[key] = place
            insort(self._lines.setdefault(place, []), _Text(key, order, number), key=lambda text: text.order)
        return self._lines[self._places[key]]

    def _line_of(self, key: str) -> list[_Text]:
        place = self._places.get(key)
        return [] if place is None else self._lines[place]

    def _forget(self) -> None:
        """Drop the counts of places, the oldest first, once they are too many: the log has them."""
        if len(self._last) > _MOST_COUNTED:
            idle = [place for place in self._last if place not in self._lines]
            for place in idle[: _MOST_COUNTED // 2]:
                del self._last[place]


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

    def __init__(self, forgotten: Callable[[str, int], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, int], R | CallState] = {}
        self._forgotten = forgotten
        """Is told of what is dropped, if anybody is."""

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
        if self._forgotten is not None:
            self._forgotten(key, attempt)

    def of(self, key: str, attempt: int) -> R | CallState:
        """Return an attempt's outcome, or its state, or None if it is unknown here."""
        with self._lock:
            return self._asked.get((key, attempt), CallState.NEVER)

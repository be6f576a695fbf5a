"""Links from cause to effect, read from the stored rows without decoding each event, so that a whole log is read fast.

Nothing is proven here. What is shown of an event is read by its position, and proven then.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from intersession_events.log.log import Log
from intersession_events.log.row_state import named_in, packed_names_in
from intersession_events.log.sql import Row

_WINDOW: Final = 16_384
_FIRST_WINDOW: Final = 64
"""Rows that are read at a time, and at first: what led to an event is near in most cases."""

_RECEIPTS: Final = "access:"
_RUN_STARTED: Final = "run_started."
_CONFIG_LOADED: Final = "config_loaded."
_LOG_OPENED: Final = "log_opened."


class Link(NamedTuple):
    """An event without its payload: where it stands, and what led to it."""

    position: int
    stream: str
    topic: str
    id: str
    causation: str | None
    correlation: str | None


class Links:
    """Looks for events by their ids, and for what an event led to. A row that is no envelope is passed over."""

    def __init__(self, log: Log, *, window: int = _WINDOW) -> None:
        self._log = log
        self._head = log.head()
        self._window = window

    def path(self, position: int) -> Iterator[Link]:
        """Yield an event and its causes, the nearest first, as far as somebody asks for more.

        A cause stands before its event, in the same stretch of the log more often than not: rows are read backwards, each once.
        Only an import may have one that stands behind.
        """
        behind = _Behind(self, position)
        link, passed = behind.at(position), set[int]()
        while link is not None and link.position not in passed:
            passed.add(link.position)
            yield link
            link = self._cause_of(link, behind)

    def _cause_of(self, link: Link, behind: "_Behind") -> Link | None:
        """Return the event that led to another; None for one that nothing led to.

        A receipt names no cause: it is of the run that its session was at. A configuration is of the start beside it.
        """
        if link.causation is None:
            return behind.first(link, _is_of) if _is_told_by_place(link) else None
        found = behind.named(link.causation)
        if found is None:
            ahead = self._forwards(behind.top, self._head)
            found = next((later for later in ahead if later.id == link.causation), None)
        return found

    def effects(
        self,
        position: int,
        *,
        to: int | None = None,
        own: Iterable[int] = (),
        is_all: Callable[[Iterable[int], int], bool] | None = None,
    ) -> dict[int, int]:
        """Return the positions of all that an event led to up to `to`, each with that of its cause, which comes before it.

        The events at `own` positions belong to what the event began: those that nothing of it led to, it led to itself. In one
        append, and in an import, an event may stand before its cause, so a little is read of what was there before. `is_all` says
        of what was found up to a position whether nothing more can come: then no more is read.
        """
        last = self._head if to is None else min(to, self._head)
        begun = sorted(own)
        known, top = _Below(), max(0, position - self._window)
        known.take(self._rows(top, min(last, position)))
        top = position
        found = known.led_to(position, begun)
        while top < last:
            after, top = top, min(top + self._window, last)
            known.take(self._rows(after, top))
            before, found = found.keys(), known.led_to(position, begun)
            # One window without anything new, so that what one append has is not parted.
            if is_all is not None and before == found.keys() and is_all((position, *found), top):
                break
        return found

    def _forwards(self, after: int, to: int) -> Iterator[Link]:
        while after < to:
            yield from self.between(after, min(after + _WINDOW, to))
            after += _WINDOW

    def between(self, after: int, to: int) -> Iterator[Link]:
        """Yield the events with `after < position <= to`."""
        for row in self._rows(after, min(to, self._head)):
            link = _link(row)
            if link is not None:
                yield link

    def _rows(self, after: int, to: int) -> Iterator[Row]:
        while after < to:
            page = min(after + _WINDOW, to)
            for row in self._log.rows(after=after, limit=page - after):
                if row[0] > page:
                    break
                yield row
            after = page


class _Below:
    """What each event led to, of those that were read. There may be millions: what a row names stays as it lies there."""

    def __init__(self) -> None:
        self._positions: dict[bytes, int] = {}
        self._caused: list[tuple[int, bytes]] = []
        self._below: dict[int, list[int]] = {}
        self._placed: dict[tuple[str, bytes], int] = {}

    def take(self, rows: Iterable[Row]) -> None:
        """Take in the rows that come next."""
        for at, stream, _, topic, state in rows:
            names = packed_names_in(state)
            if names is None:
                continue
            event_id, causation, correlation = names
            self._positions[event_id] = at
            if causation:
                self._caused.append((at, causation))
            elif (cause := self._placed.get(_told_by_place(stream, topic, correlation))) is not None:
                self._below.setdefault(cause, []).append(at)
            if topic.startswith(_RUN_STARTED):
                self._placed[stream, correlation] = at
            elif topic.startswith(_LOG_OPENED):
                self._placed[stream, b""] = at
        ahead: list[tuple[int, bytes]] = []
        for effect, causation in self._caused:
            cause = self._positions.get(causation)
            if cause is None:
                ahead.append((effect, causation))  # its cause may stand behind it
            else:
                self._below.setdefault(cause, []).append(effect)
        self._caused = ahead

    def led_to(self, position: int, own: Iterable[int]) -> dict[int, int]:
        """Return all that an event led to, directly or not, each with its cause; `own` as in `Links.effects`."""
        begun = list(own)
        led = {effect for cause in begun for effect in self._below.get(cause, ())}
        apart = [one for one in begun if one not in led]
        found: dict[int, int] = {}
        ways = deque([position])
        while ways:
            cause = ways.popleft()
            below = self._below.get(cause, ())
            for effect in (*below, *apart) if cause == position else below:
                if effect != position and effect not in found:
                    found[effect] = cause
                    ways.append(effect)
        return found


class _Behind:
    """The events up to a position, read backwards as far as somebody looks."""

    def __init__(self, links: Links, top: int) -> None:
        self._links = links
        self.top = top
        self._low = top
        """All events with `low < position <= top` have been read."""
        self._window = _FIRST_WINDOW
        self._named: dict[str, Link] = {}
        self._newest_first: list[Link] = []

    def at(self, position: int) -> Link | None:
        self._extend()
        return self.read(position)

    def read(self, position: int) -> Link | None:
        """Return the event at a position, if it has been read."""
        return next((link for link in self._newest_first if link.position == position), None)

    def named(self, event_id: str) -> Link | None:
        while event_id not in self._named and self._extend():
            pass
        return self._named.get(event_id)

    def first(self, of: Link, is_wanted: Callable[[Link, Link], bool]) -> Link | None:
        """Return the last event before another that is wanted for it."""
        at = 0
        while True:
            while at < len(self._newest_first):
                link = self._newest_first[at]
                if link.position < of.position and is_wanted(of, link):
                    return link
                at += 1
            if not self._extend():
                return None

    def _extend(self) -> bool:
        """Read some more, twice as many each time; False if there are none."""
        if self._low <= 0:
            return False
        after = max(0, self._low - self._window)
        for link in reversed(list(self._links.between(after, self._low))):
            self._named.setdefault(link.id, link)
            self._newest_first.append(link)
        self._low, self._window = after, min(2 * self._window, _WINDOW)
        return True


def _link(row: Row) -> Link | None:
    position, stream, _, topic, state = row
    named = named_in(state)
    if named is None:
        return None
    return Link(position, stream, topic, named.id, named.causation, named.correlation)


def _told_by_place(stream: str, topic: str, correlation: bytes) -> tuple[str, bytes]:
    """Return what led to an event that names no cause: which stream, and the run in it that had started last."""
    if stream.startswith(_RECEIPTS) and correlation:
        return f"session:{stream.removeprefix(_RECEIPTS)}", correlation
    return (stream, b"") if topic.startswith(_CONFIG_LOADED) else ("", b"")


def _is_told_by_place(link: Link) -> bool:
    receipt = link.stream.startswith(_RECEIPTS) and link.correlation is not None
    return receipt or link.topic.startswith(_CONFIG_LOADED)


def _is_of(link: Link, earlier: Link) -> bool:
    if link.topic.startswith(_CONFIG_LOADED):
        return earlier.topic.startswith(_LOG_OPENED)
    return (
        earlier.topic.startswith(_RUN_STARTED)
        and earlier.stream == f"session:{link.stream.removeprefix(_RECEIPTS)}"
        and earlier.correlation == link.correlation
    )

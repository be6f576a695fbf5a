"""The latest entries of a log: its last time, and the ids by which a repeated event is recognised."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from intersession_events.basics.errors import CorruptEvent, LogRewound
from intersession_events.facts import ClockStepped, topics_of
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import hash_in, is_sealed, opened
from intersession_events.log.sql import Question, Row
from intersession_events.stores.database import Cursor

KNOWN: Final = 20_000
"""The number of events that are recognised by their ids (a few megabytes)."""
_LAST_EVENTS: Final = 512
"""The number of events read when a log is opened. The last ones may be imported, with times of their own."""


class End(NamedTuple):
    """The last event that is known to be in the log for good: its position, and its hash."""

    position: int
    hash: str


EMPTY: Final = End(0, "")
"""That of a log without events."""


class Recent(NamedTuple):
    """The last events of a log as it was opened."""

    time: int
    """The latest time (ms) among them, since the clock was last set back; 0 without a readable one."""
    ids: Mapping[str, int]
    """Their ids with their positions, from the first on."""
    end: End
    """The last one of those that can be read."""
    sealed: bool = False
    """Whether one of them is kept encrypted."""


LAST_EVENTS: Final[Question] = (
    "SELECT rowid, state, topic FROM stored_events ORDER BY rowid DESC LIMIT ?",
    (_LAST_EVENTS,),
)
"""Asks for what `recent_of` takes."""


def recent_of(rows: Sequence[Row]) -> Recent:
    """Return the latest entries of a log from its last events, the last one first."""
    latest, ids, end = 0, dict[str, int](), EMPTY
    for position, state, topic in reversed(rows):
        with suppress(CorruptEvent):  # reading the event reports it
            event = opened(state, where="a row")
            latest = event.time if topic in _STEPS else max(latest, event.time)
            ids[event.id] = position
            end = End(position, event.hash)
    return Recent(latest, ids, end, any(is_sealed(state) for _, state, _ in rows if type(state) is bytes))


def _is_end(row: Row, end: End) -> bool:
    """Return whether a row, its position and its state, is that of an event. A damaged one is reported when it is read."""
    position, state = row
    if position != end.position:
        return False
    try:
        return hash_in(state, where="a row") == end.hash
    except CorruptEvent:
        return True


STEP_MS: Final = 300_000
"""By more than so much has the wall clock stepped; less is an accident of threads, or what a time server sets right."""
_STEPS: Final = topics_of(ClockStepped)


class _Mark(NamedTuple):
    """When a clock last agreed with the wall clock: what that said, and the monotonic one."""

    wall: int
    at: float


class LogClock:
    """The time to record, in ms: the latest time in the log, unless the clock is later (L8).

    The machine's clock may be set back, and what two threads read of it may be written the other way round. Only when the wall
    clock itself stands minutes before the log's time does that go back, by an event that says so. The same event says where the
    wall clock went ahead by minutes that did not pass, as `monotonic` (s) has it. `now_ms` is the wall clock. Both are asked
    only for what is minutes from the last event. Only the writer's thread may call it.
    """

    def __init__(self, latest: int, *, now_ms: Callable[[], int], monotonic: Callable[[], float]) -> None:
        self._now_ms, self._monotonic = now_ms, monotonic
        self.latest = latest
        """The latest time that the log has, with the transaction that goes on: a draft that is earlier is recorded with this one."""
        self._mark = _Mark(now_ms(), monotonic())
        self._before: list[tuple[int, _Mark]] = []
        """What it knew before each step of the transaction that goes on."""

    def step(self, draft: Draft) -> ClockStepped | None:
        """Return the event to record before a draft when the clock has stepped, and move the log's time; else None."""
        latest = self.latest
        if draft.is_dated or -STEP_MS <= draft.time - latest <= STEP_MS:
            return None
        wall, at = self._now_ms(), self._monotonic()
        if draft.time < latest:
            if wall >= latest - STEP_MS:
                return None  # it was made long ago, and is written late
            expected = latest
        else:
            expected = self._mark.wall + round((at - self._mark.at) * 1000)
            if -STEP_MS <= wall - expected <= STEP_MS:
                self._mark = _Mark(wall, at)
                return None  # nothing had happened for so long
            if draft.time <= expected + STEP_MS:
                return None  # it was made before the step
        self._before.append((self.latest, self._mark))
        self.latest, self._mark = draft.time, _Mark(wall, at)
        return ClockStepped(from_ms=expected, to_ms=draft.time)

    def begin(self) -> None:
        """Begin a transaction, and forget the steps of a failed one."""
        if self._before:
            self.latest, self._mark = self._before[0]
            self._before.clear()

    def undo(self) -> None:
        """Forget the last step: its event was rolled back, while the transaction goes on."""
        self.latest, self._mark = self._before.pop()

    def committed(self) -> None:
        """Hear that the steps are durable."""
        self._before.clear()


class KnownIds:
    """The positions of recent events that were appended without an expected version: a repeated one is recognised by its id alone.

    The others are known again by the version that was expected. Only the writer's thread may call it.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._durable = OrderedDict(ids)
        self._now: dict[str, int] = {}

    def begin(self) -> None:
        """Begin a transaction, and forget the events of a failed one."""
        self._now = {}

    def read(self, cursor: Cursor, *, end: End) -> None:
        """Read, inside a transaction, the events behind the last acknowledged one.

        Raises:
            LogRewound: that one is not there.
        """
        cursor.execute("SELECT rowid, state FROM stored_events WHERE rowid >= ?", (end.position,))
        rows: list[Row] = cursor.fetchall()
        if end.position and not any(_is_end(row, end) for row in rows):
            raise LogRewound(end.position)
        for position, state in rows:
            with suppress(CorruptEvent):
                self._durable[opened(state, where="a row").id] = position

    def position_of(self, event_id: str) -> int | None:
        """Return the position of an event; None if it is unknown."""
        found = self._now.get(event_id)
        return self._durable.get(event_id) if found is None else found

    def note(self, event_id: str, position: int) -> None:
        """Note an event that was written in the present transaction."""
        self._now[event_id] = position

    def undo(self, ids: Iterable[str]) -> None:
        """Forget events that were rolled back, while the transaction goes on."""
        for event_id in ids:
            self._now.pop(event_id, None)

    def committed(self) -> None:
        """Hear that what was written is durable."""
        self._durable.update(self._now)
        self._now = {}
        while len(self._durable) > KNOWN:
            self._durable.popitem(last=False)

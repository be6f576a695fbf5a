"""Cuts a session's stream into its generations, each with its lines in the order in which the agent took them. Pure."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from intersession_events.facts import (
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionReset,
    generation_of,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.views.sessions.row import SessionRow, evolve_row
from intersession_projections.views.sessions.taken_order import Taken, taken_backwards


class Generation(msgspec.Struct, kw_only=True):
    """One life of a key. `closing` says how it ended, None for the one that the key means now; times are ms."""

    session_id: str
    began_ms: int
    first: int
    last: int
    closing: Literal["reset", "deleted"] | None = None
    closed_ms: int = 0
    lines: tuple[Taken, ...] = ()


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Another system's entry for a session, and the session as it was then."""

    source: str
    row: SessionRow


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A session with all its generations, the oldest first."""

    row: SessionRow
    kept: SourceEntry | None
    generations: tuple[Generation, ...]

    @property
    def current(self) -> Generation | None:
        """The present generation; None for an archived session."""
        return next((each for each in self.generations if each.closing is None), None)


def life_of(key: str, recorded: Sequence[Recorded]) -> Life | None:
    """Return the life of a session from the events of its stream; None if it was not opened yet."""
    return _Folding(key).all(recorded)


class _Folding:
    def __init__(self, key: str) -> None:
        self._key = key
        self._row: SessionRow | None = None
        self._kept: SourceEntry | None = None
        self._generations: dict[str, Generation] = {}

    def all(self, recorded: Sequence[Recorded]) -> Life | None:
        for index, item in enumerate(recorded):
            self._row = evolve_row(self._row, self._key, item)
            self._take(index, item)
        row = self._row
        if row is None:
            return None
        for generation in self._generations.values():
            self._close(generation, row, recorded)
            generation.lines = tuple(_lines(generation, row, recorded))
        order = sorted(
            self._generations.values(), key=lambda each: (each.session_id == row.session_id, each.first)
        )
        return Life(row=row, kept=self._kept, generations=tuple(order))

    def _take(self, index: int, item: Recorded) -> None:
        event = item.event
        match event:
            case SessionOpened():
                self._kept = None
                self._in(event.session_id, index, item).closing = None
            case SessionReset():
                self._ends(event.previous_session_id, "reset", index, item)
                self._in(event.session_id, index, item).closing = None
            case SessionImported():
                self._in(event.session_id, index, item)
                if self._row is not None:
                    self._kept = SourceEntry(source=event.entry, row=self._row)
            case SessionArchived():
                how: Literal["reset", "deleted"] = "reset" if event.reason == "reset" else "deleted"
                self._ends(event.session_id, how, index, item)
            case _:
                if (generation := generation_of(event)) is not None:
                    self._in(generation, index, item)

    def _in(self, session_id: str, index: int, item: Recorded) -> Generation:
        found = self._generations.setdefault(
            session_id, Generation(session_id=session_id, began_ms=item.time, first=index, last=index)
        )
        found.last = index
        return found

    def _ends(self, session_id: str, how: Literal["reset", "deleted"], index: int, item: Recorded) -> None:
        ended = self._in(session_id, index, item)
        ended.closing, ended.closed_ms = how, item.time

    def _close(self, generation: Generation, row: SessionRow, recorded: Sequence[Recorded]) -> None:
        if generation.session_id == row.session_id:
            generation.last = len(recorded) - 1
        elif generation.closing is None:
            generation.closing, generation.closed_ms = "reset", recorded[generation.last].time


def _lines(generation: Generation, row: SessionRow, recorded: Sequence[Recorded]) -> Iterator[Taken]:
    # Nothing waits in a generation that has ended.
    waiting = row.queued if generation.session_id == row.session_id else 0
    backwards = (
        item
        for item in reversed(recorded[generation.first : generation.last + 1])
        if generation_of(item.event) in {None, generation.session_id}
    )
    return reversed(list(taken_backwards(backwards, waiting)))

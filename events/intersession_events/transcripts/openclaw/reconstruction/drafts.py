"""Drafts of an import's events, each with its stream and its place in the order of all events."""

from typing import NamedTuple

from intersession_events.basics import ids
from intersession_events.facts import Event, topic_of
from intersession_events.log.recorded import Draft
from intersession_events.transcripts.openclaw.reading.lines import Line


class Place(NamedTuple):
    """Where an event stands in the merged order: by time, then path, then line, then its rank beside the line."""

    time: int
    path: str
    line: int
    rank: int = 0


class Planned(NamedTuple):
    """A draft, its stream and its place."""

    place: Place
    stream: str
    draft: Draft


class Links:
    """The event ids of all lines, the cause of each, and the root of its chain."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], str] = {}
        self._causes: dict[tuple[str, int], tuple[str, int]] = {}
        self._roots: dict[str, str] = {}

    def name(self, line: Line, event_id: str) -> None:
        """Remember the event id of a line."""
        self._ids[line.place] = event_id

    def caused(self, line: Line, by: Line | None) -> None:
        """Remember that a line of one session led to a line of another."""
        if by is not None:
            self._causes.setdefault(line.place, by.place)

    def id_of(self, line: Line | None) -> str | None:
        """Return the event id of a line."""
        return None if line is None else self._ids.get(line.place)

    def cause_of(self, line: Line, parent: str | None) -> str | None:
        """Return the event that led to a line: one of another session, else, for an answer, its parent entry."""
        cause = self._causes.get(line.place)
        if cause is not None:
            return self._ids.get(cause)
        is_answer = line.message is not None and line.message.role in {"assistant", "toolResult"}
        return parent if is_answer else None

    def root_of(self, event_id: str | None) -> str | None:
        """Return the root of an event's chain, if its line was placed already."""
        return self._roots.get(event_id) if event_id is not None else None

    def place(self, event_id: str, cause: str | None) -> str:
        """Remember, in order of time, the cause and root of an event; return the root. An event without a cause is a root."""
        root = self._roots.get(cause, cause) if cause is not None else event_id
        self._roots[event_id] = root
        return root


class StreamPlan:
    """Collects the events of one stream, none earlier in time than the one before it."""

    def __init__(self, log_id: str, stream: str) -> None:
        self._log_id = log_id
        self._stream = stream
        self._last: Place | None = None
        self.planned: list[Planned] = []

    @property
    def last_id(self) -> str | None:
        """The id of the newest event."""
        return self.planned[-1].draft.id if self.planned else None

    def add(
        self,
        event: Event,
        place: Place,
        *,
        causation: str | None = None,
        correlation: str | None = None,
        event_id: str | None = None,
        step: str | int = "",
    ) -> None:
        """Add an event. Its id is derived from stream, kind and `step`, if it is not given."""
        if self._last is not None and place <= self._last:
            place = self._last._replace(rank=self._last.rank + 1)
        self._last = place
        draft = Draft(
            event=event,
            id=event_id or planned_id(self._log_id, self._stream, event, step),
            time=place.time,
            causation=causation,
            correlation=correlation,
            is_dated=True,
        )
        self.planned.append(Planned(place, self._stream, draft))


def planned_id(log_id: str, stream: str, event: Event, step: str | int) -> str:
    """Return the id of an imported event that is not a line: from its stream, its kind and its number among that kind."""
    return ids.derive(log_id, "import", stream, topic_of(event), step)


def beside(line: Line, *, time: int | None = None) -> Place:
    """Return the place right behind a line, at another time if one is given."""
    return Place(line.time if time is None else time, line.file, line.number, 1)

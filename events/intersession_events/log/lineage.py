"""In which log an event was written: this one, or one that it was forked from, whose id is part of the hash (FORK-2)."""

from typing import Final, NamedTuple

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import Event, ForkedFrom, decode
from intersession_events.log.envelope import Erasing, unseal
from intersession_events.log.erasing import erased_stream, rows_erased
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Query

STREAM: Final = "log"
FORKED: Final = "forked_from.1"
_FOUND: Final = (
    "SELECT rowid, originator_version, state FROM stored_events WHERE originator_id=? AND topic=? "
    "ORDER BY originator_version DESC"
)
_ERASED: Final = (
    "SELECT rowid, originator_version, topic, state FROM stored_events WHERE originator_id=? "
    "ORDER BY originator_version"
)


class Lineage(NamedTuple):
    """The logs that a log's events come from. `forks` tells how it was forked, the last step first; empty for most logs.

    `problem` says what is wrong with an event that told so. What it told is here all the same, so that the others can be read.
    """

    log_id: str
    forks: tuple[ForkedFrom, ...] = ()
    problem: str | None = None

    @property
    def forked(self) -> ForkedFrom | None:
        """How this log itself began, if it is a fork."""
        return self.forks[0] if self.forks else None

    def is_picked(self, stream: str, version: int, hashed: str) -> bool:
        """Whether an event of the stream `log` was taken into a fork without those before it (`ForkedFrom.heads`)."""
        return stream == STREAM and any((stream, version, hashed) in fork.heads for fork in self.forks)

    def log_id_at(self, position: int) -> str:
        """Return the id of the log in which the event at a position was written; this log's own for position 0."""
        log_id = self.log_id
        for fork in self.forks:
            if not 0 < position <= fork.position:
                break
            log_id = fork.log_id
        return log_id


def lineage_of(log_id: str, query: Query) -> Lineage:
    """Read the lineage of a log."""
    forks: list[ForkedFrom] = []
    erased = _Erased(log_id, query)
    written_in, problem = log_id, None
    for position, version, state in query(_FOUND, (STREAM, FORKED)):
        event: Event | None = None
        try:
            event = unseal(
                log_id=written_in,
                position=position,
                stream=STREAM,
                version=version,
                topic=FORKED,
                state=state,
                authorised=erased,
            ).event
        except (CorruptEvent, UnknownTopic, TypeError) as error:
            problem = (
                f"the event at position {position}, which says how this fork began, was changed: {error}"
            )
            event = _unproven(state)
        if isinstance(event, ForkedFrom):
            forks.append(event)
            written_in = event.log_id
    return Lineage(log_id, tuple(forks), problem)


class _Erased:
    """Tells what may replace erased events of stream `log`: always by a log's own events."""

    def __init__(self, log_id: str, query: Query) -> None:
        self._log_id = log_id
        self._query = query
        self._rows: dict[int, Erasing] | None = None

    def __call__(self, stream: str, version: int, _stands: str) -> Erasing | None:
        if self._rows is None:
            self._rows = {}
            name = erased_stream(stream)
            for position, at, topic, state in self._query(_ERASED, (name,)):
                authorising = unseal(
                    log_id=self._log_id, position=position, stream=name, version=at, topic=topic, state=state
                )
                self._rows |= rows_erased(authorising.event, stream=name, position=position)
        return self._rows.get(version)


def _unproven(state: object) -> Event | None:
    payload = payload_in(state) if isinstance(state, bytes) else None
    try:
        return None if payload is None else decode(FORKED, payload)
    except (CorruptEvent, UnknownTopic):
        return None

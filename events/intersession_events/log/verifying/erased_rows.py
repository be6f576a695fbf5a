"""Compares erased payloads with the events that authorise them, in both directions, and says which checkpoints cover those events."""

from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import Erased, Event, WithheldKind, decode, standing
from intersession_events.log.envelope import NOT_AUTHORISED, Erasing
from intersession_events.log.erasing import erased_stream, rows_erased
from intersession_events.log.log import Log
from intersession_events.log.row_state import Envelope
from intersession_events.log.sql import COLUMNS, Row
from intersession_events.log.verifying.rows import envelope_in
from intersession_events.proofs.walk import CheckpointWalk

_NO_EDITION: Final = "secrets are masked in the payload, which only an edition of a bundle may do, of events from before its cut"
_ROW: Final = COLUMNS + "WHERE originator_id=? AND originator_version=?"


class ErasureSeen(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event that erased texts: by whom and why, and the proof that it is an event of the log."""

    position: int
    time: int
    stream: str
    """Where the words were; `rows` is of how many events, up to the one at position `last`."""
    rows: int
    last: int
    by: str
    reason: str
    checkpoint: int | None
    """The position of the first checkpoint that covers the event itself; None if none does."""
    signed: bool
    """Whether one covers it that was signed with a trusted key."""
    published: bool
    """Whether one covers it that was published, or a head that was kept elsewhere."""
    bound: int
    """Of how many rows a checkpoint that was taken before says what is left of them without their words, or their own hash does."""
    rule: str = ""
    """What it was for, where no session was named: `person`, or a rule of retention."""
    files: int = 0
    """How many contents of files went."""
    thinking: bool = False
    """Whether the model's thinking in them went, and nothing else."""
    edition: WithheldKind | None = None
    """What the log, that of a redacted bundle, withholds of those rows, none of which were erased; None for an erasure."""


class Sure(NamedTuple):
    """Up to where a log is proven even against an attacker who can hash: by signatures, and by published checkpoints.

    `of_fork` says of an event of a fork, by its stream and position, whether checkpoints of the log that it was made of do.
    """

    signed: int
    published: int
    of_fork: Callable[[str, int], bool]

    def covers(self, stream: str, position: int) -> bool:
        """Whether an event is proven so."""
        return position <= max(self.signed, self.published) or self.of_fork(stream, position)


class _Gone(NamedTuple):
    position: int
    stands: str
    problem: str | None
    """Why it can't be what is left without words."""
    undecodable: str | None = None
    is_thinking: bool = False
    """Whether its thinking alone is gone: its own hash proves the rest."""


class _RecordedErasure(NamedTuple):
    position: int
    time: int
    event: Erased


class ErasedRows:
    """The erased rows and the erasing events of one pass over a log, whose events up to `cut` are those of another."""

    def __init__(self, cut: int = 0) -> None:
        self._cut = cut
        self._erased: dict[tuple[str, int], _Gone] = {}
        self._authorised: dict[tuple[str, int], Erasing] = {}
        self._told: list[_RecordedErasure] = []

    def __len__(self) -> int:
        """Return how many payloads are erased."""
        return len(self._erased)

    def found(self, row: Row, envelope: Envelope) -> Event | None:
        """Note a row without its payload; return the event that stands there, if one may."""
        problem = undecodable = event = None
        try:
            event = standing(row[3], bytes(envelope.data))
        except (CorruptEvent, UnknownTopic) as error:
            problem = str(error)
            try:
                event = decode(row[3], bytes(envelope.data))
            except (CorruptEvent, UnknownTopic) as undecoded:
                undecodable = str(undecoded)
        self._erased[row[1], row[2]] = _Gone(row[0], envelope.stands, problem, undecodable)
        return event

    def take(self, row: Row, envelope: Envelope, event: Event) -> str | None:
        """Note a row that has its words: whether its thinking is gone, and what it authorises. Return the problem if it can't."""
        if envelope.lacks_thinking:
            self._erased[row[1], row[2]] = _Gone(row[0], envelope.stands, None, is_thinking=True)
        if not isinstance(event, Erased):
            return None
        if row[1] != erased_stream(event.stream):
            return f"authorises nothing: it belongs into {erased_stream(event.stream)!r}"
        for version, erasing in rows_erased(event, stream=row[1], position=row[0]).items():
            self._authorised[event.stream, version] = erasing
        self._told.append(_RecordedErasure(row[0], envelope.time, event))
        return None

    def problems(self, log: Log) -> Iterator[tuple[Literal["erased", "not_erased"], str, Row]]:
        """Yield what does not match, after the last row: a code, the problem, and its place."""
        for (stream, version), gone in self._erased.items():
            erasing = self._authorised.get((stream, version))
            if erasing is None or erasing.stands != gone.stands or erasing.position <= gone.position:
                yield "erased", NOT_AUTHORISED, (gone.position, stream, version)
            elif erasing.masked and not gone.position <= self._cut < erasing.position:
                yield "erased", _NO_EDITION, (gone.position, stream, version)
            elif problem := gone.undecodable if erasing.masked else gone.problem:
                yield "erased", problem, (gone.position, stream, version)
        for stream, version in sorted(self._authorised.keys() - self._erased.keys()):
            # It may have been erased since it was looked at.
            found = log.query(_ROW, (stream, version))
            envelope = envelope_in(found[0]) if found else ""
            if isinstance(envelope, str) or not self._authorised[stream, version].is_done(envelope):
                problem = "an event says that the payload was erased, and it was not"
                yield "not_erased", problem, (found[0][0] if found else None, stream, version)

    def seen(self, sure: Sure, checkpoints: CheckpointWalk) -> Iterator[ErasureSeen]:
        """Yield the events that erased something, with the checkpoints that cover each."""
        for position, time, event in self._told:
            over = checkpoints.over(position)
            found = [self._erased.get((event.stream, version)) for version, _ in event.rows]
            gone = [one for one in found if one is not None]
            yield ErasureSeen(
                position=position,
                time=time,
                stream=event.stream,
                rows=len(event.rows),
                last=max((one.position for one in gone), default=0),
                by=event.by,
                reason=event.reason,
                rule=event.rule,
                files=event.files,
                checkpoint=None if over is None else over[0],
                signed=position <= sure.signed or sure.of_fork(erased_stream(event.stream), position),
                published=position <= sure.published,
                bound=sum(one.is_thinking or _is_bound(one.position, position, checkpoints) for one in gone),
                edition=event.edition,
                thinking=event.thinking,
            )

    def unproven(self, sure: Sure) -> Iterator[tuple[str, Row]]:
        """Yield unproven events that erased proven ones: a problem, and its place."""
        for position, _, event in self._told:
            if event.edition is not None or sure.covers(erased_stream(event.stream), position):
                continue
            count = sum(
                place > 0 and sure.covers(event.stream, place)
                for place in (self._place_of(event.stream, version) for version, _ in event.rows)
            )
            if count:
                problem = (
                    f"says that {event.by} erased {count} of the payloads that are proven, and is not proven itself: no "
                    "checkpoint that was signed with a trusted key, or kept elsewhere, covers it"
                )
                yield problem, (position, erased_stream(event.stream), None)

    def _place_of(self, stream: str, version: int) -> int:
        gone = self._erased.get((stream, version))
        return 0 if gone is None else gone.position


def _is_bound(place: int, erased_at: int, checkpoints: CheckpointWalk) -> bool:
    over = checkpoints.over(place)
    return over is not None and over[1] and over[0] < erased_at

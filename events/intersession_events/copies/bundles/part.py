"""Takes the events of a bundle out of a log, with the proof that they are part of it, in one pass over the log (BUNDLE-2, BUNDLE-3)."""

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.ids import derive
from intersession_events.basics.progress import Progress, not_told
from intersession_events.copies.bundles.edition import Edited, Editing, WithheldRows
from intersession_events.copies.bundles.left_lines import LeftLines
from intersession_events.copies.bundles.log_file import ForkEnd, LogFile, own_rows
from intersession_events.copies.bundles.proof import PartProof
from intersession_events.copies.bundles.rows import line_of_row
from intersession_events.copies.forks.confirming import Confirming
from intersession_events.copies.forks.forking import erased_later
from intersession_events.copies.forks.prefix import STREAM, in_force
from intersession_events.copies.forks.proving import heads_proven
from intersession_events.facts import FileBlock, ForkedFrom, decode, files_in
from intersession_events.log.erasing import erased_stream
from intersession_events.log.lineage import Lineage
from intersession_events.log.row_state import hash_in, opened, payload_in
from intersession_events.log.sql import COLUMNS, Query, Row, marks
from intersession_events.proofs.statement import PUBLISHED, TAKEN, Checkpoint

_PAGE: Final = 1000
_AT_ONCE: Final = 200
"""The most streams in one statement."""
_WHOLE: Final = COLUMNS + "WHERE rowid>? AND rowid<=? ORDER BY rowid LIMIT ?"
# The hash of a state in the short form lies before its payload, which may be long.
_BRIEF: Final = (
    "SELECT rowid, originator_id, originator_version, topic, iif(substr(state, 1, 1) = X'01', substr(state, 1, 151), state) "
    "FROM stored_events WHERE rowid>? AND rowid<=? ORDER BY rowid LIMIT ?"
)
_STATES: Final = "SELECT rowid, state FROM stored_events WHERE rowid IN ({})"
_PLACES: Final = "SELECT rowid FROM stored_events WHERE originator_id IN ({}) AND rowid<=?"
_NAMES: Final = "SELECT DISTINCT originator_id FROM stored_events WHERE rowid BETWEEN 1 AND ?"
_LAST: Final = (
    "SELECT rowid, state FROM stored_events WHERE rowid BETWEEN 1 AND ? ORDER BY rowid DESC LIMIT 1"
)
_IDENTITY: Final = "SELECT created_ms FROM log_identity"
_ERASED: Final = COLUMNS + "WHERE originator_id BETWEEN 'erased:' AND 'erased;' ORDER BY rowid"
_FILE: Final = b'"type":"file"'


class PartWanted(NamedTuple):
    """The part of a log: whole streams up to the position `at`; with None for `streams`, the whole log up to there.

    `question` is what it answers, in canonical JSON: ids are derived from it. `flow` is the run that its log is of, if it is of one.
    `of_log` are positions of events of stream `log` that are taken by themselves. `noted` are stored names of events.
    """

    streams: Collection[str] | None
    at: int
    question: bytes
    flow: str = ""
    of_log: Collection[int] = ()
    noted: Collection[str] = ()


class PartTaken(NamedTuple):
    """The contents of the folder: how many events and streams, the checkpoint that proves them, and their files by their SHA-256."""

    events: int
    streams: int
    checkpoint: Checkpoint | None
    unproven: int
    """How many events lie behind the checkpoint; what checkpoints leave there themselves does not count, as any would."""
    files: Sequence[FileBlock]
    erased: Sequence[Row]
    """The events that authorise what was erased in its streams, those behind the place, too."""
    noted: Mapping[str, Sequence[int]]
    """The positions of the events that were to be noted, by their stored names."""
    names: frozenset[str]
    """Its streams, those of erasures among them, and some that may have no event up to the place."""
    checkpoints: Sequence[Checkpoint]
    """All up to the one that proves it."""


def take_part(
    lineage: Lineage,
    seen: Query,
    wanted: PartWanted,
    folder: Path,
    *,
    edition: Editing | None = None,
    progress: Progress = not_told,
) -> PartTaken:
    """Write `events.jsonl`, `proof.json`, `heads.jsonl` of a part, `checkpoints.jsonl` and `log.db` into an empty folder.

    `seen` reads the log as it was at one moment (`stored`). An `edition` withholds something of its rows. Of one that renames
    there is no `log.db`: with other names its rows would have other hashes, so that nothing of it could be proven.

    Raises:
        CorruptEvent: a row that is needed can't be read or was changed, or the log is not what the checkpoint was taken of. It
            names the position; `verify` says more.
        OSError: a file can't be written.
    """
    has_log = edition is None or not edition.renames
    if edition is not None and edition.renames:
        for row, _ in _Taking(lineage, seen, wanted, edition).rows(not_told):
            edition.note(row)
    taking = _Taking(lineage, seen, wanted, edition)
    with ExitStack() as entered:
        lines = entered.enter_context((folder / "events.jsonl").open("wb"))
        made = entered.enter_context(LogFile(folder / "log.db")) if has_log else None
        if made is not None:
            made.begin(*taking.identity)
        for row, leaf in taking.rows(progress):
            edited = Edited(row) if edition is None else edition.edited(row)
            lines.write(line_of_row(edited.row, leaf, edited.withheld))
            if made is not None:
                made.add(taking.withheld.take(edited))
        taking.proof.write(folder, b"" if taking.left is None else taking.left.ended())
        if made is not None:
            epoch, own = taking.end()
            for row in own:
                made.add(row)
            made.finish(epoch)
    (folder / "checkpoints.jsonl").write_bytes(b"".join(one.line for one in taking.proof.checkpoints))
    return taking.taken


class _Taking:
    """The walk over a log."""

    def __init__(self, lineage: Lineage, seen: Query, wanted: PartWanted, edition: Editing | None) -> None:
        self._lineage = lineage
        self._seen = seen
        self._wanted = wanted
        authorising: Sequence[Row] = seen(_ERASED, ())
        # What was erased behind the place has to be authorised in the bundle's log: a fork does that, a copy can't.
        self._is_copy = (
            wanted.streams is None and edition is None and all(row[0] <= wanted.at for row in authorising)
        )
        self._names = self._streams(authorising)
        self._places = None if self._is_copy else self._selected()
        self._time = self._time_at_place()
        is_renamed = edition is not None and edition.renames
        self.withheld = WithheldRows()
        # What proves the last event of a stream is made of its name, which could be guessed by it.
        streams = () if is_renamed else self._names
        self.proof = PartProof(lineage, seen, at=wanted.at, streams=streams)
        self.left: LeftLines | None = None
        if not is_renamed and (edition is not None or authorising):
            self.left = LeftLines(self.proof.checkpoints)
        self._confirming = Confirming(lineage, authorising, (), what="bundle")
        self._heads: dict[str, tuple[Row, str]] = {}
        self._of_log: list[tuple[Row, str]] = []
        self._events = self._unproven = 0
        self._last: Row | None = None
        self._files: dict[str, FileBlock] = {}
        self._noted: dict[str, list[int]] = {topic: [] for topic in wanted.noted}
        self._erased = [row for row in authorising if row[1] in self._names]

    @property
    def identity(self) -> tuple[str, int]:
        """The id of the bundle's log, and when it was made."""
        if self._is_copy:
            ((created_ms,),) = self._seen(_IDENTITY, ())
            return self._lineage.log_id, created_ms
        return self._fork_id, self._time

    @property
    def taken(self) -> PartTaken:
        streams = len(self._heads) + bool(self._of_log)
        files = [self._files[name] for name in sorted(self._files)]
        return PartTaken(
            events=self._events,
            streams=streams,
            checkpoint=self.proof.checkpoint,
            unproven=self._unproven,
            files=files,
            erased=self._erased,
            noted=self._noted,
            names=self._names,
            checkpoints=self.proof.checkpoints,
        )

    def rows(self, progress: Progress) -> Iterator[tuple[Row, int | None]]:
        """Yield the rows of the part, proven, with their leaves; all others go into the proof."""
        last = max(self.proof.until, self._wanted.at)
        own = 0 if self._lineage.forked is None else self._lineage.forked.position
        before = 0
        while page := self._page(before, last):
            for row, is_inside in page:
                position, stream, version = row[:3]
                if position != before + 1 and position > own + 1:
                    raise _missing(before + 1)
                hashed = (
                    self._confirming.take(row) if is_inside else hash_in(row[4], where=f"position {position}")
                )
                leaf = self.proof.take(position, stream, version, hashed, is_inside=is_inside)
                before = position
                if self.left is not None:
                    self.left.take(row, is_inside=is_inside)
                if is_inside:
                    self._note(row, hashed, leaf)
                    yield row, leaf
            progress(before, last)
        if own < before + 1 <= last:
            raise _missing(before + 1)

    def end(self) -> tuple[int, Sequence[Row]]:
        """Return the epoch of the bundle's log, and its own events."""
        if self._is_copy:
            return self._epoch, ()
        heads = [*(self._heads[name] for name in sorted(self._heads)), *self._of_log]
        proven = heads_proven(self._seen, [row for row, _ in heads])
        forked = ForkedFrom(
            log_id=self._lineage.log_id_at(self._wanted.at),
            position=self._wanted.at,
            flow=self._wanted.flow,
            heads=tuple((row[1], row[2], hashed) for row, hashed in heads),
            checkpoints=proven.checkpoints,
            proofs=proven.proofs,
        )
        epoch = self._epoch + 1
        ends = [(row[1], row[2]) for row, _ in heads]
        erased = chain(erased_later(self._seen, ends, self._wanted.at), self.withheld.erased())
        return epoch, own_rows(self._fork_id, ForkEnd(forked, self._time, epoch, erased))

    @property
    def _epoch(self) -> int:
        return 0 if self._last is None else opened(self._last[4], where=f"position {self._last[0]}").epoch

    @property
    def _fork_id(self) -> str:
        return derive(self._lineage.log_id, "bundle", self._wanted.question.decode(), self._wanted.at)

    def _note(self, row: Row, hashed: str, leaf: int | None) -> None:
        position, stream, version, topic, state = row
        self._events += 1
        self._unproven += leaf is None and topic not in {TAKEN, PUBLISHED}
        self._last = row
        end = ((position, stream, version, topic), hashed)
        if stream == STREAM:
            self._of_log.append(end)
        else:
            self._heads[stream] = end
        if topic in self._noted:
            self._noted[topic].append(position)
        if _FILE in state:
            payload = payload_in(state)
            for file in () if payload is None else files_in(decode(topic, payload)):
                self._files.setdefault(file.sha256, file)

    def _page(self, after: int, last: int) -> list[tuple[Row, bool]]:
        at, places = self._wanted.at, self._places
        if places is None:
            return [(row, row[0] <= at) for row in self._seen(_WHOLE, (after, last, _PAGE))]
        rows = self._seen(_BRIEF, (after, last, _PAGE))
        if not rows:
            return []
        inside = places[bisect_right(places, after) : bisect_right(places, rows[-1][0])]
        states: dict[int, bytes] = dict(self._seen(_STATES.format(marks(inside)), inside)) if inside else {}
        return [((*row[:4], states[row[0]]), True) if row[0] in states else (row, False) for row in rows]

    def _streams(self, authorising: Sequence[Row]) -> frozenset[str]:
        """Return the streams of the part, with those that authorise what was erased in them."""
        if self._wanted.streams is None:
            found = (name for (name,) in self._seen(_NAMES, (self._wanted.at,)))
            return frozenset({*found, *(row[1] for row in authorising)})
        return frozenset({*self._wanted.streams, *map(erased_stream, self._wanted.streams)} - {STREAM})

    def _selected(self) -> "array[int]":
        """Return the positions of the part, in order: its streams, and what of stream `log` they rest on."""
        found = array("q")
        names = sorted(self._names - {STREAM})
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            found.extend(at for (at,) in self._seen(_PLACES.format(marks(some)), (*some, self._wanted.at)))
        places = sorted(found)
        picked = {*in_force(self._seen, places, self._wanted.at), *self._wanted.of_log}
        return array("q", sorted({*places, *picked}))

    def _time_at_place(self) -> int:
        rows = self._seen(_LAST, (self._wanted.at,))
        return opened(rows[0][1], where=f"position {rows[0][0]}").time if rows else 0


def _missing(position: int) -> CorruptEvent:
    found = CorruptEvent(
        f"position {position} is missing, a row was taken away: no bundle is made of what is not as it was written, bundle before "
        "that position"
    )
    found.position = position
    return found

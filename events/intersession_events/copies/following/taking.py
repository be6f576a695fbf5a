"""Continues a copy of a log: takes what is new, proves it, applies what was erased since, all in one transaction (COPY-1)."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import BackupFailed, CorruptEvent, LogError, LogRewritten, UnknownTopic
from intersession_events.basics.machine import sync
from intersession_events.basics.progress import Progress
from intersession_events.copies.following.checkpoints import CheckpointsAlong
from intersession_events.copies.following.source import CopySource, Place, Reads
from intersession_events.facts import CheckpointTaken, Erased, Event, decode
from intersession_events.log.envelope import FIRST, NOT_AUTHORISED, Erasing, damage_of
from intersession_events.log.erasing import erased_stream
from intersession_events.log.lineage import FORKED
from intersession_events.log.row_state import hash_in, links_in, opened, payload_in
from intersession_events.log.sql import COLUMNS, Row
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import STREAM, TAKEN
from intersession_events.stores.files.folder import Folder, folder_of
from intersession_events.stores.files.store import HIDDEN
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.sqlite.filling import FileFilling
from intersession_events.stores.sqlite.log import SqliteLog

PAGE: Final = 1_000
_ERASED: Final = "erased.1"
_PURGED: Final = ("stored_snapshots", "agent_calls", "workers")
"""The tables of a whole copy that hold words and are no part of the log: they go with the first continuation."""


class Continued(NamedTuple):
    """A copy after it was continued: the last position before and now, the rows that were erased in it, the files that came.

    `checked`, `signed` and `published` are the last positions whose checkpoints were checked, were signed by a trusted key, and
    are as they were published.
    """

    before: int
    position: int
    erased: int = 0
    files: int = 0
    checked: int = 0
    signed: int = 0
    published: int = 0


class LogCopy:
    """A copy of a log in a file, which is continued: an SQLite log that nobody writes to. It belongs to one thread.

    Raises:
        BackupFailed: at the target is something else, it can't be written, or a process writes there.
    """

    def __init__(
        self, path: str | Path, *, published: Sequence[Published] = (), trusted: Trusted | None = None
    ) -> None:
        self.path = Path(path).absolute()
        self._published = published
        self._trusted = trusted
        self._along: CheckpointsAlong | None = None
        self._along_at = 0
        self._proven = (0, 0)
        """Up to where checkpoints were signed, and published, as far as this copy has seen."""
        self._files = Folder(folder_of(str(self.path)))

    def know(self, published: Sequence[Published]) -> None:
        """Take what was published by now: it is read before the log, which has all of it then."""
        self._published = published
        if self._along is not None:
            self._along.know(published)

    def take(self, source: CopySource, progress: Progress | None = None) -> Continued:
        """Take what is new in a log, in one transaction: after a kill the copy is as it was before.

        Raises:
            BackupFailed: what is there is no copy of this log, a process writes to it, or it can't be written.
            LogRewritten: the log is not any more what the copy has, or what was published of it. The copy stays as it was.
            LogError: the log can't be read.
        """
        try:
            with source.reading() as seen:
                known = seen.known()
                if not self.path.exists():
                    self._make(known)
                self._look(source, known)
                with closing(sqlite3.connect(self.path, isolation_level=None)) as copy:
                    copy.execute("PRAGMA secure_delete=ON")
                    copy.execute("PRAGMA synchronous=FULL")
                    done = self._continue(_Taking(copy, source, seen, known), progress)
                    # The words that were erased lie in the write-ahead log until then, and the file is whole by itself.
                    copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (OSError, sqlite3.Error) as error:
            self._along = None
            raise BackupFailed(f"{self.path} can't be written: {error}") from error
        except BaseException:
            self._along = None
            raise
        return done

    def _make(self, known: Moved) -> None:
        with closing(FileFilling(self.path, anew=True)) as filling:
            filling.begin(known._replace(given=0))
            filling.finish()

    def _look(self, source: CopySource, known: Moved) -> None:
        try:
            with SqliteLog(self.path, read_only=True) as there:
                log_id, forked, writer = there.log_id, there.lineage.forked, there.written_by()
        except LogError as error:
            raise BackupFailed(
                f"{self.path} is no copy that can be continued ({error}): name another file"
            ) from error
        if forked is not None:
            raise BackupFailed(f"{self.path} is a fork: copy it whole, to a new file")
        if log_id != known.log_id:
            raise BackupFailed(
                f"{self.path} is a copy of the log {log_id}, and {source.shown} is the log {known.log_id}: name another file"
            )
        if writer is not None:
            raise BackupFailed(f"a process writes to {self.path}: it is no copy any more, name another file")

    def _continue(self, taking: "_Taking", progress: Progress | None) -> Continued:
        taking.copy.execute("BEGIN IMMEDIATE")
        try:
            before = taking.begin()
            if self._along is None or self._along_at != before:
                self._along = CheckpointsAlong(taking.known.log_id, self._published, self._trusted)
                taking.catch_up(self._along)
                self._along.signed, self._along.published = self._proven
            done = taking.run(self._along, progress)
            done = done._replace(files=self._take_files(taking.source))
            if taking.has_erased_files:
                # Before the commit: after a kill the erasure comes again, and what is left of them goes then.
                self._drop_files(taking.source)
            crash_point("B3")
            taking.copy.execute("COMMIT")
        except BaseException:
            if taking.copy.in_transaction:
                taking.copy.execute("ROLLBACK")
            raise
        self._along_at, self._proven = done.position, (done.signed, done.published)
        crash_point("B4")
        sync(self.path.parent)
        return done

    def _take_files(self, source: CopySource) -> int:
        """Take contents that the log has and the copy has not; a content is there before the event that names it."""
        came = 0
        for name in sorted({*source.files()} - {*self._files.names()}):
            data = source.file(name)
            # What is encrypted has a name of its own, and is proven by whoever has the keys.
            if data is not None and (HIDDEN in name or sha256(data).hexdigest() == name):
                self._files.put(name, data)
                came += 1
        return came

    def _drop_files(self, source: CopySource) -> None:
        """Remove contents that the log does not have any more, behind an erasure that removed some."""
        for name in {*self._files.names()} - {*source.files()}:
            self._files.remove(name)


class _Taking:
    """One continuation, inside its transaction."""

    def __init__(self, copy: sqlite3.Connection, source: CopySource, seen: Reads, known: Moved) -> None:
        self.copy = copy
        self.source = source
        self.seen = seen
        self.known = known
        self._last: dict[str, tuple[int, str]] = {}
        self._authorised: dict[Place, Erasing] = {}
        self._unauthorised: dict[Place, tuple[int, str]] = {}
        self._after = 0
        self.has_erased_files = False
        """Whether an erasure that came removed contents of files."""

    def begin(self) -> int:
        """Check that the log is still what the copy has, by its last event; return that one's position."""
        found = self.copy.execute(COLUMNS + "ORDER BY rowid DESC LIMIT 1").fetchone()
        if found is None:
            return 0
        position, stream, version, topic = found[:4]
        head = self.seen.head()
        if head < position:
            raise self._otherwise(
                f"it ends at position {head}, and the copy has {position}: its end was cut off"
            )
        there = self.seen.rows(position - 1, 1)
        same = there and (
            (*there[0][:4], _hashed(there[0])) == (position, stream, version, topic, _hashed(found))
        )
        if not same:
            raise self._otherwise(f"another event stands at position {position} than in the copy")
        self._after = int(position)
        return self._after

    def catch_up(self, along: CheckpointsAlong) -> None:
        """Let the checkpoints go on from the last one that the copy has."""
        found = self.copy.execute(
            "SELECT state FROM stored_events WHERE originator_id=? AND topic=? ORDER BY originator_version",
            (STREAM, TAKEN),
        )
        events = (decode(TAKEN, payload_in(state) or b"") for (state,) in found.fetchall())
        taken = [event for event in events if isinstance(event, CheckpointTaken)]
        after = taken[-1].position if taken else 0
        along.begin(taken)
        for position, state in self.copy.execute(
            "SELECT rowid, state FROM stored_events WHERE rowid > ? ORDER BY rowid", (after,)
        ):
            along.take(position, hash_in(state, where=f"position {position}"))

    def run(self, along: CheckpointsAlong, progress: Progress | None) -> Continued:
        """Take all rows behind the copy's last one, and what was erased of those before."""
        before, head, erased = self._after, self.seen.head(), 0
        for table in _PURGED:
            if self.copy.execute(
                "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (table,)
            ).fetchone():
                self.copy.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        while rows := self.seen.rows(self._after, PAGE):
            for row in rows:
                event = self._proven(row)
                along.take(row[0], _hashed(row))
                if isinstance(event, CheckpointTaken) and (problem := next(along.check(event), None)):
                    raise self._otherwise(problem)
            self.copy.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?)", rows)
            self._after = rows[-1][0]
            erased += self._erase_known()
            if progress is not None:
                progress(min(self._after, head), max(self._after, head))
        if self._unauthorised:
            (place, (position, _)) = next(iter(self._unauthorised.items()))
            raise self._otherwise(
                f"position {position} ({place.stream}, version {place.version}): {NOT_AUTHORISED}"
            )
        if problem := next(along.otherwise(self._after), None):
            raise self._otherwise(problem)
        self._finish(before)
        return Continued(
            before,
            self._after,
            erased,
            0,
            checked=along.checked,
            signed=along.signed,
            published=along.published,
        )

    def _finish(self, before: int) -> None:
        self.copy.execute("UPDATE log_identity SET epoch=MAX(epoch, ?)", (self.known.epoch,))
        # Of the rows themselves: through a gateway, the receipt of this very copy may come behind what was known of the log.
        self.copy.execute(
            "INSERT OR IGNORE INTO log_topics SELECT DISTINCT topic FROM stored_events WHERE rowid > ?",
            (before,),
        )
        given = max(self.known.given, self._after)
        self.copy.execute("DELETE FROM sqlite_sequence WHERE name='stored_events'")
        self.copy.execute("INSERT INTO sqlite_sequence VALUES ('stored_events', ?)", (given,))

    def _proven(self, row: Row) -> Event | None:
        """Prove a new row: its hash, its place behind the one before it in its stream, and who erased it, if it is.

        Return the event where the copy has to act on it.
        """
        position, stream, version, topic, state = row
        if position <= self._after:
            raise self._otherwise(f"position {position} comes behind {self._after}")
        if topic == FORKED:
            raise BackupFailed(f"{self.source.shown} is a fork: copy it whole, to a new file")
        links = links_in(state, log_id=self.known.log_id, stream=stream, version=version, topic=topic)
        if links is None:
            links = self._looked_at(row)
        prev, hashed = links
        before = self._last.get(stream) or self._last_of(stream, version)
        if before != (version - 1, prev):
            raise self._otherwise(
                f"position {position}: version {version} of {stream} does not follow the event before it in its stream"
            )
        self._last[stream] = (version, hashed)
        if topic not in {_ERASED, TAKEN}:
            return None
        event = decode(topic, payload_in(state) or b"")
        if isinstance(event, Erased) and stream == erased_stream(event.stream):
            self.has_erased_files = self.has_erased_files or event.files > 0
            for erased, stands in event.rows:
                place = Place(event.stream, erased)
                self._authorised[place] = Erasing(position, stands, thinking=event.thinking)
                if self._unauthorised.get(place, (0, ""))[1] == stands:
                    del self._unauthorised[place]
        return event

    def _looked_at(self, row: Row) -> tuple[str, str]:
        position, stream, version, _, state = row
        try:
            envelope = opened(state, where=f"position {position}")
            damage = damage_of(row, envelope, self.known.log_id)
        except (CorruptEvent, UnknownTopic) as error:
            raise self._otherwise(str(error)) from None
        if damage is not None:
            raise self._otherwise(f"position {position}: {damage}")
        if envelope.lacks_thinking or (envelope.is_erased and not envelope.sealed):
            # The event that authorises it comes later.
            self._unauthorised[Place(stream, version)] = (position, envelope.stands)
        return envelope.prev, envelope.hash

    def _last_of(self, stream: str, version: int) -> tuple[int, str]:
        if version == 1:
            return (0, FIRST)
        found = self.copy.execute(
            "SELECT state FROM stored_events WHERE originator_id=? AND originator_version=?",
            (stream, version - 1),
        ).fetchone()
        return (0, "") if found is None else (version - 1, hash_in(found[0], where=f"{stream!r}"))

    def _erase_known(self) -> int:
        """Take over what stands in the place of words that were erased of events that the copy has already."""
        wanted = [place for place in self._authorised if self._has(place)]
        changed = 0
        for row in self.seen.at(wanted):
            place = Place(row[1], row[2])
            envelope = opened(row[4], where=f"position {row[0]}")
            erasing = self._authorised[place]
            problem = erasing.problem(envelope, row[3], row[0])
            is_more = erasing.thinking and envelope.is_erased  # encrypted, or the rest went, too
            if is_more and not envelope.sealed:  # what authorises that comes later
                self._unauthorised[place] = (row[0], envelope.stands)
            if not erasing.is_done(envelope) or (problem is not None and not is_more):
                raise self._otherwise(
                    f"position {row[0]}: {problem or 'its words were to be erased, and are there'}"
                )
            ((own,),) = self.copy.execute(
                "SELECT state FROM stored_events WHERE originator_id=? AND originator_version=?", place
            )
            if hash_in(own, where=f"position {row[0]}") != envelope.hash:
                raise self._otherwise(f"position {row[0]} is another event than in the copy")
            if own != row[4]:
                self.copy.execute(
                    "UPDATE stored_events SET state=? WHERE originator_id=? AND originator_version=?",
                    (row[4], *place),
                )
                changed += 1
        self._authorised.clear()
        return changed

    def _has(self, place: Place) -> bool:
        return (
            self.copy.execute(
                "SELECT 1 FROM stored_events WHERE originator_id=? AND originator_version=?", place
            ).fetchone()
            is not None
        )

    def _otherwise(self, problem: str) -> LogRewritten:
        return LogRewritten(
            f"{self.source.shown} is not the log any more that the copy was made of: {problem}. The copy stays as it "
            "was: keep it, it is the evidence"
        )


def _hashed(row: Sequence[object]) -> str:
    state = row[4]
    return hash_in(state if isinstance(state, bytes) else b"", where=f"position {row[0]}")

"""Opens a file for its one writer: makes a new file a log, and checks that an old one is a log."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Final

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.lineage import Lineage
from intersession_events.stores.database import MEMORY, Cursor, typed
from intersession_events.stores.keys.keyring import ENCRYPTED_ROWS, Keyring
from intersession_events.stores.keys.opening import keys_at, keys_to_write, lost
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.portable.application import own_settings
from intersession_events.stores.portable.identity import Holder, Identity
from intersession_events.stores.portable.recent import LAST_EVENTS, Recent, recent_of
from intersession_events.stores.portable.writer import Opened
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.ahead import damage_of
from intersession_events.stores.sqlite.application import WriterApplication
from intersession_events.stores.sqlite.connections import (
    connect_to_read,
    database_uri,
    held_by_reader,
    raw_of,
)
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.held import HeldFile
from intersession_events.stores.sqlite.names import check_one_name
from intersession_events.stores.sqlite.presence import Folded, Presence
from intersession_events.stores.sqlite.readers import legible
from intersession_events.stores.sqlite.writer_lock import WriterLock

_ERASED: Final = (
    "SELECT 1 FROM stored_events WHERE originator_id >= 'erased:' AND originator_id < 'erased;' LIMIT 1"
)


@dataclass(frozen=True, kw_only=True)
class OpenedFile(Opened):
    """The resources of a writer that has opened a file."""

    app: WriterApplication
    lock: WriterLock | None
    held: HeldFile | None
    folded: Folded
    wal: str

    def check(self, cursor: Cursor, whole: str) -> bool:  # noqa: ARG002 - for others
        """Return whether other views are intact than the writer knows. Each transaction checks the epoch as it begins."""
        return self.app.commits.whole_views != whole

    def erased(self) -> None:
        """Remove erased texts from the write-ahead log."""
        self._emptied(self.app.datastore.fold)

    def let_go(self, *, anew: bool = False) -> Sequence[str]:
        """Say whether a reader has kept the write-ahead log from being emptied behind the last erasure; `anew`: rewrite the file."""
        if anew and not self._emptied(self.app.datastore.write_anew) and not self.app.datastore.is_held:
            return [
                f"free pages of {self.app.datastore.pool.db_name}: it could not be written anew, run VACUUM"
            ]
        return [held_by_reader(self.wal)] if self.app.datastore.is_held else []

    def _emptied(self, empty: Callable[[], bool]) -> bool:
        presence = self.app.commits.presence
        with nullcontext() if presence is None else presence.emptied():
            return empty()

    def announce(self, gateway: str | None, advertised: str | None) -> None:  # noqa: ARG002 - all are on this machine
        """Write the address of this writer's gateway into the lock file, for commands in other processes."""
        if self.lock is not None:
            self.lock.tell(Holder(pid=os.getpid(), epoch=self.epoch, gateway=gateway))

    def close(self) -> None:
        """Finish the waiting work, and give up the locks last."""
        self.recorder.close()
        presence = self.app.commits.presence
        if self.held is not None and presence is not None and not presence.is_whole():
            if not presence.are_there():
                self.app.datastore.fold()
            # What was cut or overwritten stays as it is: folding would mix what is left of both.
            self.held.keep_names()
        self.app.close()
        self.folded.leave()
        if self.held is not None:
            self.held.release()
        if self.lock is not None:
            self.lock.release()


def open_for_writing(
    path: str,
    *,
    clock: Callable[[], int],
    new_log_id: Callable[[], str],
    environment: Mapping[str, str],
    entropy: Callable[[int], bytes],
    encryption: Encryption | None,
) -> OpenedFile:
    """Take the locks, make or check the log, and begin a new epoch.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: the file is something else, or a copy that lost the log's identity.
        LogTooNew: a newer version wrote it.
        StoreUnavailable: the file can't be opened.
        BadKey: it is kept encrypted, and its master key can't be had.
    """
    memory, wal = path == MEMORY, f"{path}-wal"
    if not memory:
        _check_place(path)
    lock = None if memory else WriterLock(path)
    held: HeldFile | None = None
    try:
        # SQLite gives its other files the mode of this one.
        held = None if memory else HeldFile(path)
        is_wal_left = not memory and _is_wal_left(wal)
        known = None if memory else _known(path)
        if not memory:
            with typed(FAILURES):
                _check_left_out(path)
        keys = None if memory else _keys(path, encryption, entropy, is_new=known is None)
        app = WriterApplication(
            own_settings({"SQLITE_DBNAME": database_uri(path, mode="rwc"), **environment})
        )
        app.encrypt(keys)
        try:
            with typed(FAILURES), app.datastore.transaction(commit=True) as cursor:
                log_id = new_log_id() if known is None else known.log_id
                if known is None:
                    identity.create(cursor, log_id=log_id, now_ms=clock())
                else:
                    identity.make_anew(cursor, path)
                epoch = identity.take_epoch(cursor)
                cursor.execute("SELECT COALESCE(MAX(rowid), 0) FROM stored_events")
                head: int = cursor.fetchone()[0]
                recent = _recent_in(cursor, path, keys)
            app.commits.epoch = epoch
            folded = Folded(path, log_id, lambda: _committed(app, head))
            if not memory:
                folded.check()
                app.commits.presence = Presence(path, wal, f"{path}-shm", content=folded)
        except BaseException:
            app.close()
            raise
        app.chained.lineage = Lineage(log_id) if known is None else known.lineage
        if lock is not None:
            lock.tell(Holder(pid=os.getpid(), epoch=epoch))
    except BaseException:
        if held is not None:
            held.release()
        if lock is not None:
            lock.release()
        raise
    opened = OpenedFile(
        epoch=epoch,
        head=head,
        recent=recent,
        app=app,
        lock=lock,
        held=held,
        folded=folded,
        wal=wal,
    )
    _empty(opened, is_wal_left=is_wal_left)
    return opened


def _is_wal_left(wal: str) -> bool:
    return os.path.isfile(wal) and os.path.getsize(wal) > 0  # noqa: PTH113, PTH202 - no error of the system comes out


def _empty(opened: OpenedFile, *, is_wal_left: bool) -> None:
    """Empty a write-ahead log that an earlier writer has left, if anything was ever erased: it was killed before it did, maybe."""
    if is_wal_left:
        with typed(FAILURES), opened.app.datastore.transaction(commit=False) as cursor:
            cursor.execute(_ERASED)
            has_erased = cursor.fetchone() is not None
        if has_erased:
            opened.erased()


def _keys(
    path: str, wanted: Encryption | None, entropy: Callable[[int], bytes], *, is_new: bool
) -> Keyring | None:
    def has_encrypted() -> bool:
        if is_new:
            return False
        with typed(FAILURES), closing(connect_to_read(path)) as connection:
            return bool(connection.execute(*ENCRYPTED_ROWS).fetchall())

    place = KeyFile(file_of(path))
    found = keys_at(place, wanted, writes=True, entropy=entropy, has_encrypted=has_encrypted)
    return keys_to_write(place, found, wanted, entropy=entropy)


def _recent_in(cursor: Cursor, path: str, keys: Keyring | None) -> Recent:
    """Return the data of the last events. A state that is invalid text is reported by its reader.

    Raises:
        BadKey: one is kept encrypted, and there are no keys.
    """
    with legible(raw_of(cursor)):
        cursor.execute(*LAST_EVENTS)
        recent = recent_of(cursor.fetchall())
    if recent.sealed and keys is None:
        raise lost(KeyFile(file_of(path)))
    return recent


def _check_place(path: str) -> None:
    """Make sure, before a lock is made beside it, that there can be a log.

    Raises:
        NotALog: the file is something else.
        StoreUnavailable: there is no folder, or the file has another name.
    """
    folder = os.path.dirname(path)  # noqa: PTH120 - asked so that no error of the system comes out
    if not os.path.isdir(folder):  # noqa: PTH112 - the same
        raise StoreUnavailable(f"{folder} is no directory, so no log can be made in it: make it first")
    check_one_name(path)
    _known(path)  # a file that is not a log does not even get a lock beside it


def _check_left_out(path: str) -> None:
    """Make sure, before anything is written over it, that SQLite leaves nothing out that was acknowledged.

    Raises:
        StoreUnavailable: it does.
    """
    damage = damage_of(path)
    if damage is None:
        return
    raise StoreUnavailable(
        f"{path}-wal was damaged while nobody had the log open: {damage.commits} commits behind its frame {damage.frame} were "
        "acknowledged, and would be lost for good with the next one. `intersession verify` says which events these are. Bring the "
        f"file back from a copy; or keep a copy of both files, and have `sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'` go on "
        "without them"
    )


def _committed(app: WriterApplication, head: int) -> int:
    """Return up to which position was committed; `head` is where it began."""
    frontier = app.commits.frontier
    return head if frontier is None else frontier.head


def _known(path: str) -> Identity | None:
    found = identity.inspect(path)
    if found is not None:
        found.check_writable(path)
    return found

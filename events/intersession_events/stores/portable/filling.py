"""The target of a copied log: takes its rows, and becomes a log only when it is complete."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from intersession_events.basics.errors import MigrationFailed
from intersession_events.log.tables import FORMAT
from intersession_events.stores.database import Cursor, Row
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.keys.opening import new_keys
from intersession_events.stores.keys.records import KeyFile
from intersession_events.stores.portable.log import PortableLog


class Moved(NamedTuple):
    """The facts about a copied log beside its events."""

    log_id: str
    epoch: int
    created_ms: int
    given: int
    """The last position that was ever given."""
    topics: Collection[str]
    keys: Keyring | None = None
    """Its keys, if it is kept encrypted: then the copy is, with keys of its own (CRYPT-5)."""


class Filling(ABC):
    """A place that is being filled with a log. Nothing can open that log before `finish`.

    Each step is a transaction of its own, and raises `MigrationFailed` where the place can't be written.
    """

    shown: str
    """The place, without a password."""
    _filled: object
    """What an error names."""
    _identity: str
    """Asks whose log is being made, and its format; nobody else fills the place until the transaction ends."""
    _remedy: str
    """How to be rid of what an earlier attempt left."""
    _wrapped: KeyFile
    """The place of its keys until it is whole."""
    _keys: Keyring | None = None

    @abstractmethod
    def whole(self) -> PortableLog | None:
        """Open a log that is already complete there, for reading; None if there is none.

        Raises:
            MigrationFailed: there is something else.
        """

    def begin(self, log: Moved) -> int:
        """Make room for a log, or continue an earlier attempt; return the last position that is there.

        Raises:
            MigrationFailed: another log was begun there.
            BadKey: it is kept encrypted, and the master key can't be had.
        """
        if log.keys is not None:
            self._keys = new_keys(self._wrapped, log.keys)
        with self._writing() as cursor:
            self._make_tables(cursor, log)
            cursor.execute(self._identity)
            if cursor.fetchall() != [(log.log_id, FORMAT)]:
                raise MigrationFailed(
                    f"{self._filled} is another log, whose move was begun and not ended: end that, or {self._remedy}"
                )
            cursor.execute("UPDATE log_identity SET epoch=?, created_ms=?", (log.epoch, log.created_ms))
            cursor.execute("DELETE FROM log_topics")
            cursor.executemany(
                "INSERT INTO log_topics VALUES (?)", [(topic,) for topic in sorted(log.topics)]
            )
            return _last(cursor)

    def put(self, rows: Sequence[Row], *, after: int | None) -> None:
        """Add rows behind a position, durably: all of them or none. None takes them in any order.

        Raises:
            MigrationFailed: it can't hold one of them, or somebody else writes there.
        """
        with self._writing() as cursor:
            cursor.execute(self._identity)
            if after is not None and _last(cursor) != after:
                raise MigrationFailed(f"somebody else writes into {self._filled}")
            self._insert(cursor, rows if self._keys is None else self._keys.sealed_rows(rows))

    def cut(self, after: int) -> None:
        """Remove the rows behind a position."""
        with self._writing() as cursor:
            cursor.execute("DELETE FROM stored_events WHERE rowid > ?", (after,))

    @abstractmethod
    def reading(self) -> PortableLog:
        """Open what has arrived so far, for reading."""

    @abstractmethod
    def finish(self) -> None:
        """Turn it into a log that can be opened.

        Raises:
            MigrationFailed: it can't be.
        """

    def close(self) -> None:  # noqa: B027 - not each holds anything
        """Let go of the place; its content stays."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Cursor]:
        """Run a transaction round a block."""

    @abstractmethod
    def _make_tables(self, cursor: Cursor, log: Moved) -> None:
        """Make the tables of a log, unless an earlier attempt did, and note the last position that was given."""

    @abstractmethod
    def _insert(self, cursor: Cursor, rows: Sequence[Row]) -> None:
        """Insert rows of events."""


def _last(cursor: Cursor) -> int:
    cursor.execute("SELECT coalesce(max(rowid), 0) FROM stored_events")
    last: int = cursor.fetchone()[0]
    return last

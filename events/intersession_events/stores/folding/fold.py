"""One view folded in a temporary database of its own, by the rules by which a log keeps it."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

from intersession_events.errors import CorruptEvent, UnknownTopic
from intersession_events.log import InlineView, Recorded, Row, SetAside, SqlValue, unseal

Schema = dict[str, str | None]
"""The statements that made tables and indexes, by name; None for an index that SQLite made itself."""


class Fold:
    """A view as the events up to `position` make it.

    The database is SQLite's own temporary one: it leaves memory when it grows, and goes when it is closed.
    """

    def __init__(self, view: InlineView) -> None:
        self.name: Final = view.name
        self.position = 0
        self.set_aside: list[SetAside] = []
        self._view = view
        # One thread after the other: the writer's takes over what another one has folded.
        self.connection: Final = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode=MEMORY")
        self.connection.execute("PRAGMA synchronous=OFF")
        self._sql = _Plain(self.connection)
        view.create(self._sql)

    @property
    def schema(self) -> Schema:
        """The view's tables and indexes."""
        return schema_of(self.connection)

    @property
    def tables(self) -> Sequence[str]:
        """The names of the view's tables."""
        found = self.connection.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
        return [name for (name,) in found]

    def take(self, rows: Sequence[Row], *, log_id: str) -> None:
        """Take rows of events in that follow on the position; what can't be read or taken in is set aside."""
        events: list[Recorded] = []
        for row in rows:
            position, stream, version, topic, state = row
            try:
                events.append(
                    unseal(
                        log_id=log_id,
                        position=position,
                        stream=stream,
                        version=version,
                        topic=topic,
                        state=state,
                    )
                )
            except (CorruptEvent, UnknownTopic) as error:
                self.set_aside.append(
                    SetAside(
                        view=self.name,
                        position=position,
                        stream=stream,
                        version=version,
                        topic=topic,
                        reason=f"{type(error).__name__}: {error}",
                    )
                )
        if self._attempt(events) is not None:
            # One of them is poison: each under a savepoint of its own.
            for event in events:
                if (poison := self._attempt([event])) is not None:
                    self.set_aside.append(
                        SetAside(
                            view=self.name,
                            position=event.position,
                            stream=event.stream,
                            version=event.version,
                            topic=event.topic,
                            reason=f"{type(poison).__name__}: {poison}",
                        )
                    )
        if rows:
            self.position = rows[-1][0]

    def rows_of(self, table: str) -> Iterator[Row]:
        """Return all rows of one of its tables, column by column in the order of its statement."""
        return iter(self.connection.execute(f"SELECT * FROM {table}"))  # noqa: S608 - a view's own table

    def close(self) -> None:
        """Let the temporary database go."""
        self.connection.close()

    def _attempt(self, events: Sequence[Recorded]) -> Exception | None:
        self.connection.execute("BEGIN")
        try:
            for event in events:
                self._view.apply(self._sql, event)
        except Exception as error:  # noqa: BLE001 - as in the log: whatever it is, the event is set aside
            self.connection.execute("ROLLBACK")
            return error
        self.connection.execute("COMMIT")
        return None


def schema_of(connection: sqlite3.Connection, *, tables: Sequence[str] | None = None) -> Schema:
    """Return what was made in a database, of some tables or of all."""
    cursor = connection.cursor()
    cursor.row_factory = None
    found = cursor.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index')")
    return {name: sql for name, table, sql in found.fetchall() if tables is None or table in tables}


class _Plain:
    """A cursor as views see it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._cursor = connection.cursor()

    def execute(self, statement: str, parameters: Sequence[SqlValue] = ()) -> Self:
        self._cursor.execute(statement, parameters)
        return self

    def fetchone(self) -> Any:  # as `Sql` has it
        return self._cursor.fetchone()

    def fetchall(self) -> list[Row]:
        return self._cursor.fetchall()

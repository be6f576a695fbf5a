"""The hosts beside the writer, in a table of the log's schema: rows that are valid until a time of the server's clock."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, final

from intersession_events.log.sql import Row, SqlValue
from intersession_events.stores.database import Cursor, Failures, typed
from intersession_events.stores.hosts.host import ALIVE_S, Host

HOSTS: Final = """CREATE TABLE IF NOT EXISTS {schema}.log_hosts (
    name text COLLATE "C" PRIMARY KEY, kind text NOT NULL, machine text NOT NULL, pid bigint NOT NULL, version text NOT NULL,
    address text, position bigint, behind bigint, since timestamptz NOT NULL, alive_until timestamptz NOT NULL)"""

_NAMED: Final = "name, kind, machine, pid, version, address, position, behind"
_ANNOUNCE: Final = (
    f"INSERT INTO log_hosts ({_NAMED}, since, alive_until) "  # noqa: S608 - our own words
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, clock_timestamp(), clock_timestamp() + make_interval(secs => ?)) "
    "ON CONFLICT (name) DO UPDATE SET address = EXCLUDED.address, position = EXCLUDED.position, behind = EXCLUDED.behind, "
    "alive_until = EXCLUDED.alive_until"
)
_FORGET: Final = "DELETE FROM log_hosts WHERE name = ? OR alive_until < clock_timestamp()"
_ALIVE: Final = (
    f"SELECT {_NAMED}, (extract(epoch FROM since) * 1000)::bigint FROM log_hosts "  # noqa: S608 - the same
    "WHERE alive_until > clock_timestamp() ORDER BY name LIMIT 1000"
)


@final
class Table:
    """The hosts beside the writer of a log on a server. `rows` reads, `writing` lends a transaction."""

    def __init__(
        self,
        writing: Callable[[], AbstractContextManager[Cursor]],
        rows: Callable[[str, Sequence[SqlValue]], list[Row]],
        failures: Failures,
    ) -> None:
        self._writing = writing
        self._rows = rows
        self._failures = failures

    def announce(self, host: Host) -> None:
        """Say that a host is there, for `ALIVE_S` seconds from now.

        Raises:
            StoreUnavailable: the server is away, can only be read, or gives this role no right to the table.
        """
        given = (getattr(host, name) for name in _NAMED.split(", "))
        with typed(self._failures), self._writing() as cursor:
            cursor.execute(_ANNOUNCE, (*given, ALIVE_S))

    def leave(self, name: str) -> None:
        """Say that a host has ended; those that ended without a word go with it.

        Raises:
            StoreUnavailable: the same.
        """
        with typed(self._failures), self._writing() as cursor:
            cursor.execute(_FORGET, (name,))

    def alive(self) -> Sequence[Host]:
        """Return the hosts that are there now, by name.

        Raises:
            StoreUnavailable: the server is away, or the log has no such table yet.
        """
        with typed(self._failures):
            found = self._rows(_ALIVE, ())
        names = (*_NAMED.split(", "), "since")
        return [Host(**dict(zip(names, row, strict=True))) for row in found]

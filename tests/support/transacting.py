"""Does with a log's tables, in one transaction of its writer's, what nothing but a test does."""

from collections.abc import Callable
from typing import TypeVar, cast

from intersession_events.log import Log, Sql
from intersession_events.stores import SqliteLog
from intersession_events.stores.folding import PlainSql
from intersession_events.stores.portable import PortableLog
from intersession_events.stores.sqlite.connections import raw_of

T = TypeVar("T")


def transact(log: Log, work: Callable[[Sql], T]) -> T:
    """Run work on a log's tables between two appends. What it raises comes back, and undoes it."""
    assert isinstance(log, PortableLog)
    if isinstance(log, SqliteLog):
        return log._the_writer().transact(lambda cursor: work(PlainSql(raw_of(cursor))), 30.0)
    return log._the_writer().transact(lambda cursor: work(cast("Sql", cursor)), 30.0)

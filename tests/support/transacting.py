"""Does with a log's tables, in one transaction of its writer's, what nothing but a test does."""

from collections.abc import Callable
from typing import TypeVar, cast

from intersession_events.log.log import Log
from intersession_events.log.sql import Sql
from intersession_events.stores.folding.fold import PlainSql
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.connections import raw_of
from intersession_events.stores.sqlite.log import SqliteLog

T = TypeVar("T")


def transact(log: Log, work: Callable[[Sql], T]) -> T:
    """Run work on a log's tables between two appends. What it raises comes back, and undoes it."""
    assert isinstance(log, PortableLog)
    if isinstance(log, SqliteLog):
        return log._the_writer().transact(lambda cursor: work(PlainSql(raw_of(cursor))), 30.0)
    return log._the_writer().transact(lambda cursor: work(cast("Sql", cursor)), 30.0)

"""Finds what is wrong with the tables of a log beside the events: another schema, triggers, impossible values in small tables.

Somebody with plain SQL can stop or divert a writer without touching an event. A writer looks before it begins, and
verification looks again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import LARGEST
from intersession_events.log.sql import Row

Query = Callable[[str], list[Row]]
"""Runs a reading statement and returns its rows."""

APPLICATION_ID: Final = 0x49534C47
"""`ISLG` in the file's header. A dump leaves it out: its rows may have lost their positions (`.dump` renumbers)."""

FORMAT: Final = 1
"""The format of a log: its tables, and how an envelope lies in a row (`row_state.py`)."""

LOG_TABLES: Final = {
    "stored_events": "CREATE TABLE stored_events (rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid > 0), "
    "originator_id TEXT NOT NULL, originator_version INTEGER NOT NULL, topic TEXT NOT NULL, state BLOB NOT NULL, "
    "UNIQUE (originator_id, originator_version))",
    "log_identity": "CREATE TABLE log_identity (log_id TEXT NOT NULL, format INTEGER NOT NULL, epoch INTEGER NOT NULL, "
    "created_ms INTEGER NOT NULL)",
    "log_topics": "CREATE TABLE log_topics (topic TEXT PRIMARY KEY) WITHOUT ROWID",
    "inline_views": "CREATE TABLE inline_views (name TEXT PRIMARY KEY, shape INTEGER NOT NULL, "
    "position INTEGER NOT NULL) WITHOUT ROWID",
    "set_aside": "CREATE TABLE set_aside (view TEXT NOT NULL, position INTEGER NOT NULL, stream TEXT NOT NULL, "
    "version INTEGER NOT NULL, topic TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (view, position)) WITHOUT ROWID",
}
"""The tables of a log, as SQLite keeps the statements that made them."""

WORK_TABLES: Final = {
    "agent_calls": "CREATE TABLE agent_calls (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, "
    "attempt INTEGER NOT NULL, name TEXT NOT NULL, stream TEXT NOT NULL, version INTEGER NOT NULL, secret TEXT NOT NULL, "
    "context_hash TEXT NOT NULL, content BLOB NOT NULL, deadline INTEGER, offered INTEGER NOT NULL, worker TEXT, "
    "alive_until INTEGER, answer BLOB, answered INTEGER, is_late INTEGER NOT NULL DEFAULT 0, over INTEGER, "
    "UNIQUE (kind, id, attempt))",
    "agent_calls_taken": "CREATE INDEX agent_calls_taken ON agent_calls (worker) WHERE worker IS NOT NULL",
    "workers": "CREATE TABLE workers (name TEXT PRIMARY KEY, host TEXT NOT NULL, version TEXT NOT NULL, agents TEXT NOT NULL, "
    "channels TEXT NOT NULL, seats INTEGER NOT NULL, is_draining INTEGER NOT NULL, since INTEGER NOT NULL, "
    "alive_until INTEGER NOT NULL) WITHOUT ROWID",
}
"""The tables of the queue for workers, and an index, in a log that ever had one: no part of what is proven."""

MADE_ANEW: Final = {
    "log_topics": "INSERT INTO log_topics SELECT DISTINCT topic FROM stored_events",
    "inline_views": None,
    "set_aside": None,
}
"""The tables that hold no more than the events say, and the statement that fills each: a writer makes one anew that is missing."""


TOUCHED: Final = -1
"""The position of a view whose tables somebody else wrote into. A writer sets the true one last in each transaction."""


def _mark(table: str, change: str, when: str, then: str) -> tuple[str, str]:
    name = f"touched_{table}_{change.split(maxsplit=1)[0].lower()}"
    statement = (
        f"CREATE TRIGGER {name} AFTER {change} ON {table} WHEN {when} BEGIN "  # noqa: S608 - names of tables and views
        f"UPDATE inline_views SET position={TOUCHED} WHERE {then}; END"
    )
    return name, statement


_OF_ALL: Final = dict(
    [
        _mark("set_aside", change, "1", f"name IN ({rows}) AND position>=0")
        for change, rows in (("INSERT", "new.view"), ("UPDATE", "new.view, old.view"), ("DELETE", "old.view"))
    ]
    + [
        _mark(
            "inline_views", "UPDATE OF position", "new.position BETWEEN 0 AND old.position-1", "name=new.name"
        )
    ]
)


def marks_of(view: str, tables: Sequence[str]) -> dict[str, str]:
    """Return the triggers, by name, that note in `inline_views` when another program writes into a view's tables.

    They are in the file, so they run for every writer. SQLite makes none for an index of text.
    """
    view = view.replace("'", "''")
    when = f"(SELECT position FROM inline_views WHERE name='{view}')>=0"  # noqa: S608 - the same
    return _OF_ALL | dict(
        _mark(table, change, when, f"name='{view}'")
        for table in tables
        for change in ("INSERT", "UPDATE", "DELETE")
    )


_MARK: Final = re.compile(
    r"CREATE TRIGGER touched_\w+ AFTER (?:INSERT|UPDATE|DELETE) ON \"?(\w+)\"? "  # noqa: S608 - no statement that is run
    r"WHEN \(SELECT position FROM inline_views WHERE name='((?:[^']|'')*)'\)>=0 "
    rf"BEGIN UPDATE inline_views SET position={TOUCHED} WHERE name='\2'; END"
)


def view_marked_by(trigger: str) -> str | None:
    """Return the view whose changes a trigger notes; None for any other trigger."""
    found = _MARK.fullmatch(trigger)
    return None if found is None else found[2].replace("''", "'")


def _is_mark(table: str, sql: str) -> bool:
    """Whether a trigger only notes that a view was touched; SQLite renames tables inside of it with its own."""
    found = _MARK.fullmatch(sql)
    return sql in _OF_ALL.values() or (found is not None and found[1] == table and table not in LOG_TABLES)


def unreadable_tables(query: Query, names: Iterable[str]) -> Iterator[str]:
    """Name the tables that must not be read: a query, or a computed column, has replaced one.

    Such a thing need never end. SQLite is asked only what it has, and nothing that was put there is run.
    """
    wanted = {name.casefold() for name in names}
    asked = "SELECT type, CAST(name AS BLOB), CAST(sql AS BLOB), rootpage FROM sqlite_master WHERE type IN ('table', 'view')"
    for kind, *told, page in query(asked):
        name, sql = (bytes(each or b"").decode(errors="replace") for each in told)
        if name.casefold() in wanted and (kind != "table" or not page or _COMPUTED.search(sql)):
            yield name


_COMPUTED: Final = re.compile(r"\bAS\s*\(|\bGENERATED\b|^CREATE\s+VIRTUAL\b", re.IGNORECASE)


def missing_tables(query: Query) -> list[str]:
    """Return missing tables that a writer can make anew."""
    there = {
        bytes(name or b"").decode(errors="replace")
        for (name,) in query("SELECT CAST(name AS BLOB) FROM sqlite_master")
    }
    return [name for name in MADE_ANEW if name not in there]


def schema_problems(query: Query) -> Iterator[str]:
    """Name each table, index and trigger that is not as it was made. Tables of a host's own are left alone."""
    found: dict[str, str] = {}
    # As bytes: what somebody wrote there need be no text.
    asked = "SELECT type, CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master"
    for kind, *told in query(asked):
        name, table, sql = (bytes(each or b"").decode(errors="replace") for each in told)
        if kind == "trigger":
            if not _is_mark(table, sql):
                yield f"a trigger {name!r} on {table}: a log has none of that kind (DROP TRIGGER takes it away)"
        elif kind == "index" and table in LOG_TABLES and sql:
            yield f"an index {name!r} on {table}: a log has none there (DROP INDEX takes it away)"
        elif name in LOG_TABLES:
            found[name] = " ".join(sql.split())
        elif name in WORK_TABLES and " ".join(sql.split()) != WORK_TABLES[name]:
            yield f"the {kind} {name} is not as it was made: {sql} (DROP it: calls that workers make now are made again)"
    for name, made in LOG_TABLES.items():
        if name not in found:
            yield f"the table {name} is missing"
        elif found[name] != made:
            yield f"the table {name} is not as it was made: {found[name]}"


def place_problems(query: Query) -> Iterator[str]:
    """Say what a writer can't build on: positions below 1, a sequence behind the rows, an invalid identity."""
    lowest = query("SELECT MIN(rowid) FROM stored_events")[0][0]
    if lowest is not None and lowest < 1:
        yield f"a row at position {lowest}: positions begin at 1"
    # In this order: what a writer commits between the two raises only the number that may be the higher one.
    last = query("SELECT MAX(rowid) FROM stored_events")[0][0] or 0
    given = [seq for (seq,) in query("SELECT seq FROM sqlite_sequence WHERE name='stored_events'")]
    if len(given) > 1 or any(not isinstance(seq, int) for seq in given):
        yield f"sqlite_sequence holds {given!r} for stored_events instead of one number"
    elif last > (given[0] if given else 0):
        yield f"sqlite_sequence says that position {given[0] if given else 0} was the last one given, but a row has {last}"
    identities = query("SELECT log_id, format, epoch, created_ms FROM log_identity")
    if len(identities) != 1:
        yield f"log_identity has {len(identities)} rows instead of one"
    for log_id, *numbers in identities:
        if not isinstance(log_id, str) or not all(isinstance(n, int) and 0 <= n < LARGEST for n in numbers):
            yield f"log_identity holds {(log_id, *numbers)!r}: that is no id with format, epoch and time"
        elif numbers[0] < FORMAT:
            yield f"log_identity says format {numbers[0]}: no log has that, the first format is {FORMAT}"


def damage(query: Query) -> Iterator[str]:
    """Say what SQLite's own check of the file finds, such as an index that does not match its table: rows would be read wrong."""
    try:
        found = query("PRAGMA integrity_check(20)")
    except CorruptEvent as error:  # it can't even be looked through
        found = [(error,)]
    for (said,) in found:
        # A row at a position below 1 is told as such.
        if said != "ok" and not str(said).startswith("CHECK constraint failed"):
            yield f"SQLite finds the file damaged: {said}"


def topic_problems(query: Query, seen: set[str], proven: set[str], *, head: int) -> Iterator[str]:
    """Compare the table of topics with the topics of all rows, and of the rows that were proven, up to `head`.

    What a writer has appended since then may have brought topics with it.
    """
    # As bytes: what somebody wrote there need be no text.
    found = query("SELECT CAST(topic AS BLOB) FROM log_topics")
    listed = {bytes(topic or b"").decode(errors="replace") for (topic,) in found}
    if listed - seen:
        since = query(f"SELECT DISTINCT CAST(topic AS BLOB) FROM stored_events WHERE rowid > {int(head)}")  # noqa: S608 - a number
        seen = seen | {bytes(topic or b"").decode(errors="replace") for (topic,) in since}
    for topic in sorted(map(str, listed - seen)):
        yield f"log_topics names {topic!r}, which no row has: somebody added it"
    for topic in sorted(proven - listed):
        yield f"log_topics does not name {topic!r}, which rows have: somebody took it away"

"""The tables of a log in its schema, and the function that appends events; the first writer makes them, later ones check them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

from psycopg import sql

from intersession_events.log.sql import Question, Row, Together
from intersession_events.log.tables import FORMAT
from intersession_events.log.work_queue import MOST_BYTES, MOST_WORKERS
from intersession_events.stores.files.table import COLUMNS
from intersession_events.stores.hosts.table import HOSTS
from intersession_events.stores.postgres.cursor import OTHER_EPOCH, OTHER_PLACE, PgCursor
from intersession_events.stores.postgres.dialect import FUNCTIONS
from intersession_events.stores.postgres.queue.statements import (
    OWNERS,
    REFUSED,
    WORK,
    answers_channel,
    offers_channel,
)
from intersession_events.stores.postgres.views import MARK, MARKS, TABLES, asking, there

_TABLES: Final = (
    """CREATE TABLE {schema}.stored_events (
        originator_id text COLLATE "C" NOT NULL, originator_version bigint NOT NULL, topic text COLLATE "C" NOT NULL,
        state bytea NOT NULL, notification_id bigint PRIMARY KEY CHECK (notification_id > 0),
        UNIQUE (originator_id, originator_version))""",
    """CREATE TABLE {schema}.stored_snapshots (
        originator_id text COLLATE "C" NOT NULL, originator_version bigint NOT NULL, topic text COLLATE "C" NOT NULL,
        state bytea NOT NULL, PRIMARY KEY (originator_id, originator_version))""",
    """CREATE TABLE {schema}.log_identity (
        log_id text NOT NULL, format bigint NOT NULL, epoch bigint NOT NULL, created_ms bigint NOT NULL)""",
    # Who is to have the next position waits here: one order, without gaps. Once the writer has taken another turn, the server
    # refuses what it had asked for before that and nobody has taken up yet.
    "CREATE TABLE {schema}.log_head (position bigint NOT NULL, turn bigint NOT NULL)",
    # Who the writer is, and until when it may be taken to be alive. It is no fence: the epoch is.
    """CREATE TABLE {schema}.log_writer (
        epoch bigint NOT NULL, holder text NOT NULL, gateway text, alive_until timestamptz NOT NULL)""",
    'CREATE TABLE {schema}.log_topics (topic text COLLATE "C" PRIMARY KEY)',
    *TABLES,
    "INSERT INTO {schema}.log_head VALUES (0, 0)",
    "INSERT INTO {schema}.log_writer VALUES (0, '', NULL, '-infinity')",
)

FILLING: Final = "CREATE TABLE {schema}.log_filling (log_id text NOT NULL)"
"""Is there for as long as a log is moved here from another store: nobody else may read it, or write to it, before it is whole."""

_APPEND: Final = """CREATE OR REPLACE FUNCTION {schema}.append_events(
    of_epoch bigint, of_turn bigint, first bigint, streams text[], versions bigint[], topics text[], states bytea[], wakes boolean
) RETURNS bigint LANGUAGE plpgsql
AS $$
-- Planned once, as the writer's connections are set: planning anew takes four times as long as the work, and to set that for
-- each call a tenth of it. A plan of a table that was empty still uses the index.
DECLARE
    now_at bigint;
    last bigint;
    taken bigint;
BEGIN
    -- The fence: whoever takes the log over waits for this transaction, and this one for nobody but that.
    SELECT epoch INTO now_at FROM {schema}.log_identity FOR SHARE;
    IF now_at IS DISTINCT FROM of_epoch THEN
        RAISE EXCEPTION USING ERRCODE = {other_epoch}, MESSAGE = coalesce(now_at, 0)::text;
    END IF;
    UPDATE {schema}.log_head SET position = position + cardinality(states) RETURNING position, turn INTO last, taken;
    IF taken IS DISTINCT FROM of_turn THEN -- nor is it the next one where there is no row
        RAISE EXCEPTION USING ERRCODE = {other_place}, MESSAGE = format('turn %s is not the next one', of_turn);
    END IF;
    IF last - cardinality(states) + 1 <> first THEN
        RAISE EXCEPTION USING ERRCODE = {other_place}, MESSAGE = format('position %s is not the next one', first);
    END IF;
    -- A version that is there already is refused by its index.
    INSERT INTO {schema}.stored_events (originator_id, originator_version, topic, state, notification_id)
        SELECT stream, version, topic, state, first + number - 1
        FROM unnest(streams, versions, topics, states) WITH ORDINALITY AS one (stream, version, topic, state, number);
    -- Each follows one that is there, among these or before: looked for in the same index, which is at hand now.
    SELECT min(version) INTO now_at FROM unnest(streams, versions) AS one (stream, version)
    WHERE version > 1 AND (SELECT true FROM {schema}.stored_events
        WHERE originator_id = stream AND originator_version = version - 1) IS NULL;
    IF now_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = {other_place}, MESSAGE = format('version %s is not the next one', now_at);
    END IF;
    IF wakes THEN
        PERFORM pg_notify({channel}, last::text);
    END IF;
    RETURN last;
END $$"""


def create(cursor: PgCursor, schema: str, *, log_id: str, now_ms: int) -> None:
    """Make the tables of a log in its schema, inside a transaction."""
    # The owner of a schema may lack the right to make one.
    cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (schema,))
    if cursor.fetchone() is None:
        cursor.run(sql.SQL("CREATE SCHEMA {schema}").format(schema=sql.Identifier(schema)))
    with cursor.without_answers():
        for statement in (*_TABLES, f"CREATE TABLE {{schema}}.files {COLUMNS}"):
            cursor.run(sql.SQL(statement).format(schema=sql.Identifier(schema)))
        cursor.run(
            sql.SQL("INSERT INTO {schema}.log_identity VALUES ({log_id}, {format}, 0, {now_ms})").format(
                schema=sql.Identifier(schema), log_id=log_id, format=FORMAT, now_ms=now_ms
            )
        )
        make_functions(cursor, schema)
        for statement in _UNSAMPLED:
            cursor.run(sql.SQL(statement).format(schema=sql.Identifier(schema)))


# What the server samples of a column for its plans stays in its catalog when it is erased.
_UNSAMPLED: Final = (
    "ALTER TABLE {schema}.stored_events ALTER COLUMN state SET STATISTICS 0",
    "ALTER TABLE {schema}.stored_snapshots ALTER COLUMN state SET STATISTICS 0",
    "ALTER TABLE {schema}.files ALTER COLUMN content SET STATISTICS 0",
    "ALTER TABLE {schema}.agent_calls ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN answer SET STATISTICS 0",
)

# A log that an earlier version made has no table of hosts yet, and no queue.
_MADE_ANEW: Final = (HOSTS, *FUNCTIONS, *MARKS, *WORK, _APPEND)

FUNCTIONS_OF: Final[Question] = ("SELECT obj_description(to_regproc('append_events')::oid, 'pg_proc')", ())
"""Asks of which statements the functions were made that are there: a digest, or nothing."""


def digest_of_functions() -> str:
    """Return the digest of the statements of which this version makes the functions."""
    return sha256("".join(_MADE_ANEW).encode()).hexdigest()


_OWNER: Final = (
    "SELECT pg_get_userbyid(proowner)::text FROM pg_proc WHERE oid = to_regproc('append_events')::oid "
    "AND obj_description(oid, 'pg_proc') IS DISTINCT FROM ? AND NOT pg_has_role(proowner, 'USAGE')"
)
OWNER_OF: Final[Question] = (_OWNER, (digest_of_functions(),))
"""Asks who has made functions that are not of this version, where this role can't make them anew."""


def make_functions(cursor: PgCursor, schema: str, made_of: str | None = None) -> None:
    """Make the functions as this version has them, inside a transaction, unless they are current: only their owner can."""
    digest = digest_of_functions()
    if made_of == digest:
        return
    parts = {
        "schema": sql.Identifier(schema),
        "channel": sql.Literal(channel_of(schema)),
        "other_epoch": sql.Literal(OTHER_EPOCH),
        "other_place": sql.Literal(OTHER_PLACE),
        "owners": sql.SQL(OWNERS),
        "refused": sql.Literal(REFUSED),
        "calls": sql.Literal(f'"{schema}".agent_calls'),
        "most_bytes": sql.Literal(MOST_BYTES),
        "most_workers": sql.Literal(MOST_WORKERS),
        "offers": sql.Literal(offers_channel(schema)),
        "answers": sql.Literal(answers_channel(schema)),
    }
    for statement in (*_MADE_ANEW, "COMMENT ON FUNCTION {schema}.append_events IS {digest}"):
        text = sql.SQL(statement)  # pyright: ignore[reportArgumentType] - our own words, made of each other
        cursor.run(text.format(digest=digest, **parts))


def channel_of(schema: str) -> str:
    """Return the channel that announces commits: channels belong to the database, and schemas share it."""
    return f"{schema}.stored_events"


_MADE: Final = re.compile(r"CREATE TABLE \{schema\}\.(\w+) \((.*)\)", re.DOTALL)
_COLUMN: Final = re.compile(r"(\w+) (text|bigint|bytea)\b")
_OF_LOG: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    made[1]: _COLUMN.findall(made[2])
    for made in map(_MADE.fullmatch, _TABLES)
    if made is not None and made[1] != "log_writer"
}
"""The columns of the tables that are checked, with their types; no column takes a NULL."""
_UNIQUE: Final = ("stored_events_pkey", "stored_events_originator_id_originator_version_key")
_DIVERTED: Final = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
    "AND (relhasrules OR relrowsecurity) AND relname IN ({})"
)


def asking_of_log() -> list[Question]:
    """Return the questions to the server about a log's own tables, whether these exist or not."""
    names = list(_OF_LOG)
    return [*asking(names), (_DIVERTED.format(", ".join("?" * len(names))), names)]


PLACES: Final[Sequence[Question]] = (
    ("SELECT MIN(rowid), MAX(rowid) FROM stored_events", ()),
    ("SELECT position FROM log_head", ()),
    ("SELECT COUNT(*) FROM log_identity", ()),
)
"""What is asked of the tables themselves, once it is known that they are there."""


def problems_of_log(together: Together) -> Iterator[str]:
    """Name what is wrong with a log's own tables, and with their content beside the events."""
    answers = together(asking_of_log())
    yield from table_problems(answers)
    if are_all_there(answers):
        yield from place_problems(together(PLACES))


def are_all_there(answers: Sequence[list[Row]]) -> bool:
    """Return whether all of a log's own tables are there."""
    return {*_OF_LOG} <= {table for table, *_ in answers[0]}


def table_problems(answers: Sequence[list[Row]]) -> Iterator[str]:
    """Name what is wrong with a log's own tables, from the answers to `asking_of_log`."""
    found, diverted = there(answers[:-1]), answers[-1]
    for table, wanted in _OF_LOG.items():
        if table not in found.columns:
            yield f"the table {table} is missing"
            continue
        made = [
            (name, kind if not_null else f"{kind} or nothing")
            for name, kind, not_null in found.columns[table]
        ]
        if made != [*wanted]:
            columns = ", ".join(f"{name} {kind}" for name, kind in made)
            yield f"the table {table} is not as it was made: {columns}"
    valid = {name for _, name, _, is_valid in found.indexes if is_valid}
    yield from (f"the table stored_events is without its key {name}" for name in _UNIQUE if name not in valid)
    for (table,) in diverted:
        yield f"the table {table} has rules or row security: a log has none"
    for table, name, _, _ in found.triggers:
        if name != MARK or table not in {"inline_views", "set_aside"}:
            yield f"a trigger {name!r} on {table}: a log has none of that kind (DROP TRIGGER takes it away)"


def place_problems(answers: Sequence[list[Row]]) -> Iterator[str]:
    """Name what is wrong with positions and identity, from the answers to `PLACES`."""
    ((lowest, last),), heads, ((identities,),) = answers
    given = [position for (position,) in heads]
    if lowest is not None and lowest < 1:
        yield f"a row at position {lowest}: positions begin at 1"
    if len(given) != 1:
        yield f"log_head has {len(given)} rows instead of one"
    elif (last or 0) > given[0]:
        yield f"log_head says that position {given[0]} was the last one given, but a row has {last}"
    if identities != 1:
        yield f"log_identity has {identities} rows instead of one"

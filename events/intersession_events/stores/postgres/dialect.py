"""Turns portable SQL into PostgreSQL's: the one place that knows how the two differ.

Portable SQL is what SQLite and PostgreSQL both take, and beyond that, of SQLite's:

- `?` for a parameter, or `?1`, `?2` where one stands several times; `rowid` for an event's position;
- the types INTEGER, TEXT and BLOB, and WITHOUT ROWID, where tables are made; `CAST(… AS BLOB)` of a text;
- `json_each(?) AS x`, whose `x.value` are whole numbers; `CROSS JOIN … ON`, `IN ()`, and a `+` before a column that no index is
  to be looked up by;
- an index of text, made by `CREATE VIRTUAL TABLE … USING fts5 (grams, …)`, asked by `… MATCH ?`, and told `'delete'` and
  `'optimize'`: here a table with a `tsvector`;
- `sqlite_master` for the names of what was made, and the functions below.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

_PART: Final = re.compile(
    r"\bX'(?P<bytes>[0-9A-F]*)'|(?P<text>'(?:[^']|'')*')|\?(?P<number>[0-9]+)?|%|\b(?:rowid|substr|sqlite_master)\b",
    re.IGNORECASE,
)

_OURS: Final = {
    "?": "%s",
    "%": "%%",
    "rowid": "notification_id",
    "substr": "part_of",
    "sqlite_master": "(SELECT relname::text AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace) AS made",
}

_TEXT_INDEX: Final = re.compile(r"CREATE VIRTUAL TABLE IF NOT EXISTS (\w+) USING fts5 .*", re.DOTALL)
_INTO_TEXT_INDEX: Final = re.compile(r"\bINSERT INTO \w+ \(rowid, grams\) VALUES \(\?, \?\)")
# Words that an index has not sorted yet are read by each search: 64 kB of them at most, the least that there is, and not 4 MB.
_MADE: Final = (
    r"DO $do$ BEGIN CREATE TABLE IF NOT EXISTS \1 (notification_id bigint PRIMARY KEY, grams tsvector NOT NULL); "
    # A sample of them for plans would stay in the server's catalog when they are erased.
    r"ALTER TABLE \1 ALTER COLUMN grams SET STATISTICS 0; "
    r"CREATE INDEX IF NOT EXISTS \1_grams ON \1 USING gin (grams) WITH (gin_pending_list_limit = 64); END $do$"
)

Rules = Sequence[tuple[re.Pattern[str], str]]

_ALL: Final[Rules] = (
    (
        re.compile(r"\bjson_each\((\?\d*)\) AS (\w+)"),
        r"(SELECT one.value::int AS value FROM jsonb_array_elements_text((\1)::jsonb) AS one (value)) AS \2",
    ),
    (re.compile(r"\bCROSS JOIN (\w+(?: \w+)?) ON\b"), r"JOIN \1 ON"),
    (re.compile(r"(?<=[ (])\+(?=[a-z_]+\b)"), ""),
    (re.compile(r"\bIN \(\)"), "IN (NULL)"),
    (re.compile(r"\b\w+ MATCH \?"), "grams @@ words_of(?)"),
    (
        re.compile(r"\bINSERT INTO (\w+) \(\1, rowid, grams\) VALUES \('delete', \?, \?\)"),
        r"DELETE FROM \1 WHERE rowid = ?1",
    ),
    (re.compile(r"\bINSERT INTO (\w+) \(\1\) VALUES \('optimize'\)"), "SELECT"),
    (re.compile(r"\bCAST\((\w+) AS BLOB\)"), r"convert_to(\1, 'UTF8')"),
)
_OF_TABLES: Final[Rules] = (
    (re.compile(r"\bINTEGER\b"), "bigint"),
    (re.compile(r"\bBLOB\b"), "bytea"),
    (re.compile(r"\bTEXT\b"), 'text COLLATE "C"'),
    (re.compile(r" WITHOUT ROWID\b"), ""),
)

TYPES: Final[Mapping[str, str]] = {"INTEGER": "bigint", "BIGINT": "bigint", "TEXT": "text", "BLOB": "bytea"}
"""What a type of a portable table is called here."""

FUNCTIONS: Final = (
    # As SQLite has it: a place below zero counts from the end.
    """CREATE OR REPLACE FUNCTION {schema}.part_of(whole bytea, start bigint, size bigint) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT substring(whole FROM (CASE WHEN start < 0 THEN greatest(length(whole) + start + 1, 1) ELSE start END)::int
            FOR size::int)
    $$""",
    """CREATE OR REPLACE FUNCTION {schema}.instr(whole bytea, part bytea) RETURNS int
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT position(part IN whole) $$""",
    """CREATE OR REPLACE FUNCTION {schema}.iif(is_so boolean, one bytea, other bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN is_so THEN one ELSE other END $$""",
    # There is always an index of text.
    """CREATE OR REPLACE FUNCTION {schema}.sqlite_compileoption_used(name text) RETURNS int
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE name WHEN 'ENABLE_FTS5' THEN 1 ELSE 0 END $$""",
    # What FTS5 is asked, of words of letters and digits.
    """CREATE OR REPLACE FUNCTION {schema}.words_of(asked text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT replace(replace(replace(replace(asked, '"*', ':*'), '"', ''), ' AND ', ' & '), ' OR ', ' | ')::tsquery
    $$""",
)
"""What statements call that SQLite has and PostgreSQL has not, made with the tables."""


class Translated(NamedTuple):
    """A statement as psycopg takes it: as bytes, since its typing wants literal strings."""

    statement: bytes
    places: tuple[int, ...]
    """Which parameter each of its marks takes; nothing where they come in their order."""

    def arranged(self, parameters: Sequence[Any]) -> Sequence[Any]:  # what a column takes
        """Return the parameters as the statement takes them."""
        return [parameters[place] for place in self.places] if self.places else parameters


@lru_cache(maxsize=1024)
def translated(statement: str) -> Translated:
    """Return a portable statement as PostgreSQL has it."""
    if _TEXT_INDEX.match(statement):
        return Translated(_TEXT_INDEX.sub(_MADE, statement).encode(), ())
    rules = (*_ALL, *(_OF_TABLES if statement.startswith("CREATE TABLE") else ()))
    if _INTO_TEXT_INDEX.search(statement):
        # A parameter is of the type that it is given with, and that is text.
        statement = statement.replace("(?, ?)", "(?, ?::tsvector)")
    for pattern, ours in rules:
        statement = pattern.sub(ours, statement)
    places: list[int] = []
    return Translated(_PART.sub(_part(places), statement).encode(), tuple(places))


def _part(places: list[int]) -> Callable[[re.Match[str]], str]:
    def part(found: re.Match[str]) -> str:
        if found["bytes"] is not None:
            return f"'\\x{found['bytes']}'::bytea"
        if found["text"] is not None:
            return found["text"].replace("%", "%%")
        if found["number"] is not None:
            places.append(int(found["number"]) - 1)
            return "%s"
        return _OURS[found[0].lower()]

    return part

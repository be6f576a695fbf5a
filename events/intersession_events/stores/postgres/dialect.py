"""Turns portable SQL into PostgreSQL's: the one place that knows how the two differ.

Portable SQL has `?` for a parameter, `rowid` for an event's position, and SQLite's functions on texts and bytes that stand below.
"""

import re
from functools import lru_cache
from typing import Final

_PART: Final = re.compile(
    r"\bX'(?P<bytes>[0-9A-F]*)'|'(?:[^']|'')*'|\?|%|\b(?:rowid|substr)\b", re.IGNORECASE
)

_OURS: Final = {"?": "%s", "%": "%%", "rowid": "notification_id", "substr": "part_of"}

FUNCTIONS: Final = (
    # As SQLite has it: a place below zero counts from the end.
    """CREATE OR REPLACE FUNCTION {schema}.part_of(whole bytea, start bigint, size bigint) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT substring(whole FROM (CASE WHEN start < 0 THEN greatest(length(whole) + start + 1, 1) ELSE start END)::int
            FOR size::int)
    $$""",
    """CREATE OR REPLACE FUNCTION {schema}.instr(whole bytea, part bytea) RETURNS int
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT position(part IN whole) $$""",
)
"""What statements call that SQLite has and PostgreSQL has not, made with the tables."""


@lru_cache(maxsize=1024)
def translated(statement: str) -> bytes:
    """Return a portable statement as psycopg takes it: as bytes, since it wants only literal texts."""
    return _PART.sub(_part, statement).encode()


def _part(found: re.Match[str]) -> str:
    part = found[0]
    if found["bytes"] is not None:
        return f"'\\x{found['bytes']}'::bytea"
    return part.replace("%", "%%") if part.startswith("'") else _OURS.get(part.lower(), part)

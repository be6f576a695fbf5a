"""Stored rows of the session list, now or as of a position, by the numbers of the sessions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from intersession_events.log.log import Moment
from intersession_events.log.sql import Question, Row, marks
from intersession_projections.views.sessions.row import STORED, SessionRow
from intersession_projections.views.sessions.versions import row_in

_STORED: Final = "SELECT no, session_key, position, state, recent FROM session_list WHERE"
_BLOCK: Final = (
    "SELECT versions FROM session_versions WHERE no = ? AND position <= ? ORDER BY position DESC LIMIT 1"
)
_AT_ONCE: Final = 400
"""At most this many values go into one statement: SQLite's own bound may be as low as 999."""


def number_of(moment: Moment, key: str) -> int | None:
    """Return the number of a session; None for an unknown key."""
    found = moment.query("SELECT no FROM session_list WHERE session_key = ?", (key,))
    return found[0][0] if found else None


def rows_at(moment: Moment, position: int, numbers: Iterable[int]) -> dict[int, SessionRow]:
    """Return rows by the numbers of their sessions, as of a position; missing ones are left out."""
    found: dict[int, SessionRow] = {}
    left = iter(numbers)
    while chunk := tuple(islice(left, _AT_ONCE)):
        found |= rows_stood(moment, position, moment.query(*rows_of(chunk)))
    return found


def rows_of(numbers: Sequence[int]) -> Question:
    """Ask for the stored rows of a few sessions; `rows_stood` reads the answer."""
    return f"{_STORED} no IN ({marks(numbers)})", numbers


def rows_stood(moment: Moment, position: int, stored: Iterable[Row]) -> dict[int, SessionRow]:
    """Return the rows in such an answer, as of a position; missing ones are left out."""
    found: dict[int, SessionRow | None] = {}
    older: list[tuple[int, str]] = []
    for no, key, since, state, recent in stored:
        if state is None:
            continue
        found[no] = _stood(key, since, state, recent, position)
        if found[no] is None:
            older.append((no, key))
    if older:
        blocks = moment.each(*((_BLOCK, (no, position)) for no, _ in older))
        found |= {no: _in_block(rows, key, position) for (no, key), rows in zip(older, blocks, strict=True)}
    return {no: row for no, row in found.items() if row is not None}


def row_of(key: str) -> Question:
    """Ask for the stored row of a key; `row_at` reads the answer."""
    return f"{_STORED} session_key = ?", (key,)


def row_at(moment: Moment, position: int, stored: Sequence[Row]) -> SessionRow | None:
    """Return a row as of a position; None if there was none, or there is none."""
    for no, key, since, state, recent in stored:
        if state is not None:
            row = _stood(key, since, state, recent, position)
            return row or _in_block(moment.query(_BLOCK, (no, position)), key, position)
    return None


def row_now(stored: Row) -> SessionRow | None:
    """Return a row as it is now; None if there is none."""
    _, key, since, state, _ = stored
    return None if state is None else STORED.restored(state, key=key, position=since)


def places_of(moment: Moment, position: int, numbers: Iterable[int]) -> Iterator[tuple[int, str, int]]:
    """Yield the negated time, key and number of the sessions that existed at a position and were not archived."""
    left = iter(numbers)
    while chunk := tuple(islice(left, _AT_ONCE)):
        changed: list[int] = []
        for no, key, since, falling in moment.query(
            f"SELECT no, session_key, position, falling FROM session_list WHERE no IN ({marks(chunk)})",  # noqa: S608 - only question marks
            chunk,
        ):
            if since is not None and since > position:
                changed.append(no)
            elif falling is not None:
                yield falling, key, no
        for no, row in rows_at(moment, position, changed).items():
            if row.archived is None:
                yield -row.updated_at, row.key, no


def other_names(numbers: Sequence[int]) -> Question:
    """Ask for all past and present names of sessions beside their keys, with the numbers of the sessions."""
    return (
        f"SELECT no, names FROM session_list WHERE no IN ({marks(numbers)}) AND names IS NOT NULL",  # noqa: S608 - only question marks
        numbers,
    )


def _stood(key: str, since: int, state: bytes, recent: bytes, position: int) -> SessionRow | None:
    """Return a row at a position, if that is one of the last versions."""
    if since <= position:
        return STORED.restored(state, key=key, position=since)
    return row_in(recent, key, position)


def _in_block(rows: Sequence[Row], key: str, position: int) -> SessionRow | None:
    return row_in(rows[0][0], key, position) if rows else None

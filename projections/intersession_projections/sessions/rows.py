"""Rows of the session list as they are stored, now or as of a position, for whoever has the numbers of the sessions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from intersession_events.log import Moment, Question, Row, marks
from intersession_projections.sessions.row import STORED, SessionRow
from intersession_projections.sessions.view import WHOLE_EVERY

_STORED: Final = "SELECT no, session_key, position, state FROM session_list WHERE"
_VERSIONS: Final = (
    "SELECT position, is_whole, state FROM session_versions WHERE no = ? AND position <= ? "
    "ORDER BY position DESC LIMIT ?"
)
_AT_ONCE: Final = 400
"""At most this many values go into one statement: SQLite's own bound may be as low as 999."""


def number_of(moment: Moment, key: str) -> int | None:
    """Return the number of a session; None for a key that the log does not know."""
    found = moment.query("SELECT no FROM session_list WHERE session_key = ?", (key,))
    return found[0][0] if found else None


def rows_at(moment: Moment, position: int, numbers: Iterable[int]) -> dict[int, SessionRow]:
    """Return rows by the numbers of their sessions, as they stood at a position; of those that there were."""
    found: dict[int, SessionRow] = {}
    left = iter(numbers)
    while chunk := tuple(islice(left, _AT_ONCE)):
        found |= rows_stood(moment, position, moment.query(*rows_of(chunk)))
    return found


def rows_of(numbers: Sequence[int]) -> Question:
    """Ask for the rows of some sessions, not very many, as they are stored; `rows_stood` reads them."""
    return f"{_STORED} no IN ({marks(numbers)})", numbers


def rows_stood(moment: Moment, position: int, stored: Iterable[Row]) -> dict[int, SessionRow]:
    """Return rows that were asked for as they stood at a position; of those that there were."""
    found: dict[int, SessionRow] = {}
    changed: list[tuple[int, str]] = []
    for no, key, since, state in stored:
        if state is not None and since <= position:
            found[no] = STORED.restored(state, key=key, position=since)
        elif state is not None:
            changed.append((no, key))
    if changed:
        versions = moment.each(*(_versions_of(no, position) for no, _ in changed))
        rows = (_at(rows, key) for (_, key), rows in zip(changed, versions, strict=True))
        found |= {no: row for (no, _), row in zip(changed, rows, strict=True) if row is not None}
    return found


def row_of(key: str) -> Question:
    """Ask for the row of a key as it is stored; `row_at` reads it."""
    return f"{_STORED} session_key = ?", (key,)


def row_at(moment: Moment, position: int, stored: Sequence[Row]) -> SessionRow | None:
    """Return a row as it stood at a position; None if there was none, or there is none."""
    for no, key, changed, state in stored:
        if state is not None:
            if changed <= position:
                return STORED.restored(state, key=key, position=changed)
            return _at(moment.query(*_versions_of(no, position)), key)
    return None


def places_of(moment: Moment, position: int, numbers: Iterable[int]) -> Iterator[tuple[int, str, int]]:
    """Yield the time below zero, key and number of sessions that were there at a position and not archived."""
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
    """Ask for all names that sessions have or had beside their keys, with the numbers of the sessions that have any."""
    return (
        f"SELECT no, names FROM session_list WHERE no IN ({marks(numbers)}) AND names IS NOT NULL",  # noqa: S608 - only question marks
        numbers,
    )


def _versions_of(no: int, position: int) -> Question:
    """Ask for the versions of a row up to a position, as far back as the last whole one."""
    return _VERSIONS, (no, position, WHOLE_EVERY)


def _at(versions: Sequence[Row], key: str) -> SessionRow | None:
    """Return the row that some versions make, the last one first; None where there is none."""
    parts: list[bytes] = []
    for _, is_whole, state in versions:
        parts.append(state)
        if is_whole:
            return STORED.restored(*reversed(parts), key=key, position=versions[0][0])
    return None

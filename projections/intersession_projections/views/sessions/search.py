"""The index for `search`: every part of every name that a session has or had, with FTS5 or without.

What is searched together is a group: the sessions of one agent, or all that one session spawned. Each entry of the index says
its group, so that nobody's search meets what is in another's group: neither its answer nor the time that it takes
tells of sessions that are not to be seen. Names grow in it and never leave: what it finds is looked at again as of the position asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from intersession_events.log.log import Moment
from intersession_events.log.sql import Question, Row, Sql
from intersession_projections.views.sessions.sets import ALL, ListSet, agent_of

TABLE: Final = "session_search"
GRAM: Final = 3
"""Characters that an entry holds; a shorter text is found as the beginning of one."""
_DOCUMENT: Final = 1 << 32
"""A session's second document, for names that it got later, has its number and this once."""

_AT_ONCE: Final = 8
"""Groups that are asked for in one statement."""

Known = dict[str, tuple[str, ...]]
_DECODER: Final = msgspec.msgpack.Decoder(tuple[int, dict[str, tuple[str | None, ...]]])


def create(sql: Sql) -> None:
    """Create the index, if this SQLite has FTS5: without it, a search reads one row after the other."""
    if has_index(sql):
        sql.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {TABLE} USING fts5 "
            "(grams, content='', columnsize=0, detail=none, tokenize='ascii')"
        )


def has_index(sql: Sql) -> bool:
    """Whether this SQLite was built with FTS5."""
    return bool(sql.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


def groups_of(held: Iterable[ListSet]) -> set[str]:
    """Return the groups in which a session of some sets is searched."""
    return {
        of_agent(agent_of(one.part)) if one.scope == ALL else of_scope(one.scope)
        for one in held
        if one.scope >= ALL
    }


def of_agent(agent: int) -> str:
    """Return the group of the sessions of an agent."""
    return f"a{agent}"


def of_scope(no: int) -> str:
    """Return the group of the sessions that a session spawned."""
    return f"s{no}"


def keep(sql: Sql, no: int, documents: int, before: Known, now: Known) -> None:
    """Add the new names of a session; `documents` counts those it has."""
    entries: list[str] = []
    for group, names in now.items():
        new = {gram for name in names if name not in before.get(group, ()) for gram in grams(name)}
        entries += [f"{group}g{gram}" for gram in sorted(new)]
    sql.execute(
        f"INSERT INTO {TABLE} (rowid, grams) VALUES (?, ?)",  # noqa: S608 - our own words
        (no + documents * _DOCUMENT, " ".join(entries)),
    )


def grams(name: str) -> Iterator[str]:
    """Yield the index terms of a name: each three characters in a row, and the last two and one."""
    folded = name.casefold()
    if folded.isascii():
        digits = _entry(folded)
        return (digits[at : at + 2 * GRAM] for at in range(0, len(digits), 2))
    return (_entry(folded[at : at + GRAM]) for at in range(len(folded)))


def words(groups: Iterable[str], text: str) -> str:
    """Return the terms that find the documents which may contain a casefolded text."""
    if len(text) < GRAM:
        parts = [f"{_entry(text)}*"]
    else:
        parts = list(dict.fromkeys(_entry(text[at : at + GRAM]) for at in range(len(text) - GRAM + 1)))
    return " OR ".join(
        "(" + " AND ".join(_word(f"{group}g{part}") for part in parts) + ")" for group in groups
    )


def stored(documents: int, known: Known) -> bytes | None:
    """Return the stored form of a session's names, without its own key."""
    key = next(iter(known.values()))[0] if known else None
    return (
        msgspec.msgpack.encode(
            (documents, {group: [None if name == key else name for name in known[group]] for group in known})
        )
        if known
        else None
    )


def restored(value: bytes | None, key: str) -> tuple[int, Known]:
    """Return the names from their stored form, with the session's key."""
    if value is None:
        return 0, {}
    documents, known = _DECODER.decode(value)
    return documents, {
        group: tuple(key if name is None else name for name in names) for group, names in known.items()
    }


_THERE: Final = "SELECT sqlite_compileoption_used('ENABLE_FTS5') FROM sqlite_master WHERE name = ?"
_MATCHING: Final = f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH ? LIMIT ?"  # noqa: S608 - our own words


def candidates(moment: Moment, groups: Sequence[str], text: str, most: int) -> set[int] | None:
    """Return the sessions of some groups one of whose names may contain a casefolded text.

    None if they are more than `most`, or if the log has no index that can be read here.
    """
    asked = matching(groups, text, most)
    return matched(_matching(moment, asked), most) if asked else set()


def matching(groups: Sequence[str], text: str, most: int) -> list[Question]:
    """Ask the index for the same; `matched` reads the answer."""
    return [
        (_MATCHING, (words(groups[at : at + _AT_ONCE], text), most)) for at in range(0, len(groups), _AT_ONCE)
    ]


def matched(answers: Iterable[list[Row] | None], most: int) -> set[int] | None:
    """Return the sessions in the index's answer; None if they are more than `most`, or if the index was not asked."""
    found: set[int] = set()
    for rows in answers:
        if rows is None:
            return None
        found.update(document % _DOCUMENT for (document,) in rows)
        if len(found) >= most:
            return None
    return found


def _matching(moment: Moment, asked: Sequence[Question]) -> Iterator[list[Row] | None]:
    """Yield what questions to the index find; None if there is no index that can be read here."""
    if moment.is_remote:  # a server has the index whenever it has the view
        yield from moment.each(*asked)
        return
    is_there = moment.query(_THERE, (TABLE,)) == [(1,)]
    yield from (moment.query(*question) if is_there else None for question in asked)


def other_names(key: str, known: Known) -> bytes | None:
    """Return for a column all past and present names of a session beside its key, casefolded; None if there is none."""
    names = dict.fromkeys(name.casefold() for every in known.values() for name in every if name != key)
    return "\n".join(names).encode() if names else None


def matches(names: Iterable[str | None], text: str) -> bool:
    """Whether one of some names contains a casefolded text, in any case."""
    return any(text in name.casefold() for name in names if name is not None)


def _entry(gram: str) -> str:
    return gram.encode().hex()


def _word(entry: str) -> str:
    return f'"{entry[:-1]}"*' if entry.endswith("*") else f'"{entry}"'

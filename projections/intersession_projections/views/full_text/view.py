"""The tables of full text: the words at each position, under the groups of the readers that may find them.

A group is the sessions of one agent, or one session. Each entry of the index says its group, so that nobody's search meets what
is in another's: neither its answer nor the time that it takes tells what is not to be seen. Words that are a secret to
strangers are in groups of their own, which a stranger's search never names.
"""

import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Final

from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ERASED, Erased, may_say, message_in, unsaid
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql, SqlValue
from intersession_projections.views.full_text.searched_texts import (
    message_of,
    texts_of_event,
    texts_of_message,
)
from intersession_projections.views.full_text.tokens import terms

Redact = Callable[[JsonObject], tuple[JsonObject, bool]]
"""Returns a message in its raw form as strangers read it, and whether anything was hidden."""

NOBODY: Final = ""
"""The agent, and the session, of what stands in no session's own stream."""


def shown_of(agents: Collection[int], sessions: Collection[int]) -> list[str]:
    """Return the groups for messages in their redacted form, of some agents and some sessions by their numbers."""
    return _groups(("a", agents), ("s", sessions))


def private_of(agents: Collection[int], sessions: Collection[int]) -> list[str]:
    """Return the groups for whole messages, which other readers see redacted."""
    return _groups(("q", agents), ("p", sessions))


def events_of(agents: Collection[int], sessions: Collection[int]) -> list[str]:
    """Return the groups for all events but messages, which only the operator sees."""
    return _groups(("f", agents), ("e", sessions))


def _groups(*parts: tuple[str, Collection[int]]) -> list[str]:
    return [f"{letter}{number}" for letter, numbers in parts for number in numbers]


_AT_ONCE: Final = 32
"""The most rows in one insert statement."""
_MOST: Final = 1_000_000
"""The most bytes of index entries of an event, some 35,000 different words: a `tsvector` holds no more."""
_GONE: Final = terms((ERASED,))
_SHOWN: Final = "as"
_PRIVATE: Final = "qp"
_EVENTS: Final = "fe"


def agent_of(session_key: str) -> str:
    """Return the group of a session's agent: `agent:NAME`, or the key of a session without an agent."""
    kind, _, rest = session_key.partition(":")
    return f"agent:{rest.partition(':')[0]}" if kind == "agent" else session_key


@cache
def has_fts5() -> bool:
    """Whether this SQLite was built with FTS5."""
    sql = sqlite3.connect(":memory:")
    try:
        return bool(sql.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])
    finally:
        sql.close()


class FullTextView:
    """Stores the words of every event that has any. `redact` gives the form that other readers see; without FTS5, a search scans all.

    Of an event whose thinking is erased the other words are read again, in the `log`: without one they are forgotten, too.
    """

    name = "search"

    def __init__(self, redact: Redact, log: Log | None = None, *, indexed: bool | None = None) -> None:
        self._redact = redact
        self._log = log
        self.indexed = has_fts5() if indexed is None else indexed
        self.shape = 5 if self.indexed else 2  # a new one, too, if secrets are told otherwise than before

    def create(self, sql: Sql) -> None:
        """Create the tables if they are not there."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS said_at (position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, "
            "version INTEGER NOT NULL, topic INTEGER NOT NULL, agent INTEGER NOT NULL, session INTEGER NOT NULL, "
            "words BLOB NOT NULL, private BLOB)"
        )
        sql.execute("CREATE UNIQUE INDEX IF NOT EXISTS said_in ON said_at (stream, version)")
        sql.execute(
            "CREATE TABLE IF NOT EXISTS said_names (no INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, "
            "UNIQUE (kind, name))"
        )
        if self.indexed:
            sql.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS said_words USING fts5 "
                "(grams, content='', columnsize=0, detail=none, tokenize='ascii')"
            )
        else:
            sql.execute("CREATE INDEX IF NOT EXISTS said_by_agent ON said_at (agent, position)")
            sql.execute("CREATE INDEX IF NOT EXISTS said_by_session ON said_at (session, position)")

    def drop(self, sql: Sql) -> None:
        """Drop the tables if they are there."""
        for table in ("said_at", "said_names", "said_words"):
            sql.execute(f"DROP TABLE IF EXISTS {table}")

    def unpacked(self, table: str, column: str, value: bytes) -> object:
        """Return the words of a row: builds of zlib differ in how they pack them."""
        if table == "said_at" and column in {"words", "private"}:
            return restored(value)
        return value

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take in the words of events, and remove those of erased ones."""
        names, said, entries = _Names(sql), _Rows(sql, "said_at"), _Rows(sql, "said_words (rowid, grams)")
        erased = False
        for recorded in events:
            event = recorded.event
            if isinstance(event, Erased):
                said.put()
                entries.put()
                for version, _ in event.rows:
                    erased = self._forget(sql, event.stream, version) or erased
                    if event.thinking and self._log is not None:  # the rest of its words stays
                        for left in self._log.stream(event.stream, after=version - 1, to=version):
                            self._keep(names, said, entries, left)
            else:
                self._keep(names, said, entries, recorded)
        said.put()
        entries.put()
        if erased and self.indexed:
            # Until they are merged, the parts of an index keep the words of what was taken out of it.
            sql.execute("INSERT INTO said_words (said_words) VALUES ('optimize')")

    def _keep(self, names: "_Names", rows: "_Rows", entries: "_Rows", recorded: Recorded) -> None:
        if not may_say(recorded.event):
            return
        shown, private, is_message = self._words(recorded)
        # Names get their numbers whatever there still is of the words: a view that is made anew has the same.
        key = recorded.stream.removeprefix(SESSIONS) if recorded.stream.startswith(SESSIONS) else NOBODY
        agent, session = names.number("agent", agent_of(key)), names.number("session", key)
        stream = names.number("stream", recorded.stream)
        topic = names.number("topic" if is_message else "event", recorded.topic)
        if not shown and not private:
            return
        said = (_stored(shown), None if private is None else _stored(private))
        rows.add((recorded.position, stream, recorded.version, topic, agent, session, *said))
        if self.indexed:
            entries.add((recorded.position, _entries(agent, session, shown, private, is_message=is_message)))

    def _words(self, recorded: Recorded) -> tuple[set[str], set[str] | None, bool]:
        """Return the words that strangers read, all words if those are others, and whether it is a message."""
        is_message = message_in(recorded.event) is not None
        raw = message_of(recorded)
        if raw is None:
            shown, private = terms(texts_of_event(recorded)), None
        else:
            redacted, hidden = self._redact(raw)
            shown = terms(texts_of_message(redacted))
            private = terms(texts_of_message(raw)) if hidden else None
        # What has no words any more says so, which is a word, too.
        if not shown.isdisjoint(_GONE) and unsaid(recorded.event) == recorded.event:
            return set(), None, is_message
        return shown, private, is_message

    def _forget(self, sql: Sql, stream: str, version: int) -> bool:
        row = sql.execute(
            "SELECT position, agent, session, words, private, kind = 'topic' FROM said_at "
            "JOIN said_names ON no = topic WHERE stream = (SELECT no FROM said_names WHERE kind = 'stream' AND name = ?) "
            "AND version = ?",
            (stream, version),
        ).fetchone()
        if row is None:
            return False
        position, agent, session, words, private, is_message = row
        sql.execute("DELETE FROM said_at WHERE position = ?", (position,))
        if self.indexed:
            sql.execute(
                "INSERT INTO said_words (said_words, rowid, grams) VALUES ('delete', ?, ?)",
                (
                    position,
                    _entries(
                        agent,
                        session,
                        restored(words),
                        None if private is None else restored(private),
                        is_message=bool(is_message),
                    ),
                ),
            )
        return True


class _Rows:
    """Rows on their way into a table, some at a time: each statement may be a way to another machine and back."""

    def __init__(self, sql: Sql, into: str) -> None:
        self._sql = sql
        self._into = into
        self._rows: list[tuple[SqlValue, ...]] = []

    def add(self, row: tuple[SqlValue, ...]) -> None:
        """Put a row in, sooner or later."""
        self._rows.append(row)
        if len(self._rows) == _AT_ONCE:
            self.put()

    def put(self) -> None:
        """Put in what waits."""
        rows, self._rows = self._rows, []
        if rows:
            marks = f"({', '.join('?' * len(rows[0]))})"
            self._sql.execute(
                f"INSERT INTO {self._into} VALUES {', '.join([marks] * len(rows))}",  # noqa: S608 - our own
                [value for row in rows for value in row],
            )


class _Names:
    """The numbers that stand for names, each looked up once: no longer than a transaction, which may be undone."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._known: dict[tuple[str, str], int] = {}

    def number(self, kind: str, name: str) -> int:
        """Return the number of a name; it is given one if it has none."""
        if (known := self._known.get((kind, name))) is not None:
            return known
        select = "SELECT no FROM said_names WHERE kind = ? AND name = ?"
        if (row := self._sql.execute(select, (kind, name)).fetchone()) is None:
            self._sql.execute(
                "INSERT INTO said_names SELECT COALESCE(MAX(no), 0) + 1, ?, ? FROM said_names", (kind, name)
            )
            row = self._sql.execute(select, (kind, name)).fetchone()
        number: int = row[0]
        self._known[kind, name] = number
        return number


def _entries(
    agent: int, session: int, words: Collection[str], private: Collection[str] | None, *, is_message: bool
) -> str:
    """Return the index entries of an event: its words in the groups of its agent and of its session."""
    said = [(_SHOWN if is_message else _EVENTS, words), *([] if private is None else [(_PRIVATE, private)])]
    grouped = [([f"{letters[0]}{agent}", f"{letters[1]}{session}"], some) for letters, some in said]
    begun = [(entry(group, ""), some) for groups, some in grouped for group in groups]
    entries = " ".join([beginning + word for beginning, some in begun for word in some])
    if len(entries.encode()) <= _MOST:
        return entries
    return " ".join(one for groups, some in grouped for one in _cut(groups, some, _MOST // len(grouped)))


def _cut(groups: Sequence[str], words: Collection[str], most: int) -> Iterator[str]:
    """Yield the entries of as many words as there is room for, each in all of its groups."""
    for word in sorted(words):
        entries = [entry(group, word) for group in groups]
        most -= sum(len(one.encode()) + 1 for one in entries)
        if most < 0:
            return
        yield from entries


def entry(group: str, word: str) -> str:
    """Return the index entry of a word in a group."""
    return f"{group}x{word}"


_WINDOW_BITS: Final = 12
_MEMORY_LEVEL: Final = 5
"""What zlib takes by itself is for long texts: it gets 290 KiB for each, which takes ten times as long as packing a message's
words does. With these 70 KiB sorted words come out as small."""


def _stored(words: set[str]) -> bytes:
    packing = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return packing.compress(" ".join(sorted(words)).encode()) + packing.flush()


def restored(words: bytes) -> list[str]:
    """Return the words of a stored row.

    Raises:
        ValueError: they are invalid.
    """
    try:
        return zlib.decompress(words).decode().split()
    except zlib.error as error:
        raise ValueError(str(error)) from error

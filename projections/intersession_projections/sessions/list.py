"""The session list: a row per session as it is now, and each row as it was at any position (LIST, KEY-5)."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from intersession_events.facts import MessageRecorded, SessionImported, SessionOpened, SessionReset
from intersession_events.log import Log, Recorded, Sql
from intersession_projections.columns import from_text, to_text
from intersession_projections.sessions.order import Place, Seen, SessionOrder
from intersession_projections.sessions.row import SessionRow, evolve_row

_STREAM: Final = "session:"
_CHUNK: Final = 100


class SessionListView:
    """Keeps three tables: rows now, row versions by position, and the generations of each key.

    A version holds from its position up to the next one of the same key, so its end is not stored.
    """

    name = "session_list"
    shape = 2

    def create(self, sql: Sql) -> None:
        """Create the tables."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_list (session_key TEXT PRIMARY KEY, session_id TEXT NOT NULL, "
            "agent_id TEXT NOT NULL, label TEXT, spawned_by TEXT, archived INTEGER NOT NULL, "
            "updated_at BIGINT NOT NULL, opened BIGINT NOT NULL, position BIGINT NOT NULL, state TEXT NOT NULL)"
        )
        sql.execute("CREATE INDEX IF NOT EXISTS session_list_updated ON session_list (updated_at, position)")
        sql.execute("CREATE INDEX IF NOT EXISTS session_list_label ON session_list (label)")
        sql.execute("CREATE INDEX IF NOT EXISTS session_list_spawned_by ON session_list (spawned_by)")
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_versions (session_key TEXT NOT NULL, position BIGINT NOT NULL, "
            "agent_id TEXT NOT NULL, archived INTEGER NOT NULL, updated_at BIGINT NOT NULL, state TEXT NOT NULL, "
            "PRIMARY KEY (session_key, position))"
        )
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_generations (session_id TEXT NOT NULL, session_key TEXT NOT NULL, "
            "position BIGINT NOT NULL, from_version BIGINT NOT NULL, to_version BIGINT, "
            "PRIMARY KEY (session_id, session_key))"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the tables."""
        for table in ("session_list", "session_versions", "session_generations"):
            sql.execute(f"DROP TABLE IF EXISTS {table}")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in: a session's own events change its row, all others nothing."""
        for recorded in events:
            _take(sql, recorded)


def _take(sql: Sql, recorded: Recorded) -> None:
    if not recorded.stream.startswith(_STREAM):
        return
    key = recorded.stream.removeprefix(_STREAM)
    found = sql.execute("SELECT state, opened FROM session_list WHERE session_key = ?", (key,)).fetchone()
    before = None if found is None else from_text(found[0], SessionRow)
    after = evolve_row(before, key, recorded)
    if after is None:
        return
    _keep_generations(sql, before, after, recorded)
    if after is before:
        return
    opened = recorded.position if found is None else found[1]
    archived = int(after.archived is not None)
    row = to_text(after)
    if before is not None and _searched_by(before) == _searched_by(after):
        # What nearly every event does, and it touches one index only.
        sql.execute(
            "UPDATE session_list SET updated_at = ?, position = ?, state = ? WHERE session_key = ?",
            (after.updated_at, after.position, row, key),
        )
    else:
        sql.execute(
            "INSERT INTO session_list (session_key, session_id, agent_id, label, spawned_by, archived, updated_at, "
            "opened, position, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_key) DO UPDATE SET "
            "session_id = excluded.session_id, agent_id = excluded.agent_id, label = excluded.label, "
            "spawned_by = excluded.spawned_by, archived = excluded.archived, updated_at = excluded.updated_at, "
            "position = excluded.position, state = excluded.state",
            (
                key,
                after.session_id,
                after.agent_id,
                None if after.label is None else to_text(after.label),
                after.spawned_by,
                archived,
                after.updated_at,
                opened,
                after.position,
                row,
            ),
        )
    sql.execute(
        "INSERT INTO session_versions (session_key, position, agent_id, archived, updated_at, state) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (key, after.position, after.agent_id, archived, after.updated_at, row),
    )


class Generation(NamedTuple):
    """Which session an id belongs to, and whether it is the one the key means now (KEY-5).

    `current` is False for a generation before a reset and for an archived session: those can be read, not
    addressed.
    """

    key: str
    current: bool


class Span(NamedTuple):
    """Where in its stream the messages of a generation lie: from a version on, up to one (None: the end)."""

    from_version: int
    to_version: int | None


class Sessions:
    """Queries on the session list. `as_of` is a position; None is now."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self, key: str, as_of: int | None = None) -> SessionRow | None:
        """Return the row of a key, archived ones too; None where there was no such session."""
        if as_of is None:
            rows = self._log.query("SELECT state FROM session_list WHERE session_key = ?", (key,))
        else:
            rows = self._log.query(
                "SELECT state FROM session_versions WHERE session_key = ? AND position <= ? "
                "ORDER BY position DESC LIMIT 1",
                (key, as_of),
            )
        return from_text(rows[0][0], SessionRow) if rows else None

    def by_session_id(self, session_id: str, as_of: int | None = None) -> Generation | None:
        """Return the key a session id belongs or belonged to (KEY-5)."""
        until = self._log.head() if as_of is None else as_of
        rows = self._log.query(
            "SELECT session_key FROM session_generations WHERE session_id = ? AND position <= ? "
            "ORDER BY position DESC, session_key",
            (session_id, until),
        )
        found = [Generation(key, self._is_current(key, session_id, as_of)) for (key,) in rows]
        return next((generation for generation in found if generation.current), found[0] if found else None)

    def keys_beginning(self, text: str) -> list[str]:
        """Return the keys of sessions that begin with a text, archived ones too."""
        rows = self._log.query(
            "SELECT session_key FROM session_list WHERE session_key >= ? AND session_key < ? ORDER BY session_key",
            (text, f"{text}\U0010ffff"),
        )
        return [key for (key,) in rows]

    def session_ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of generations that begin with a text."""
        rows = self._log.query(
            "SELECT DISTINCT session_id FROM session_generations WHERE session_id >= ? AND session_id < ? "
            "ORDER BY session_id LIMIT ?",
            (beginning, f"{beginning}\U0010ffff", limit),
        )
        return [session_id for (session_id,) in rows]

    def span(self, key: str, session_id: str) -> Span | None:
        """Return where in the key's stream the messages of a generation lie."""
        rows = self._log.query(
            "SELECT from_version, to_version FROM session_generations WHERE session_id = ? AND session_key = ?",
            (session_id, key),
        )
        return Span(*rows[0]) if rows else None

    def by_label(self, label: str, agent_id: str | None = None) -> list[SessionRow]:
        """Return the rows that have exactly this label, by key; archived ones are left out."""
        rows = self._log.query(
            "SELECT state FROM session_list WHERE label = ? AND archived = 0",
            (to_text(label),),
        )
        found = [from_text(row, SessionRow) for (row,) in rows]
        kept = [row for row in found if agent_id is None or row.agent_id == agent_id]
        return sorted(kept, key=lambda row: row.key)

    def order(
        self, as_of: int | None = None, *, agent_id: str | None = None, seen: Seen | None = None
    ) -> SessionOrder:
        """Return the places of the list: of one agent or all, as far as they are seen (None: all)."""
        return SessionOrder(
            self._log, self._log.head() if as_of is None else as_of, agent_id=agent_id, seen=seen
        )

    def rows(self, places: Iterator[Place]) -> Iterator[SessionRow]:
        """Yield the row that stands at each place, read as they are asked for."""
        while chunk := list(islice(places, _CHUNK)):
            rows = self._versions([(place.key, place.position) for place in chunk])
            yield from (from_text(rows[place.key], SessionRow) for place in chunk)

    def descendants(self, key: str, as_of: int | None = None) -> set[str]:
        """Return the keys of all it spawned, directly or not, archived ones too (VIS-2)."""
        until = self._log.head() if as_of is None else as_of
        rows = self._log.query(
            "WITH RECURSIVE tree (child) AS ("
            "SELECT session_key FROM session_list WHERE spawned_by = ? AND opened <= ? UNION "
            "SELECT s.session_key FROM session_list s JOIN tree t ON s.spawned_by = t.child WHERE s.opened <= ?) "
            "SELECT child FROM tree",
            (key, until, until),
        )
        return {child for (child,) in rows} - {key}

    def ancestors(self, key: str) -> list[str]:
        """Return the keys of those that spawned it, the nearest first. It takes as long for a key that is not there."""
        rows = self._log.query(
            "WITH RECURSIVE up (parent) AS ("
            "SELECT spawned_by FROM session_list WHERE session_key = ? UNION "
            "SELECT s.spawned_by FROM session_list s JOIN up ON s.session_key = up.parent) "
            "SELECT parent FROM up WHERE parent IS NOT NULL AND parent <> ?",
            (key, key),
        )
        return [parent for (parent,) in rows]

    def _is_current(self, key: str, session_id: str, as_of: int | None) -> bool:
        row = self.get(key, as_of)
        return row is not None and row.session_id == session_id and row.archived is None

    def _versions(self, places: Sequence[tuple[str, int]]) -> dict[str, str]:
        condition = " OR ".join(["(session_key = ? AND position = ?)"] * len(places))
        parameters = [value for place in places for value in place]
        rows = self._log.query(
            f"SELECT session_key, state FROM session_versions WHERE {condition}",  # noqa: S608 - only question marks
            parameters,
        )
        return dict(rows)


def _searched_by(row: SessionRow) -> tuple[object, ...]:
    """Return the values of the columns that are searched by and seldom change."""
    return row.session_id, row.agent_id, row.label, row.spawned_by, row.archived


def _keep_generations(sql: Sql, before: SessionRow | None, after: SessionRow, recorded: Recorded) -> None:
    """Remember each session id a key has had, and how far in the stream its messages reach."""
    event = recorded.event
    key = after.key
    match event:
        case SessionOpened() | SessionReset() | SessionImported():
            if before is not None and before.session_id != event.session_id:
                _reach(sql, key, before.session_id, recorded.version)
            _begin(sql, key, event.session_id, recorded)
        case MessageRecorded() if event.session_id != after.session_id:
            # A run that outlived a reset, or imported generations merged by time.
            _begin(sql, key, event.session_id, recorded)
            _reach(sql, key, event.session_id, recorded.version)
        case _:
            pass


def _begin(sql: Sql, key: str, session_id: str, recorded: Recorded) -> None:
    sql.execute(
        "INSERT INTO session_generations (session_id, session_key, position, from_version, to_version) "
        "VALUES (?, ?, ?, ?, NULL) ON CONFLICT (session_id, session_key) DO UPDATE SET to_version = NULL",
        (session_id, key, recorded.position, recorded.version),
    )


def _reach(sql: Sql, key: str, session_id: str, version: int) -> None:
    sql.execute(
        "UPDATE session_generations SET to_version = ? WHERE session_id = ? AND session_key = ?",
        (version, session_id, key),
    )

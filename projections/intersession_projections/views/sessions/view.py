"""The view of the session list: a row per session as it is now, its versions at all positions, and the places of all."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from intersession_events.basics.ids import CLOCK, SESSIONS
from intersession_events.facts import (
    LineImported,
    SessionImported,
    SessionOpened,
    SessionReset,
    generation_of,
    message_in,
)
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row, Sql, among, asked
from intersession_events.log.views import Coming, Known, Memory
from intersession_projections.basics.columns import Small, hashed, pack, packed, to_text, unpack
from intersession_projections.views.sessions import search, sets
from intersession_projections.views.sessions.row import STORED, SessionRow, evolve_row
from intersession_projections.views.sessions.sets import (
    ALL,
    NOWHERE,
    Held,
    ListSet,
    Moves,
    Numbers,
    Since,
    kind_of,
    part_of,
)
from intersession_projections.views.sessions.versions import is_full, messages_in, versions_in, with_version

_PLACING: Final = frozenset(STORED.numbers("agent_id", "label", "spawned_by", "archived"))
"""What decides which sets a session is in."""
_UPDATED_AT, _DISPLAY_NAME = STORED.numbers("updated_at", "display_name")

_SESSIONS: Final = "SELECT no, session_key, parent, opened, position, known, state, recent FROM session_list WHERE {} IN ({{}})"
_AGENTS: Final = "SELECT agent, agent_id FROM session_agents WHERE agent_id IN ({})"

_REMEMBERED: Final = 2_048
"""The number of sessions in memory, four or five megabytes: the latest read."""

_TABLES: Final = (
    "session_list",
    "session_versions",
    "session_generations",
    "session_messages",
    *sets.TABLES,
    search.TABLE,
)


class _CurrentSession(msgspec.Struct):
    """A session as its row in the list has it, while events are taken in."""

    no: int
    key: str
    row: SessionRow | None = None
    small: Small = msgspec.field(default_factory=dict[int, Any])  # as it is stored
    """What is stored of the row."""
    recent: bytes | None = None
    """The block of the last versions."""
    parent: int | None = None
    opened: int | None = None
    known: bytes | None = None
    """By which names it is found, as the index of names has it stored."""
    sets: frozenset[ListSet] | None = None
    """The sets it is in while it is not archived, once they were looked up."""
    searched: tuple[frozenset[ListSet], tuple[str, ...]] | None = None
    """What it was last found to be searched by."""
    since: Since = msgspec.field(default_factory=dict[tuple[ListSet, int], int])
    """Since when it holds the places that it took while it is remembered."""
    is_renamed: bool = False
    """Whether it is found by more names than before."""


class SessionListView:
    """Stores the rows, their versions by position, the generations of each key, and the place of each message.

    A version holds from its position up to the next one of the same session, so its end is not stored. The last ones, and
    where the messages lie that came with them, stand in the row itself, so that most events change nothing else.
    """

    name = "session_list"
    shape = 6
    only_added = ("session_versions", "session_messages", "session_past")

    def create(self, sql: Sql) -> None:
        """Create the tables."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_list (no INTEGER PRIMARY KEY, session_key TEXT NOT NULL UNIQUE, "
            "parent INTEGER, opened INTEGER, position INTEGER, falling INTEGER, known BLOB, names BLOB, state BLOB, recent BLOB)"
        )
        sql.execute(
            "CREATE INDEX IF NOT EXISTS session_list_parent ON session_list (parent) WHERE parent IS NOT NULL"
        )
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_versions (no INTEGER NOT NULL, position INTEGER NOT NULL, "
            "versions BLOB NOT NULL, PRIMARY KEY (no, position)) WITHOUT ROWID"
        )
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_generations (session_id BLOB NOT NULL, no INTEGER NOT NULL, "
            "position INTEGER NOT NULL, from_version INTEGER NOT NULL, to_version INTEGER, "
            "PRIMARY KEY (session_id, no)) WITHOUT ROWID"
        )
        sql.execute(
            "CREATE TABLE IF NOT EXISTS session_messages (no INTEGER NOT NULL, message INTEGER NOT NULL, "
            "version INTEGER NOT NULL, PRIMARY KEY (no, message, version)) WITHOUT ROWID"
        )
        sets.create(sql)
        search.create(sql)

    def drop(self, sql: Sql) -> None:
        """Drop the tables."""
        for table in _TABLES:
            sql.execute(f"DROP TABLE IF EXISTS {table}")

    def questions(self, coming: Sequence[Coming], memory: Memory) -> Sequence[Question]:
        """Ask for the sessions whose streams get events, and for the numbers of the agents that their keys name."""
        named: set[str] = set()
        for stream, _ in coming:
            if stream.startswith(SESSIONS) and (key := stream.removeprefix(SESSIONS)) not in memory:
                named.add(key)
        if not named:
            return []
        keys = sorted(named)
        agents = {key.split(":", 2)[1] for key in keys if key.startswith("agent:")}
        # Of more agents than one question takes, the others are asked for when they are wanted.
        return [
            among(_AGENTS, sorted(agents) or [""])[0],
            *among(_SESSIONS.format("session_key"), keys),
        ]

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in: a session's own events change its row; the clock, set back, changes all rows with later times."""
        taking: _Taking | None = None
        for recorded in events:
            stream = recorded.stream
            if not stream.startswith(SESSIONS) and stream != CLOCK:
                continue
            taking = taking or _Taking(sql, known)
            if stream == CLOCK:
                taking.step(recorded)
            else:
                taking.take(stream.removeprefix(SESSIONS), recorded)
        if taking is not None:
            taking.store()


class _Taking:
    """One batch of events; the row of a session is read once, unless it is remembered, and written once.

    All that are there of the sessions whose events it takes are given or remembered, by key and by number; others are read.
    """

    def __init__(self, sql: Sql, known: Known) -> None:
        self._sql = sql
        self._memory = known.memory
        self._changed: dict[int, _CurrentSession] = {}
        self._moves = Moves(sql)
        self._numbers = Numbers(sql)
        self._has_index: bool | None = None
        if known.answers:
            agents, *sessions = known.answers
            self._numbers.learn(agents)
            self._take_rows(chain.from_iterable(sessions))

    def take(self, key: str, recorded: Recorded) -> None:
        kept: _CurrentSession | None = self._memory.get(key)
        event, before = recorded.event, None if kept is None else kept.row
        after = evolve_row(before, key, recorded)
        if after is None:
            return
        kept = kept or self._begun(key)
        message = message_in(event)
        match event:
            case _ if message is not None:
                generation = generation_of(event)
                if generation is not None and generation != after.session_id:
                    # A run that outlived a reset, or imported generations merged by time.
                    self._begin(kept, generation, recorded)
                    self._reach(kept, generation, recorded.version)
            case SessionOpened() | SessionReset() | SessionImported():
                if before is not None and before.session_id != event.session_id:
                    self._reach(kept, before.session_id, recorded.version)
                self._begin(kept, event.session_id, recorded)
            case LineImported(entry_id=str(entry)):
                self._keep_messages(kept, [(hashed(entry), recorded.version)])
            case _:
                pass
        if after is not before:
            self._change(kept, after, recorded, None if message is None else hashed(message.id))
            kept.opened = recorded.position if kept.opened is None else kept.opened

    def step(self, recorded: Recorded) -> None:
        """Let no session have been updated later than the log's time, which has just stepped (L8)."""
        later = self._sql.execute(
            "SELECT no FROM session_list WHERE falling < ?", (-recorded.time,)
        ).fetchall()
        for no in sorted({no for (no,) in later} | self._changed.keys()):
            kept = self._numbered(no)
            before = kept.row
            if before is None or before.archived is not None or before.updated_at <= recorded.time:
                continue
            after = msgspec.structs.replace(before, updated_at=recorded.time, position=recorded.position)
            self._change(kept, after, recorded)

    def store(self) -> None:
        """Write the rows that have changed, and what sessions have left."""
        self._moves.store()
        for kept in self._changed.values():
            if kept.row is None:
                continue
            self._sql.execute(
                "UPDATE session_list SET opened = ?, position = ?, falling = ?, state = ?, recent = ? WHERE no = ?",
                (
                    kept.opened,
                    kept.row.position,
                    -kept.row.updated_at if kept.row.archived is None else None,
                    pack(kept.small),
                    kept.recent,
                    kept.no,
                ),
            )
            if kept.is_renamed:
                _, known = search.restored(kept.known, kept.key)
                self._sql.execute(
                    "UPDATE session_list SET known = ?, names = ? WHERE no = ?",
                    (kept.known, search.other_names(kept.key, known), kept.no),
                )
                kept.is_renamed = False
            if kept.row.archived is not None:
                self._forget(kept)
        while len(self._memory) > 2 * _REMEMBERED:
            self._forget(next(iter(self._memory.values())))

    # --- rows

    def _forget(self, kept: _CurrentSession) -> None:
        # Both or none: two of one session would each have changes that the other lacks.
        self._memory.pop(kept.key, None)
        self._memory.pop(kept.no, None)

    def _found(self, key: str) -> _CurrentSession | None:
        return self._memory.get(key) or self._read("session_key", key)

    def _numbered(self, no: int) -> _CurrentSession:
        kept: _CurrentSession | None = self._memory.get(no) or self._read("no", no)
        if kept is None:
            raise LookupError(f"there is no session {no}")
        return kept

    def _read(self, column: str, value: str | int) -> _CurrentSession | None:
        found = self._sql.execute(_SESSIONS.format(column).format("?"), (value,)).fetchone()
        return None if found is None else self._remembered(found)

    def _take_rows(self, rows: Iterable[Row]) -> None:
        """Remember sessions that were read, and read those above them: where they are listed depends on them."""
        kept = [self._remembered(row) for row in rows]
        while above := {
            one.parent for one in kept if one.parent is not None and one.parent not in self._memory
        }:
            answers = asked(self._sql, among(_SESSIONS.format("no"), sorted(above)))
            kept = [self._remembered(row) for row in chain.from_iterable(answers)]

    def _begun(self, key: str) -> _CurrentSession:
        """Give a key its number: the key of a session that is opened, or that another one says it was spawned by."""
        self._sql.execute(
            "INSERT INTO session_list (no, session_key) SELECT COALESCE(MAX(no), 0) + 1, ? FROM session_list",
            (key,),
        )
        kept = self._read("session_key", key)
        assert kept is not None  # noqa: S101 - for the type checker
        return kept

    def _remembered(self, found: Row) -> _CurrentSession:
        no, key, parent, opened, position, known, state, recent = found
        small: Small = {} if state is None else unpack(state)
        row = None if state is None else STORED.made_of(small, key=key, position=position)
        kept = _CurrentSession(no, key, row, small, recent, parent, opened, known)
        self._memory[kept.key] = self._memory[kept.no] = kept
        return kept

    # --- versions, generations, messages

    def _change(
        self, kept: _CurrentSession, after: SessionRow, recorded: Recorded, message: int | None = None
    ) -> None:
        """Let a session have another row from an event on, with which a message came, or none."""
        before = kept.row
        small = STORED.small(after, since=before)
        self._take_places(kept, before, after, recorded, small)
        kept.small.update(small)
        if kept.recent is not None and is_full(kept.recent):
            self._put_by(kept, kept.recent)
            kept.recent = None
        whole_first = kept.small if kept.recent is None else small
        kept.recent = with_version(kept.recent, (recorded.position, whole_first, message))
        kept.row = after
        self._changed[kept.no] = kept

    def _put_by(self, kept: _CurrentSession, block: bytes) -> None:
        """Store a block that is full beside the row, and where the messages lie that came with its versions."""
        versions = versions_in(block)
        self._sql.execute("INSERT INTO session_versions VALUES (?, ?, ?)", (kept.no, versions[0][0], block))
        self._keep_messages(kept, messages_in(versions))

    def _begin(self, kept: _CurrentSession, session_id: str, recorded: Recorded) -> None:
        """Remember a session id that a key has."""
        self._sql.execute(
            "INSERT INTO session_generations VALUES (?, ?, ?, ?, NULL) "
            "ON CONFLICT (session_id, no) DO UPDATE SET to_version = NULL",
            (packed(session_id), kept.no, recorded.position, recorded.version),
        )

    def _reach(self, kept: _CurrentSession, session_id: str, version: int) -> None:
        """Remember how far in the stream the messages of a session id reach."""
        self._sql.execute(
            "UPDATE session_generations SET to_version = ? WHERE session_id = ? AND no = ?",
            (version, packed(session_id), kept.no),
        )

    def _keep_messages(self, kept: _CurrentSession, messages: Sequence[tuple[int, int]]) -> None:
        if messages:
            rows = ", ".join(["(?, ?, ?)"] * len(messages))
            values = [value for message in messages for value in (kept.no, *message)]
            self._sql.execute(f"INSERT INTO session_messages VALUES {rows}", values)  # noqa: S608 - question marks

    # --- places

    def _take_places(
        self,
        kept: _CurrentSession,
        before: SessionRow | None,
        after: SessionRow,
        recorded: Recorded,
        changed: Small,
    ) -> None:
        is_moved = before is None or not _PLACING.isdisjoint(changed)
        if is_moved:
            self._move_family(kept, before, after, recorded.position)
        elif _UPDATED_AT in changed:
            held = self._held(kept, before)
            self._moves.move(kept, held, Held(held.sets, -after.updated_at), recorded.position)
        if is_moved or _DISPLAY_NAME in changed:
            self._held(kept, after)  # what it is searched in, in case nothing of this batch has asked for it
            self._keep_searched(kept, after)
        if isinstance(recorded.event, SessionImported) and after.updated_at > recorded.time:
            self._sql.execute(
                "INSERT INTO session_ahead VALUES (?, ?)", (recorded.position, after.updated_at)
            )

    def _move_family(
        self, kept: _CurrentSession, before: SessionRow | None, after: SessionRow, position: int
    ) -> None:
        """Move a session to its new place, and its descendants as well if its parent changed."""
        parent = None if after.spawned_by is None else self._number_of(after.spawned_by)
        family = [kept, *(self._descendants(kept) if parent != kept.parent else ())]
        rows = {one.no: one.row for one in family}
        held = {one.no: self._held(one, before if one is kept else rows[one.no]) for one in family}
        if parent != kept.parent:
            kept.parent = parent
            self._sql.execute("UPDATE session_list SET parent = ? WHERE no = ?", (parent, kept.no))
        for one in family:
            one.sets = None
            now = self._held(one, after if one is kept else rows[one.no])
            self._moves.move(one, held[one.no], now, position)
            if one is not kept and one.row is not None:
                self._keep_searched(one, one.row)

    def _held(self, kept: _CurrentSession, row: SessionRow | None) -> Held:
        """Return the sets that a session is in, with the parents as they are known now."""
        if row is None or row.archived is not None:
            return NOWHERE
        if kept.sets is None:
            part = part_of(self._numbers.of_agent(row.agent_id), kind_of(kept.key))
            labels = [ALL]
            if row.label is not None:
                labels.append(self._numbers.of_label(to_text(row.label)))
            scopes = [ALL, *self._ancestors(kept)]
            if kept.parent is not None:
                scopes.append(-kept.parent)
            kept.sets = frozenset(ListSet(scope, label, part) for scope in scopes for label in labels)
        return Held(kept.sets, -row.updated_at)

    def _number_of(self, key: str) -> int:
        return (self._found(key) or self._begun(key)).no

    def _ancestors(self, kept: _CurrentSession) -> list[int]:
        """Return the sessions above one; an imported lineage may be a circle."""
        found: list[int] = []
        parent = kept.parent
        while parent is not None and parent != kept.no and parent not in found:
            found.append(parent)
            parent = self._numbered(parent).parent
        return found

    def _descendants(self, kept: _CurrentSession) -> list[_CurrentSession]:
        found: dict[int, _CurrentSession] = {}
        level = [kept.no]
        while level:
            children = [
                child
                for no in level
                for (child,) in self._sql.execute(
                    "SELECT no FROM session_list WHERE parent = ? ORDER BY no", (no,)
                ).fetchall()
                if child != kept.no and child not in found
            ]
            found.update((child, self._numbered(child)) for child in children)
            level = list(dict.fromkeys(children))
        return list(found.values())

    # --- texts

    def _keep_searched(self, kept: _CurrentSession, row: SessionRow) -> None:
        """Index a session by its present name, beside all its past names."""
        if kept.sets is None or row.archived is not None:
            return
        names = (kept.key, *(name for name in (row.label, row.display_name) if name))
        if kept.searched == (kept.sets, names):
            return
        kept.searched = (kept.sets, names)
        groups = search.groups_of(kept.sets)
        documents, known = search.restored(kept.known, kept.key)
        if groups <= known.keys() and all(set(names) <= set(known[group]) for group in groups):
            return
        now = dict(known)
        every = tuple(dict.fromkeys((*(name for of in known.values() for name in of), *names)))
        for group in sorted(groups):
            now[group] = every
        if self._has_index is None:
            self._has_index = search.has_index(self._sql)
        if self._has_index:
            search.keep(self._sql, kept.no, documents, known, now)
        kept.known = search.stored(documents + 1, now)
        kept.is_renamed = True
        self._changed[kept.no] = kept

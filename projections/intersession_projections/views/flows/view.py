"""The view of exchanges, spawns and deliveries: the state of each, and the flow of each run."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from intersession_events.facts import DeliveryDecided, run_asked_in
from intersession_events.log.log import Moment
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row, Sql, SqlValue, among
from intersession_events.log.views import Coming, Known, Memory
from intersession_projections.basics.columns import Small, hashed, pack, packed, unpack, unpacked
from intersession_projections.views.flows.rows import (
    DeliverySummary,
    ExchangeSummary,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_flow,
    place_text,
)
from intersession_projections.views.flows.stored import (
    ASKED,
    COLUMNS,
    FAILED,
    HELD,
    RELEASED,
    STORED,
    UNDELIVERED,
    restored,
)


class OpenFlowsView:
    """Stores a row per exchange, spawn and delivery, and the flow of each run."""

    name = "open_flows"
    shape = 7

    def create(self, sql: Sql) -> None:
        """Create the tables. Sessions, runs and owners are stored as numbers."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS flows (accepted INTEGER PRIMARY KEY, kind TEXT NOT NULL, id BLOB NOT NULL, "
            "is_open INTEGER NOT NULL, position INTEGER NOT NULL, session INTEGER, child INTEGER, owner INTEGER, "
            "run INTEGER, channel TEXT, outcome TEXT, working INTEGER NOT NULL, archive_due INTEGER, "
            "has_files INTEGER NOT NULL, state BLOB NOT NULL, UNIQUE (id, kind))"
        )
        for name, columns, condition in (
            ("open", "kind", "is_open = 1"),
            ("asked", "kind", ASKED),
            ("session", "session", "session IS NOT NULL"),
            ("child", "child", "child IS NOT NULL"),
            ("owner", "owner", "owner IS NOT NULL"),
            ("run", "run", "run IS NOT NULL"),
            ("undelivered", "kind", UNDELIVERED),
            ("has_files", "accepted", "has_files = 1"),
            ("archive_due", "archive_due", "archive_due IS NOT NULL"),
        ):
            sql.execute(f"CREATE INDEX IF NOT EXISTS flows_{name} ON flows ({columns}) WHERE {condition}")
        sql.execute(
            "CREATE TABLE IF NOT EXISTS flow_runs (run_id BLOB PRIMARY KEY, flow INTEGER NOT NULL) WITHOUT ROWID"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the tables."""
        for table in ("flows", "flow_runs"):
            sql.execute(f"DROP TABLE IF EXISTS {table}")

    def carry_over(self, sql: Sql, source: Moment, *, at: int, here: Collection[int]) -> Iterable[int]:
        """Copy the flows without events after the cut; return the positions at which the others were accepted."""
        left: list[int] = []
        carried: set[int] = set()
        for row in source.query("SELECT * FROM flows WHERE accepted <= ?", (at,)):
            accepted, _, _, _, position, *_ = row
            if accepted not in here:
                continue
            if position <= at:
                sql.execute(_CARRIED_FLOW, row)
                carried.add(accepted)
            else:
                left.append(accepted)
        for row in source.query("SELECT run_id, flow FROM flow_runs WHERE flow <= ?", (at,)):
            if row[1] in carried:
                sql.execute("INSERT INTO flow_runs VALUES (?, ?)", row)
        return left

    def questions(self, coming: Sequence[Coming], memory: Memory) -> Sequence[Question]:
        """Ask for the flows whose streams get events, except those that are known to be open."""
        ids: list[SqlValue] = []
        for stream, _ in coming:
            kind, _, name = stream.partition(":")
            if kind in STORED and stream not in memory:
                ids.append(packed(name))
        return among(f"SELECT {COLUMNS} FROM flows WHERE id IN ({{}})", ids) if ids else []  # noqa: S608 - our own words

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in: each flow is read once and written once."""
        memory = known.memory
        for rows in known.answers:
            memory.update((f"{row[0]}:{unpacked(row[1])}", _CurrentFlow.restored(row)) for row in rows)
        taking = _Taking(sql, memory)
        for recorded in events:
            if recorded.stream.partition(":")[0] in STORED:
                taking.take(recorded)
        taking.store()
        memory.bounded(_REMEMBERED)


_REMEMBERED: Final = 4_096
"""The number of open flows in memory, six or seven megabytes."""


_CARRIED_FLOW: Final = "INSERT INTO flows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _CurrentFlow(msgspec.Struct):
    """A flow's present state. Its stored form grows with each event, however many are taken in at once."""

    row: Summary
    small: Small
    searched: tuple[SqlValue, ...] | None = None
    """What it is searched by where it is stored; None: it is not yet."""
    place: str | None = None
    """Where the text of a delivery goes, until that is stored."""

    @classmethod
    def restored(cls, found: Row) -> "_CurrentFlow":
        row = restored(found)
        return cls(row, unpack(found[-1]), _searched(row))


class _Taking:
    """One batch of events."""

    def __init__(self, sql: Sql, memory: Memory) -> None:
        self._sql = sql
        self._memory = memory
        self._changed: dict[str, _CurrentFlow] = {}

    def take(self, recorded: Recorded) -> None:
        stream = recorded.stream
        packing = STORED[stream.partition(":")[0]]
        kept: _CurrentFlow | None = self._memory.get(stream)
        if kept is None:
            row = accept_flow(recorded)
            if row is None:
                return
            kept = self._memory[stream] = _CurrentFlow(row, packing.small(row), place=_place(recorded))
        else:
            before, kept.row = kept.row, evolve_flow(kept.row, recorded)
            kept.small.update(packing.small(kept.row, since=before))
        self._changed[stream] = kept
        if (asked := run_asked_in(recorded.event)) is not None:
            self._sql.execute(
                "INSERT INTO flow_runs VALUES (?, ?) ON CONFLICT (run_id) DO NOTHING",
                (packed(asked.run_id), kept.row.accepted),
            )

    def store(self) -> None:
        for stream, kept in self._changed.items():
            _store(self._sql, stream, kept)
            if not kept.row.is_open:
                del self._memory[stream]


def _store(sql: Sql, stream: str, kept: _CurrentFlow) -> None:
    kind, _, name = stream.partition(":")
    row, state = kept.row, pack(kept.small)
    before, searched = kept.searched, _searched(kept.row)
    kept.searched = searched
    if before == searched:
        # SQLite writes the entries of an index anew for each column that is set, even to what it was.
        sql.execute(
            "UPDATE flows SET position = ?, state = ? WHERE accepted = ?", (row.position, state, row.accepted)
        )
        return
    changing = (row.position, state, *searched)
    if before is not None:
        sql.execute(
            "UPDATE flows SET position = ?, state = ?, is_open = ?, outcome = ?, working = ?, archive_due = ?, "
            "has_files = ? WHERE accepted = ?",
            (*changing, row.accepted),
        )
        return
    child = owner = run = channel = None
    match row:
        case ExchangeSummary():
            # The session that it is asked of stands where a spawn has its child: both are looked up by that.
            session, child = row.requester, row.target
        case SpawnSummary():
            session, child = row.requester, row.child
        case DeliverySummary():
            # Its place stands where a spawn has its child: the texts to one are counted by that.
            session, child, owner = row.session_key, kept.place, row.owner
            run, channel = row.run_id, row.channel
    numbers = (None if one is None else hashed(one) for one in (session, child, owner, run))
    sql.execute(
        "INSERT INTO flows (position, state, is_open, outcome, working, archive_due, has_files, accepted, kind, id, "
        "channel, session, child, owner, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*changing, row.accepted, kind, packed(name), channel, *numbers),
    )


def _place(recorded: Recorded) -> str | None:
    event = recorded.event
    return place_text(event.route) if isinstance(event, DeliveryDecided) else None


def _searched(row: Summary) -> tuple[SqlValue, ...]:
    """Return what of a row can change and is searched by: is_open, outcome, working, archive_due, has_files."""
    match row:
        case ExchangeSummary():
            stopped = HELD if row.held is not None else RELEASED if row.released else None
            return (int(row.is_open), stopped or _failed(row), 0, None, 0)
        case SpawnSummary():
            working = row.status is None and row.is_open
            return (int(row.is_open), _failed(row), int(working), row.archive_due_ms, int(row.has_files))
        case DeliverySummary():
            return (int(row.is_open), row.state, 0, None, 0)


def _failed(row: ExchangeSummary | SpawnSummary) -> str | None:
    return FAILED if not row.is_open and row.failed else None

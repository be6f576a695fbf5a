"""The view of exchanges, spawns and deliveries: where each stands, and which children wait to be archived."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from intersession_events.facts import DeliveryDecided, DeliveryDenied, DeliveryFailed, RunAsked
from intersession_events.log import Log, Recorded, Row, Sql, SqlValue
from intersession_projections.columns import Packing, beginning_with, hashed, packed, unpacked
from intersession_projections.flows.rows import (
    DeliveriesWanted,
    DeliveryNote,
    DeliverySummary,
    ExchangeSummary,
    Position,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_flow,
)

T = TypeVar("T", ExchangeSummary, SpawnSummary, DeliverySummary)

_EXCHANGE: Final = "exchange"
_SPAWN: Final = "spawn"
_DELIVERY: Final = "delivery"
_APART: Final = ("accepted", "position")
_STORED: Final[Mapping[str, "Packing[Any]"]] = {  # each of its own kind
    _EXCHANGE: Packing(ExchangeSummary, apart=(*_APART, "exchange_id")),
    _SPAWN: Packing(SpawnSummary, apart=(*_APART, "spawn_id")),
    _DELIVERY: Packing(DeliverySummary, apart=(*_APART, "delivery_id")),
}
_UNDELIVERED: Final = "outcome IN ('failed', 'unknown', 'denied')"
_ASKED: Final = "kind <> 'delivery'"
"""Said of those that were asked for, so that SQLite takes the index that is about them alone."""
_COLUMNS: Final = "kind, id, accepted, position, state"


class OpenFlowsView:
    """Keeps a row per exchange, spawn and delivery, and which flow each run belongs to."""

    name = "open_flows"
    shape = 3

    def create(self, sql: Sql) -> None:
        """Create the tables. Sessions, runs and owners are looked up by the numbers that stand for their names."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS flows (accepted INTEGER PRIMARY KEY, kind TEXT NOT NULL, id BLOB NOT NULL, "
            "is_open INTEGER NOT NULL, position INTEGER NOT NULL, session INTEGER, child INTEGER, owner INTEGER, "
            "run INTEGER, channel TEXT, outcome TEXT, working INTEGER NOT NULL, archive_due INTEGER, "
            "has_files INTEGER NOT NULL, state BLOB NOT NULL, UNIQUE (id, kind))"
        )
        for name, columns, condition in (
            ("open", "kind", "is_open = 1"),
            ("asked", "kind", _ASKED),
            ("session", "session", "session IS NOT NULL"),
            ("child", "child", "child IS NOT NULL"),
            ("owner", "owner", "owner IS NOT NULL"),
            ("run", "run", "run IS NOT NULL"),
            ("undelivered", "kind", _UNDELIVERED),
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

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in: a flow is read once for all of them, and written once."""
        taking = _Taking(sql)
        for recorded in events:
            taking.take(recorded)
        taking.store()


class _Kept(msgspec.Struct):
    """A flow while events are taken in: as it is stored, and as it is now."""

    stored: Summary | None
    row: Summary | None


class _Taking:
    """One batch of events."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._kept: dict[tuple[str, str], _Kept] = {}

    def take(self, recorded: Recorded) -> None:
        kind, _, name = recorded.stream.partition(":")
        if kind not in _STORED:
            return
        kept = self._found(kind, name)
        row = accept_flow(recorded) if kept.row is None else evolve_flow(kept.row, recorded)
        if row is None:
            return
        kept.row = row
        if isinstance(recorded.event, RunAsked):
            self._sql.execute(
                "INSERT INTO flow_runs VALUES (?, ?) ON CONFLICT (run_id) DO NOTHING",
                (packed(recorded.event.run_id), row.accepted),
            )

    def store(self) -> None:
        for (kind, name), kept in self._kept.items():
            if kept.row is not None and kept.row is not kept.stored:
                _store(self._sql, kind, name, kept.row, kept.stored)

    def _found(self, kind: str, name: str) -> _Kept:
        kept = self._kept.get((kind, name))
        if kept is None:
            found = self._sql.execute(
                f"SELECT {_COLUMNS} FROM flows WHERE id = ? AND kind = ?",  # noqa: S608 - our own words
                (packed(name), kind),
            ).fetchone()
            row = None if found is None else _restored(found)
            kept = self._kept[kind, name] = _Kept(row, row)
        return kept


class Flows:
    """Queries on exchanges, spawns and deliveries. Streams are given in the order they were accepted."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def open_exchanges(self) -> list[str]:
        """Return the streams of the exchanges that are not closed."""
        return self._open("exchange")

    def open_spawns(self) -> list[str]:
        """Return the streams of the spawns whose announce is not final."""
        return self._open("spawn")

    def open_deliveries(self) -> list[str]:
        """Return the streams of the deliveries without an outcome."""
        return self._open("delivery")

    def open_deliveries_to(self, channel: str) -> list[DeliverySummary]:
        """Return the deliveries to a channel that have no outcome."""
        return self._select(
            DeliverySummary, "kind = 'delivery' AND is_open = 1 AND channel = ? ORDER BY accepted", (channel,)
        )

    def exchange(self, exchange_id: str) -> ExchangeSummary | None:
        """Return where an exchange stands."""
        return self._one(ExchangeSummary, "id = ? AND kind = 'exchange'", (packed(exchange_id),))

    def spawn(self, spawn_id: str) -> SpawnSummary | None:
        """Return where a spawn stands."""
        return self._one(SpawnSummary, "id = ? AND kind = 'spawn'", (packed(spawn_id),))

    def delivery(self, delivery_id: str) -> DeliverySummary | None:
        """Return where a delivery stands."""
        return self._one(DeliverySummary, "id = ? AND kind = 'delivery'", (packed(delivery_id),))

    def exchanges_at(self, where: Position, limit: int) -> list[ExchangeSummary]:
        """Return exchanges of a part of the log, newest first."""
        return self._select(ExchangeSummary, *_at("exchange", where, limit))

    def spawns_at(self, where: Position, limit: int) -> list[SpawnSummary]:
        """Return spawns of a part of the log, newest first."""
        return self._select(SpawnSummary, *_at("spawn", where, limit))

    def spawns_of(self, requester: str) -> list[SpawnSummary]:
        """Return all spawns of a session, oldest first."""
        return self._select(
            SpawnSummary, "session = ? AND kind = 'spawn' ORDER BY accepted", (hashed(requester),)
        )

    def spawn_of_child(self, child: str) -> SpawnSummary | None:
        """Return the spawn a child session came from."""
        return self._one(SpawnSummary, "child = ? ORDER BY accepted DESC LIMIT 1", (hashed(child),))

    def deliveries_of(self, owner: str) -> list[DeliverySummary]:
        """Return the deliveries an exchange or spawn (by stream) waits for, oldest first."""
        return self._select(DeliverySummary, "owner = ? ORDER BY accepted", (hashed(owner),))

    def deliveries_of_run(self, run_id: str) -> list[DeliverySummary]:
        """Return the deliveries of a run's reply, oldest first."""
        return self._select(
            DeliverySummary, "run = ? AND kind = 'delivery' ORDER BY accepted", (hashed(run_id),)
        )

    def deliveries_of_session(self, session_key: str) -> list[DeliverySummary]:
        """Return the deliveries in the name of a session, oldest first."""
        return self._select(
            DeliverySummary, "session = ? AND kind = 'delivery' ORDER BY accepted", (hashed(session_key),)
        )

    def deliveries_not_done(self, *, is_open: bool, limit: int) -> list[DeliverySummary]:
        """Return deliveries that are still to come, or those that have ended undelivered, the newest first."""
        condition = "is_open = 1" if is_open else _UNDELIVERED
        return self._select(
            DeliverySummary, f"kind = 'delivery' AND {condition} ORDER BY accepted DESC LIMIT ?", (limit,)
        )

    def deliveries(self, wanted: DeliveriesWanted, limit: int) -> list[DeliverySummary]:
        """Return deliveries, the newest first."""
        kinds = {
            (False, False): "1 = 1",
            (False, True): "is_open = 1",
            (True, False): _UNDELIVERED,
            (True, True): f"(is_open = 1 OR {_UNDELIVERED})",
        }
        session = None if wanted.session_key is None else hashed(wanted.session_key)
        bounds = {
            "session = ?": session,
            "channel = ?": wanted.channel,
            "accepted > ?": wanted.span.after or None,
            "accepted <= ?": wanted.span.to,
            "accepted < ?": wanted.span.before,
        }
        given = {condition: value for condition, value in bounds.items() if value is not None}
        conditions = " AND ".join(("kind = 'delivery'", kinds[wanted.failed, wanted.pending], *given))
        return self._select(
            DeliverySummary, f"{conditions} ORDER BY accepted DESC LIMIT ?", (*given.values(), limit)
        )

    def delivery_ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of deliveries that begin with a text."""
        return self._ids(_DELIVERY, beginning, limit)

    def flow_ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of exchanges and spawns that begin with a text."""
        return self._ids(_EXCHANGE, beginning, limit) + self._ids(_SPAWN, beginning, limit)

    def open_deliveries_by_channel(self) -> list[tuple[str, str, int]]:
        """Return (channel, state, number) of the deliveries without an outcome."""
        return [
            (str(channel), str(state), int(number))
            for channel, state, number in self._log.query(
                "SELECT channel, outcome, COUNT(*) "
                "FROM flows WHERE kind = 'delivery' AND is_open = 1 GROUP BY 1, 2 ORDER BY 1, 2",
                (),
            )
        ]

    def note_of(self, delivery: DeliverySummary) -> DeliveryNote | None:
        """Return where a delivery goes and why it did not; None where the log's events can't be read any more."""
        decided: DeliveryDecided | None = None
        decided_ms, error = 0, None
        for position in dict.fromkeys((delivery.accepted, delivery.position)):
            for recorded in self._log.all(after=position - 1, to=position):
                match recorded.event:
                    case DeliveryDecided() as event:
                        decided, decided_ms = event, recorded.time
                    case DeliveryFailed() as event:
                        error = event.error
                    case DeliveryDenied() as event:
                        error = event.rule
                    case _:
                        pass
        return None if decided is None else DeliveryNote(decided.route, error, decided.text, decided_ms)

    def flow_of_run(self, run_id: str) -> str | None:
        """Return the stream of the exchange or spawn that a run belongs to."""
        rows = self._log.query(
            "SELECT kind, id FROM flow_runs JOIN flows ON accepted = flow WHERE flow_runs.run_id = ?",
            (packed(run_id),),
        )
        return next((f"{kind}:{unpacked(name)}" for kind, name in rows), None)

    def exchange_of_run(self, run_id: str) -> str | None:
        """Return the id of the exchange that a run belongs to: its first, a turn or the announce."""
        stream = self.flow_of_run(run_id)
        kind, _, name = (stream or "").partition(":")
        return name if kind == _EXCHANGE else None

    def running_children(self, requester: str) -> int:
        """Return how many sub-agents of a session have not ended their task (SPAWN-3)."""
        rows = self._log.query(
            "SELECT COUNT(*) FROM flows WHERE session = ? AND kind = 'spawn' AND working = 1",
            (hashed(requester),),
        )
        return int(rows[0][0])

    def pending_archives(self) -> list[SpawnSummary]:
        """Return the spawns whose child is to be archived at a known time and is not yet, soonest first (SPAWN-11)."""
        return self._select(SpawnSummary, "archive_due IS NOT NULL ORDER BY archive_due, accepted", ())

    def spawns_with_files(self) -> list[SpawnSummary]:
        """Return the spawns whose announce is final and whose files are still there, as far as is known (ATT-5)."""
        return self._select(SpawnSummary, "has_files = 1 AND is_open = 0 ORDER BY accepted", ())

    def _ids(self, kind: str, beginning: str, limit: int) -> list[str]:
        statement = "SELECT id FROM flows WHERE id BETWEEN ? AND ? AND kind = ? ORDER BY id LIMIT ?"
        return beginning_with(self._log.query, statement, beginning, limit, kind)

    def _open(self, kind: str) -> list[str]:
        rows = self._log.query(
            "SELECT id FROM flows WHERE kind = ? AND is_open = 1 ORDER BY accepted", (kind,)
        )
        return [f"{kind}:{unpacked(name)}" for (name,) in rows]

    def _one(self, kind: type[T], condition: str, parameters: Sequence[SqlValue]) -> T | None:
        return next(iter(self._select(kind, condition, parameters)), None)

    def _select(self, kind: type[T], condition: str, parameters: Sequence[SqlValue]) -> list[T]:
        rows = self._log.query(f"SELECT {_COLUMNS} FROM flows WHERE {condition}", parameters)  # noqa: S608 - our own words
        return [row for row in map(_restored, rows) if isinstance(row, kind)]


def _at(kind: str, where: Position, limit: int) -> tuple[str, tuple[SqlValue, ...]]:
    """Return the condition that finds flows in a part of the log: a session asked, or a run of the flow was its."""
    condition = f"kind = ? AND {_ASKED} AND accepted > ? AND accepted <= ?"
    parameters: tuple[SqlValue, ...] = (kind, where.after, where.to)
    if where.is_open:
        condition += " AND is_open = 1"
    if where.session_key is not None:
        condition += (
            " AND (session = ? OR child = ? OR accepted IN (SELECT flow_runs.flow FROM run_outcomes "
            "JOIN flow_runs ON flow_runs.run_id = run_outcomes.run_id WHERE run_outcomes.session = ?))"
        )
        parameters += (hashed(where.session_key),) * 3
    return f"{condition} ORDER BY accepted DESC LIMIT ?", (*parameters, limit)


def _restored(row: Row) -> Summary:
    kind, name, accepted, position, state = row
    restored: Summary = _STORED[kind].restored(
        state, accepted=accepted, position=position, **{f"{kind}_id": unpacked(name)}
    )
    return restored


def _store(sql: Sql, kind: str, name: str, row: Summary, before: Summary | None) -> None:
    searched = _searched(row)
    state = _STORED[kind].whole(row)
    if before is not None and _searched(before) == searched:
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
    match row:
        case ExchangeSummary():
            session, child, owner, run, channel = row.requester, None, None, None, None
        case SpawnSummary():
            session, child, owner, run, channel = row.requester, row.child, None, None, None
        case DeliverySummary():
            session, child, owner, run = row.session_key, None, row.owner, row.run_id
            channel = row.channel
    numbers = (None if one is None else hashed(one) for one in (session, child, owner, run))
    sql.execute(
        "INSERT INTO flows (position, state, is_open, outcome, working, archive_due, has_files, accepted, kind, id, "
        "channel, session, child, owner, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*changing, row.accepted, kind, packed(name), channel, *numbers),
    )


def _searched(row: Summary) -> tuple[SqlValue, ...]:
    """Return what of a row can change and is searched by: is_open, outcome, working, archive_due, has_files."""
    match row:
        case ExchangeSummary():
            return (int(row.is_open), None, 0, None, 0)
        case SpawnSummary():
            working = row.status is None and row.is_open
            return (int(row.is_open), None, int(working), row.archive_due_ms, int(row.has_files))
        case DeliverySummary():
            return (int(row.is_open), row.state, 0, None, 0)

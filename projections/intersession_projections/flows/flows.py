"""The view of exchanges, spawns and deliveries: where each stands, and which children wait to be archived."""

from collections.abc import Sequence
from typing import Final, TypeVar

from intersession_events.facts import (
    AnnounceRequested,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryFailed,
    ExchangeAccepted,
    ResultHanded,
    SpawnAccepted,
    TurnRequested,
)
from intersession_events.log import Log, Recorded, Sql, SqlValue
from intersession_projections.columns import from_text, to_text
from intersession_projections.flows.rows import (
    DeliveriesWanted,
    DeliveryNote,
    DeliverySummary,
    ExchangeSummary,
    Position,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_delivery,
    evolve_exchange,
    evolve_spawn,
)

T = TypeVar("T")

_EXCHANGE: Final = "exchange:"
_SPAWN: Final = "spawn:"
_DELIVERY: Final = "delivery:"


class OpenFlowsView:
    """Keeps a row per exchange, spawn and delivery, and which flow each run belongs to."""

    name = "open_flows"
    shape = 2

    def create(self, sql: Sql) -> None:
        """Create the tables."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS flows (stream TEXT PRIMARY KEY, kind TEXT NOT NULL, is_open INTEGER NOT NULL, "
            "accepted BIGINT NOT NULL, session_key TEXT, child TEXT, owner TEXT, run_id TEXT, working INTEGER NOT NULL, "
            "archive_due BIGINT, has_files INTEGER NOT NULL, state TEXT NOT NULL)"
        )
        sql.execute("CREATE INDEX IF NOT EXISTS flows_open ON flows (kind, is_open, accepted)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_accepted ON flows (kind, accepted)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_session ON flows (session_key, kind)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_child ON flows (child)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_owner ON flows (owner)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_run ON flows (run_id)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_has_files ON flows (has_files, accepted)")
        sql.execute("CREATE INDEX IF NOT EXISTS flows_archive_due ON flows (archive_due)")
        sql.execute("CREATE TABLE IF NOT EXISTS flow_runs (run_id TEXT PRIMARY KEY, stream TEXT NOT NULL)")

    def drop(self, sql: Sql) -> None:
        """Drop the tables."""
        for table in ("flows", "flow_runs"):
            sql.execute(f"DROP TABLE IF EXISTS {table}")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in."""
        for recorded in events:
            _take(sql, recorded)


def _take(sql: Sql, recorded: Recorded) -> None:
    stream = recorded.stream
    if not stream.startswith((_EXCHANGE, _SPAWN, _DELIVERY)):
        return
    after = _evolved(sql, recorded)
    if after is not None:
        _store(sql, stream, after)
    match recorded.event:
        case (
            ExchangeAccepted(run_id=run_id)
            | TurnRequested(run_id=run_id)
            | AnnounceRequested(run_id=run_id)
            | SpawnAccepted(run_id=run_id)
            | ResultHanded(run_id=run_id)
        ):
            sql.execute(
                "INSERT INTO flow_runs (run_id, stream) VALUES (?, ?) ON CONFLICT (run_id) DO NOTHING",
                (run_id, stream),
            )
        case _:
            pass


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
        found = self._select(DeliverySummary, "kind = 'delivery' AND is_open = 1 ORDER BY accepted", ())
        return [delivery for delivery in found if delivery.channel == channel]

    def exchange(self, exchange_id: str) -> ExchangeSummary | None:
        """Return where an exchange stands."""
        found = self._select(ExchangeSummary, "stream = ?", (f"{_EXCHANGE}{exchange_id}",))
        return found[0] if found else None

    def spawn(self, spawn_id: str) -> SpawnSummary | None:
        """Return where a spawn stands."""
        found = self._select(SpawnSummary, "stream = ?", (f"{_SPAWN}{spawn_id}",))
        return found[0] if found else None

    def delivery(self, delivery_id: str) -> DeliverySummary | None:
        """Return where a delivery stands."""
        found = self._select(DeliverySummary, "stream = ?", (f"{_DELIVERY}{delivery_id}",))
        return found[0] if found else None

    def exchanges(self, limit: int = 50) -> list[ExchangeSummary]:
        """Return the exchanges accepted last, newest first."""
        return self._select(ExchangeSummary, "kind = 'exchange' ORDER BY accepted DESC LIMIT ?", (limit,))

    def spawns(self, limit: int = 50) -> list[SpawnSummary]:
        """Return the spawns accepted last, newest first."""
        return self._select(SpawnSummary, "kind = 'spawn' ORDER BY accepted DESC LIMIT ?", (limit,))

    def exchanges_at(self, where: Position, limit: int) -> list[ExchangeSummary]:
        """Return exchanges of a part of the log, newest first."""
        return self._select(ExchangeSummary, *_at("exchange", where, limit))

    def spawns_at(self, where: Position, limit: int) -> list[SpawnSummary]:
        """Return spawns of a part of the log, newest first."""
        return self._select(SpawnSummary, *_at("spawn", where, limit))

    def spawns_of(self, requester: str) -> list[SpawnSummary]:
        """Return all spawns of a session, oldest first."""
        return self._select(
            SpawnSummary, "session_key = ? AND kind = 'spawn' ORDER BY accepted", (requester,)
        )

    def spawn_of_child(self, child: str) -> SpawnSummary | None:
        """Return the spawn a child session came from."""
        found = self._select(SpawnSummary, "child = ? ORDER BY accepted DESC LIMIT 1", (child,))
        return found[0] if found else None

    def deliveries_of(self, owner: str) -> list[DeliverySummary]:
        """Return the deliveries an exchange or spawn (by stream) waits for, oldest first."""
        return self._select(DeliverySummary, "owner = ? ORDER BY accepted", (owner,))

    def deliveries_of_run(self, run_id: str) -> list[DeliverySummary]:
        """Return the deliveries of a run's reply, oldest first."""
        return self._select(DeliverySummary, "run_id = ? AND kind = 'delivery' ORDER BY accepted", (run_id,))

    def deliveries_of_session(self, session_key: str) -> list[DeliverySummary]:
        """Return the deliveries in the name of a session, oldest first."""
        return self._select(
            DeliverySummary, "session_key = ? AND kind = 'delivery' ORDER BY accepted", (session_key,)
        )

    def deliveries_not_done(self, *, is_open: bool, limit: int) -> list[DeliverySummary]:
        """Return deliveries that are still to come, or those that have ended undelivered, the newest first.

        Those that have ended are found by looking through all of them.
        """
        if is_open:
            condition = "kind = 'delivery' AND is_open = 1 ORDER BY accepted DESC LIMIT ?"
        else:
            condition = (
                "kind = 'delivery' AND is_open = 0 AND json_extract(state, '$.state') IN ('failed', 'unknown', 'denied') "
                "ORDER BY accepted DESC LIMIT ?"
            )
        return self._select(DeliverySummary, condition, (limit,))

    def deliveries(self, wanted: DeliveriesWanted, limit: int) -> list[DeliverySummary]:
        """Return deliveries, the newest first; of what has ended, the state and the channel are looked up row by row."""
        state, channel = "json_extract(state, '$.state')", "json_extract(state, '$.channel')"
        kinds = {
            (False, False): "1 = 1",
            (False, True): "is_open = 1",
            (True, False): f"is_open = 0 AND {state} IN ('failed', 'unknown', 'denied')",
            (True, True): f"(is_open = 1 OR {state} IN ('failed', 'unknown', 'denied'))",
        }
        bounds = {
            "session_key = ?": wanted.session_key,
            f"{channel} = ?": wanted.channel,
            "accepted > ?": wanted.after or None,
            "accepted <= ?": wanted.to,
            "accepted < ?": wanted.before,
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
                "SELECT json_extract(state, '$.channel'), COALESCE(json_extract(state, '$.state'), 'decided'), COUNT(*) "
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
        rows = self._log.query("SELECT stream FROM flow_runs WHERE run_id = ?", (run_id,))
        return rows[0][0] if rows else None

    def exchange_of_run(self, run_id: str) -> str | None:
        """Return the id of the exchange that a run belongs to: its first, a turn or the announce."""
        stream = self.flow_of_run(run_id)
        return stream.removeprefix(_EXCHANGE) if stream is not None and stream.startswith(_EXCHANGE) else None

    def running_children(self, requester: str) -> int:
        """Return how many sub-agents of a session have not ended their task (SPAWN-3)."""
        rows = self._log.query(
            "SELECT COUNT(*) FROM flows WHERE session_key = ? AND kind = 'spawn' AND working = 1",
            (requester,),
        )
        return int(rows[0][0])

    def pending_archives(self) -> list[SpawnSummary]:
        """Return the spawns whose child is to be archived at a known time and is not yet, soonest first (SPAWN-11)."""
        return self._select(SpawnSummary, "archive_due IS NOT NULL ORDER BY archive_due, accepted", ())

    def spawns_with_files(self) -> list[SpawnSummary]:
        """Return the spawns whose announce is final and whose files are still there, as far as is known (ATT-5)."""
        return self._select(SpawnSummary, "has_files = 1 AND is_open = 0 ORDER BY accepted", ())

    def _ids(self, prefix: str, beginning: str, limit: int) -> list[str]:
        low = f"{prefix}{beginning}"
        rows = self._log.query(
            "SELECT stream FROM flows WHERE stream >= ? AND stream < ? ORDER BY stream LIMIT ?",
            (low, f"{low}\U0010ffff", limit),
        )
        return [stream.removeprefix(prefix) for (stream,) in rows]

    def _open(self, kind: str) -> list[str]:
        rows = self._log.query(
            "SELECT stream FROM flows WHERE kind = ? AND is_open = 1 ORDER BY accepted", (kind,)
        )
        return [stream for (stream,) in rows]

    def _select(self, kind: type[T], condition: str, parameters: Sequence[SqlValue]) -> list[T]:
        rows = self._log.query(f"SELECT state FROM flows WHERE {condition}", parameters)  # noqa: S608 - our own words
        return [from_text(row, kind) for (row,) in rows]


def _at(kind: str, where: Position, limit: int) -> tuple[str, tuple[SqlValue, ...]]:
    """Return the condition that finds flows in a part of the log: a session asked, or a run of the flow was its."""
    condition = "kind = ? AND accepted > ? AND accepted <= ?"
    parameters: tuple[SqlValue, ...] = (kind, where.after, where.to)
    if where.is_open:
        condition += " AND is_open = 1"
    if where.session_key is not None:
        condition += (
            " AND (session_key = ? OR child = ? OR stream IN (SELECT flow_runs.stream FROM run_outcomes "
            "JOIN flow_runs ON flow_runs.run_id = run_outcomes.run_id WHERE run_outcomes.session_key = ?))"
        )
        parameters += (where.session_key,) * 3
    return f"{condition} ORDER BY accepted DESC LIMIT ?", (*parameters, limit)


def _evolved(sql: Sql, recorded: Recorded) -> Summary | None:
    """Return where a flow stands after an event. It begins once, as what its stream says: what is searched by stays."""
    found = sql.execute("SELECT kind, state FROM flows WHERE stream = ?", (recorded.stream,)).fetchone()
    match found:
        case ("exchange", row):
            return evolve_exchange(from_text(row, ExchangeSummary), recorded)
        case ("spawn", row):
            return evolve_spawn(from_text(row, SpawnSummary), recorded)
        case ("delivery", row):
            return evolve_delivery(from_text(row, DeliverySummary), recorded)
        case _:
            return accept_flow(recorded)


def _store(sql: Sql, stream: str, row: Summary) -> None:
    searched: tuple[str, str | None, str | None, str | None, str | None, int, int | None]
    has_files = int(isinstance(row, SpawnSummary) and row.has_files)
    match row:
        case ExchangeSummary():
            searched = ("exchange", row.requester, None, None, row.run_id, 0, None)
        case SpawnSummary():
            searched = (
                "spawn",
                row.requester,
                row.child,
                None,
                row.run_id,
                int(row.status is None and row.is_open),
                row.archive_due_ms,
            )
        case DeliverySummary():
            searched = ("delivery", row.session_key, None, row.owner, row.run_id, 0, None)
    sql.execute(
        "INSERT INTO flows (stream, is_open, accepted, has_files, state, kind, session_key, child, owner, run_id, working, "
        "archive_due) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET "
        "is_open = excluded.is_open, has_files = excluded.has_files, state = excluded.state, "
        "working = excluded.working, archive_due = excluded.archive_due",
        (stream, int(row.is_open), row.accepted, has_files, to_text(row), *searched),
    )

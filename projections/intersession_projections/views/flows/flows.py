"""Queries on exchanges, spawns and deliveries: the state of each, and the children that wait to be archived."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

from intersession_events.facts import DeliveryDecided, DeliveryFact, Route
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Ask, Question, Row, SqlValue, among
from intersession_projections.basics.columns import beginning_with, hashed, packed, unpacked
from intersession_projections.views.flows.rows import (
    DeliveriesWanted,
    DeliveryNote,
    DeliverySummary,
    ExchangeSummary,
    Position,
    SpawnSummary,
    Summary,
    place_text,
)
from intersession_projections.views.flows.stored import (
    ASKED,
    COLUMNS,
    DELIVERY,
    EXCHANGE,
    HELD,
    RELEASED,
    SPAWN,
    UNDELIVERED,
    restored,
)

_OPEN_BY_CHANNEL: Final = (
    "SELECT channel, outcome, COUNT(*) "
    "FROM flows WHERE kind = 'delivery' AND is_open = 1 GROUP BY 1, 2 ORDER BY 1, 2"
)

T = TypeVar("T", ExchangeSummary, SpawnSummary, DeliverySummary)


class Flows:
    """Queries on exchanges, spawns and deliveries. Streams come in the order in which they were accepted."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def open_exchanges(self) -> list[str]:
        """Return the streams of the exchanges that are not closed."""
        return self._open("exchange")

    def held_exchanges(self) -> list[ExchangeSummary]:
        """Return the exchanges that have stopped and wait for a release, in the order they were accepted (LIVE-1)."""
        (found,) = self._log.answers(self.ask_stopped(HELD))
        return found

    def released_exchanges(self) -> list[ExchangeSummary]:
        """Return the released exchanges that have not gone on yet, in the order they were accepted."""
        (found,) = self._log.answers(self.ask_stopped(RELEASED))
        return found

    def ask_stopped(self, outcome: str = HELD) -> Ask[list[ExchangeSummary]]:
        """Ask for the exchanges that have stopped, in the order they were accepted."""
        condition = "kind = 'exchange' AND is_open = 1 AND outcome = ? ORDER BY accepted"
        return Ask(
            [(f"SELECT {COLUMNS} FROM flows WHERE {condition}", (outcome,))],  # noqa: S608 - our own words
            lambda rows: [row for row in map(restored, rows[0]) if isinstance(row, ExchangeSummary)],
        )

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
        """Return the state of an exchange."""
        return self._one(ExchangeSummary, "id = ? AND kind = 'exchange'", (packed(exchange_id),))

    def spawn(self, spawn_id: str) -> SpawnSummary | None:
        """Return the state of a spawn."""
        return self._one(SpawnSummary, "id = ? AND kind = 'spawn'", (packed(spawn_id),))

    def one(self, kind: str, flow_id: str) -> Summary | None:
        """Return the state of an exchange, a spawn or a delivery."""
        return next(iter(self.many({kind: [flow_id]}).values()), None)

    def many(self, ids: Mapping[str, Iterable[str]]) -> dict[str, Summary]:
        """Return the state of exchanges, spawns and deliveries by their streams; `ids` are those of each kind."""
        (found,) = self._log.answers(self.ask_many(ids))
        return found

    def ask_many(self, ids: Mapping[str, Iterable[str]]) -> Ask[dict[str, Summary]]:
        """Ask the same."""
        wanted = {f"{kind}:{one}": one for kind, some in ids.items() for one in some}
        return Ask(
            among(f"SELECT {COLUMNS} FROM flows WHERE id IN ({{}})", map(packed, wanted.values())),  # noqa: S608 - our own words
            lambda rows: {
                flow.stream: flow
                for flow in map(restored, chain.from_iterable(rows))
                if flow.stream in wanted
            },
        )

    def deliveries_of_all(self, owners: Iterable[str], runs: Iterable[str]) -> list[DeliverySummary]:
        """Return the deliveries that exchanges and spawns (by stream) wait for, and those of the replies of runs, oldest first."""
        (found,) = self._log.answers(self.ask_deliveries_of_all(owners, runs))
        return found

    def ask_deliveries_of_all(self, owners: Iterable[str], runs: Iterable[str]) -> Ask[list[DeliverySummary]]:
        """Ask for the same."""
        return Ask(
            [
                *among(f"SELECT {COLUMNS} FROM flows WHERE owner IN ({{}})", map(hashed, owners)),  # noqa: S608 - our own words
                *among(
                    f"SELECT {COLUMNS} FROM flows WHERE run IN ({{}}) AND kind = 'delivery'",  # noqa: S608 - the same
                    map(hashed, runs),
                ),
            ],
            _deliveries,
        )

    def delivery(self, delivery_id: str) -> DeliverySummary | None:
        """Return the state of a delivery."""
        return self._one(DeliverySummary, "id = ? AND kind = 'delivery'", (packed(delivery_id),))

    def ask_at(self, kind: str, where: Iterable[Position], limit: int) -> Ask[list[list[Summary]]]:
        """Ask for the exchanges (or the spawns: `kind`) of each of some parts of the log, newest first."""
        conditions = [_at(kind, one, limit) for one in where]
        return Ask(
            [
                (f"SELECT {COLUMNS} FROM flows WHERE {condition}", given)  # noqa: S608 - our own words
                for condition, given in conditions
            ],
            lambda each: [[*map(restored, rows)] for rows in each],
        )

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
        return self._one(
            SpawnSummary, "child = ? AND kind = 'spawn' ORDER BY accepted DESC LIMIT 1", (hashed(child),)
        )

    def deliveries_of(self, owner: str) -> list[DeliverySummary]:
        """Return the deliveries an exchange or spawn (by stream) waits for, oldest first."""
        return self._select(DeliverySummary, "owner = ? ORDER BY accepted", (hashed(owner),))

    def number_of(self, route: Route, delivery_id: str) -> int:
        """Return which text of its place a delivery's is, from 1, in the order in which they were decided (ANN-7)."""
        ((number,),) = self._log.query(
            "SELECT COUNT(*) FROM flows WHERE child = ? AND kind = 'delivery' AND accepted <= "
            "(SELECT accepted FROM flows WHERE id = ? AND kind = 'delivery')",
            (hashed(place_text(route)), packed(delivery_id)),
        )
        return int(number)

    def earlier_to(self, route: Route, delivery: DeliverySummary) -> DeliverySummary | None:
        """Return the first open delivery to a place that was decided before another one; None if there is none (ANN-5)."""
        return self._one(
            DeliverySummary,
            "child = ? AND kind = 'delivery' AND is_open = 1 AND accepted < ? ORDER BY accepted LIMIT 1",
            (hashed(place_text(route)), delivery.accepted),
        )

    def deliveries_of_session(self, session_key: str) -> list[DeliverySummary]:
        """Return the deliveries in the name of a session, oldest first."""
        return self._select(
            DeliverySummary, "session = ? AND kind = 'delivery' ORDER BY accepted", (hashed(session_key),)
        )

    def deliveries_not_done(self, *, is_open: bool, limit: int) -> list[DeliverySummary]:
        """Return deliveries that are still to come, or those that have ended undelivered, the newest first."""
        condition = "is_open = 1" if is_open else UNDELIVERED
        return self._select(
            DeliverySummary, f"kind = 'delivery' AND {condition} ORDER BY accepted DESC LIMIT ?", (limit,)
        )

    def failed_deliveries(self, channel: str | None) -> list[DeliverySummary]:
        """Return deliveries that were given up, to one channel if it is named, the oldest first."""
        bound, values = ("", tuple[str, ...]()) if channel is None else (" AND channel = ?", (channel,))
        return self._select(
            DeliverySummary,
            f"kind = 'delivery' AND outcome = 'failed'{bound} ORDER BY accepted",
            values,
        )

    def deliveries(self, wanted: DeliveriesWanted, limit: int) -> list[DeliverySummary]:
        """Return deliveries, the newest first."""
        kinds = {
            (False, False): "1 = 1",
            (False, True): "is_open = 1",
            (True, False): UNDELIVERED,
            (True, True): f"(is_open = 1 OR {UNDELIVERED})",
        }
        session = None if wanted.session_key is None else hashed(wanted.session_key)
        stream = None if wanted.run is None else self._stream_of(wanted.run)
        bounds = {
            "session = ?": session,
            "channel = ?": wanted.channel,
            "owner = ?": None if stream is None else hashed(stream),
            "run = ?": hashed(wanted.run) if stream is None and wanted.run is not None else None,
            "accepted > ?": wanted.span.after or None,
            "accepted <= ?": wanted.span.to,
            "accepted < ?": wanted.span.before,
        }
        given = {condition: value for condition, value in bounds.items() if value is not None}
        conditions = " AND ".join(("kind = 'delivery'", kinds[wanted.failed, wanted.pending], *given))
        # Each statement names some of the places or positions, and gives as many rows as are wanted of all.
        select = f"SELECT {COLUMNS}, child FROM flows WHERE {{}} AND {conditions} ORDER BY accepted DESC LIMIT {limit:d}"  # noqa: S608 - our own words
        places = None if wanted.routes is None else {hashed(place_text(route)) for route in wanted.routes}
        asked: list[Question] = [(select.format("1 = 1"), [])]
        if wanted.decided_at is not None:
            asked = among(select.format("accepted IN ({})"), wanted.decided_at)
        elif places is not None:
            asked = among(select.format("child IN ({})"), places)
        found = self._log.each([(statement, (*some, *given.values())) for statement, some in asked])
        rows = [row for row in chain.from_iterable(found) if places is None or row[-1] in places]
        rows.sort(key=lambda row: row[2], reverse=True)
        told = (restored(row[:-1]) for row in rows[:limit])
        return [row for row in told if isinstance(row, DeliverySummary)]

    def _stream_of(self, flow: str) -> str | None:
        found = self.exchange(flow) or self.spawn(flow)
        return None if found is None else found.stream

    def routes(self) -> list[Route]:
        """Return the places that texts went to, or should have, each once."""
        rows = self._log.query("SELECT MIN(accepted) FROM flows WHERE kind = 'delivery' GROUP BY child", ())
        decided = (recorded.event for recorded in self._log.at(position for (position,) in rows))
        return [event.route for event in decided if isinstance(event, DeliveryDecided)]

    def delivery_ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of deliveries that begin with a text."""
        return self._ids(DELIVERY, beginning, limit)

    def flow_ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of exchanges and spawns that begin with a text."""
        return self._ids(EXCHANGE, beginning, limit) + self._ids(SPAWN, beginning, limit)

    def ask_open_deliveries_by_channel(self) -> Ask[list[tuple[str, str, int]]]:
        """Ask for (channel, state, number) of the deliveries without an outcome."""
        return Ask(
            [
                (
                    _OPEN_BY_CHANNEL,
                    (),
                )
            ],
            lambda rows: [(str(channel), str(state), int(number)) for channel, state, number in rows[0]],
        )

    def note_of(self, delivery: DeliverySummary) -> DeliveryNote | None:
        """Return a delivery's target and why it failed; None if the log's events can't be read any more."""
        return self.notes_of([delivery])[0]

    def notes_of(self, deliveries: Sequence[DeliverySummary]) -> list[DeliveryNote | None]:
        """Return the same for several deliveries."""
        told = {
            recorded.position: recorded
            for recorded in self._log.at(
                position for one in deliveries for position in (one.accepted, one.position)
            )
        }
        return [_note(told.get(one.accepted), told.get(one.position)) for one in deliveries]

    def flow_of_run(self, run_id: str) -> str | None:
        """Return the stream of the exchange or spawn that a run belongs to."""
        return self.flows_of_runs([run_id]).get(run_id)

    def flows_of_runs(self, run_ids: Iterable[str]) -> dict[str, str]:
        """Return the same for several runs, by their ids; runs outside of flows are left out."""
        asked = among(
            "SELECT flow_runs.run_id, kind, id FROM flow_runs JOIN flows ON accepted = flow "
            "WHERE flow_runs.run_id IN ({})",
            map(packed, run_ids),
        )
        rows = chain.from_iterable(self._log.each(asked))
        return {unpacked(run_id): f"{kind}:{unpacked(name)}" for run_id, kind, name in rows}

    def exchange_of_run(self, run_id: str) -> str | None:
        """Return the id of the exchange that a run belongs to: its first, a turn or the announce."""
        stream = self.flow_of_run(run_id)
        kind, _, name = (stream or "").partition(":")
        return name if kind == EXCHANGE else None

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
        rows = self._log.query(f"SELECT {COLUMNS} FROM flows WHERE {condition}", parameters)  # noqa: S608 - our own words
        return [row for row in map(restored, rows) if isinstance(row, kind)]


def _deliveries(rows: Iterable[Iterable[Row]]) -> list[DeliverySummary]:
    found = map(restored, chain.from_iterable(rows))
    each = {row.delivery_id: row for row in found if isinstance(row, DeliverySummary)}
    return sorted(each.values(), key=lambda row: row.accepted)


def _note(first: Recorded | None, last: Recorded | None) -> DeliveryNote | None:
    """Return the data in a delivery's first and last event."""
    if first is None or not isinstance(decided := first.event, DeliveryDecided):
        return None
    error = last.event.trouble if last is not None and isinstance(last.event, DeliveryFact) else None
    ended = first.time if last is None else last.time
    return DeliveryNote(decided.route, error, decided.text, first.time, ended, decided, first.correlation)


def _at(kind: str, where: Position, limit: int) -> tuple[str, tuple[SqlValue, ...]]:
    """Return the condition that finds flows in a part of the log: a session asked, or a run of the flow was its."""
    parameters: tuple[SqlValue, ...] = (kind, where.after, where.to)
    # A session has few of all the flows there are, and few have failed: no other index is to be used (the plus says so).
    no = "" if where.session_key is None and not where.may_have_failed else "+"
    condition = f"{no}kind = ? AND {ASKED} AND {no}accepted > ? AND {no}accepted <= ?"
    if where.is_open:
        condition += f" AND {no}is_open = 1"
    if where.may_have_failed:
        these = "SELECT accepted FROM flows WHERE kind = ? AND "
        condition += f" AND accepted IN ({these}is_open = 1 UNION {these}{UNDELIVERED})"
        parameters += (kind, kind)
    if where.session_key is not None:
        condition += (
            " AND accepted IN (SELECT accepted FROM flows WHERE session = ? "
            "UNION SELECT accepted FROM flows WHERE child = ? UNION SELECT flow_runs.flow FROM run_outcomes "
            "CROSS JOIN flow_runs ON flow_runs.run_id = run_outcomes.run_id WHERE run_outcomes.session = ?)"
        )
        parameters += (hashed(where.session_key),) * 3
    return f"{condition} ORDER BY accepted DESC LIMIT ?", (*parameters, limit)

"""How exchanges, spawns, deliveries and runs stood at a position: read from their rows, or folded from their own short streams."""

from collections.abc import Iterable
from typing import Final, TypeVar

from intersession_events import facts
from intersession_events.ids import delivery_stream, exchange_stream, session_stream, spawn_stream
from intersession_events.log import Log, Recorded
from intersession_projections.columns import hashed, unpacked
from intersession_projections.flows import (
    DeliverySummary,
    ExchangeSummary,
    Flows,
    Position,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_flow,
)
from intersession_projections.places.runs_named import Flow
from intersession_projections.run_outcomes import RunOutcome, Runs, begin_run, evolve_run

S = TypeVar("S", ExchangeSummary, SpawnSummary, DeliverySummary)

_OPEN_FLOWS: Final = (
    "SELECT kind, id FROM flows WHERE accepted <= ? AND (is_open = 1 OR position > ?) ORDER BY accepted"
)
_OPEN_RUNS: Final = (
    "SELECT run_id FROM run_outcomes WHERE accepted <= ? AND (ended = 0 OR position > ?) ORDER BY accepted"
)
_RUNS: Final = "SELECT run_id FROM run_outcomes WHERE accepted <= ? ORDER BY accepted DESC LIMIT ?"
_RUNS_OF: Final = (
    "SELECT run_id FROM run_outcomes WHERE accepted <= ? AND session = ? ORDER BY accepted DESC LIMIT ?"
)


class Then:
    """A log as it was at a position. Lists are newest first; what costs is what is shown."""

    def __init__(self, log: Log, position: int) -> None:
        self._log = log
        self.position = position
        self._flows = Flows(log)
        self._runs = Runs(log)

    def exchange(self, exchange_id: str) -> ExchangeSummary | None:
        """Return where an exchange stood; None where it had not begun."""
        return self._stood(self._flows.exchange(exchange_id), exchange_stream(exchange_id))

    def spawn(self, spawn_id: str) -> SpawnSummary | None:
        """Return where a spawn stood; None where it had not begun."""
        return self._stood(self._flows.spawn(spawn_id), spawn_stream(spawn_id))

    def delivery(self, delivery_id: str) -> DeliverySummary | None:
        """Return where a delivery stood; None where it had not begun."""
        return self._stood(self._flows.delivery(delivery_id), delivery_stream(delivery_id))

    def delivery_of(self, now: DeliverySummary) -> DeliverySummary | None:
        """Return where a delivery stood that is known as it is now; None where it had not begun."""
        return self._stood(now, delivery_stream(now.delivery_id))

    def run(self, run_id: str) -> RunOutcome | None:
        """Return how far a run had got, with its words as far as it had ended; None where it had not been accepted."""
        now = self._runs.get(run_id)
        if now is None or now.accepted > self.position:
            return None
        return now if now.position <= self.position else self._folded(now)

    def flow(self, now: Flow) -> Flow | None:
        """Return how an exchange, a spawn or a run stood; None where it had not begun."""
        match now:
            case ExchangeSummary():
                return self.exchange(now.exchange_id)
            case SpawnSummary():
                return self.spawn(now.spawn_id)
            case RunOutcome():
                return self.run(now.run_id)

    def exchanges(self, limit: int, session_key: str | None = None) -> list[ExchangeSummary]:
        """Return the exchanges that were accepted last, of all or of one session."""
        rows = self._flows.exchanges_at(Position(0, self.position, session_key), limit)
        return [
            then for row in rows if (then := self._stood(row, exchange_stream(row.exchange_id))) is not None
        ]

    def spawns(self, limit: int, session_key: str | None = None) -> list[SpawnSummary]:
        """Return the spawns that were accepted last, of all or of one session."""
        rows = self._flows.spawns_at(Position(0, self.position, session_key), limit)
        return [then for row in rows if (then := self._stood(row, spawn_stream(row.spawn_id))) is not None]

    def runs(self, limit: int, session_key: str | None = None) -> list[RunOutcome]:
        """Return the runs that were accepted last, of all or of one session."""
        rows = (
            self._log.query(_RUNS, (self.position, limit))
            if session_key is None
            else self._log.query(_RUNS_OF, (self.position, hashed(session_key), limit))
        )
        return self._each(unpacked(run_id) for (run_id,) in rows)

    def runs_of(self, stream: str) -> list[RunOutcome]:
        """Return the runs that an exchange or a spawn, by its stream, had asked for."""
        asked = [
            event.run_id for recorded in self.events(stream) if isinstance(event := recorded.event, _ASKS)
        ]
        return self._each(reversed(list(dict.fromkeys(asked))))

    def deliveries_of(self, stream: str) -> list[DeliverySummary]:
        """Return the deliveries that an exchange or a spawn, by its stream, waited for."""
        rows = reversed(self._flows.deliveries_of(stream))
        return [then for row in rows if (then := self.delivery(row.delivery_id)) is not None]

    def deliveries_of_run(self, run_id: str) -> list[DeliverySummary]:
        """Return the deliveries of what a run said."""
        rows = reversed(self._flows.deliveries_of_run(run_id))
        return [then for row in rows if (then := self.delivery(row.delivery_id)) is not None]

    def open_flows(self) -> list[Summary]:
        """Return the exchanges, spawns and deliveries that were not over, in the order they were accepted."""
        rows = self._log.query(_OPEN_FLOWS, (self.position, self.position))
        find = {"exchange": self.exchange, "spawn": self.spawn, "delivery": self.delivery}
        found = (find[kind](unpacked(name)) for kind, name in rows)
        return [flow for flow in found if flow is not None and flow.is_open]

    def open_runs(self) -> list[RunOutcome]:
        """Return the runs that had not ended, in the order they were accepted."""
        rows = self._log.query(_OPEN_RUNS, (self.position, self.position))
        return [run for run in self._each(unpacked(run_id) for (run_id,) in rows) if not run.ended]

    def _each(self, run_ids: Iterable[str]) -> list[RunOutcome]:
        return [run for run_id in run_ids if (run := self.run(run_id)) is not None]

    def events(self, stream: str) -> list[Recorded]:
        """Return the events that a flow had, by its stream; flows are short."""
        return [recorded for recorded in self._log.stream(stream) if recorded.position <= self.position]

    def _stood(self, now: S | None, stream: str) -> S | None:
        if now is None or now.accepted > self.position:
            return None
        if now.position <= self.position:
            return now
        then: Summary | None = None
        for recorded in self.events(stream):
            then = accept_flow(recorded) if then is None else evolve_flow(then, recorded)
        return then if isinstance(then, type(now)) else None

    def _folded(self, now: RunOutcome) -> RunOutcome | None:
        """Fold a run of which more has happened since: from where it was queued, then from where it was taken on."""
        then: RunOutcome | None = None
        stream, taken = session_stream(now.session_key), self._runs.taken_version(now.run_id)
        found = [*self._log.stream(stream, after=now.first_version - 1, to=now.first_version)]
        if taken is not None:
            found += self._log.stream(stream, after=taken - 1, to=now.last_version)
        for recorded in found:
            if recorded.position > self.position:
                break
            match recorded.event:
                case facts.RunQueued() as event if event.run_id == now.run_id:
                    then = begin_run(recorded, event)
                case (
                    facts.RunStarted()
                    | facts.RunInterrupted()
                    | facts.RunCompleted()
                    | facts.RunFailed()
                    | facts.RunAborted()
                ) as event if event.run_id == now.run_id and then is not None:
                    then = evolve_run(then, recorded, event)
                case _:
                    pass
        return then


_ASKS: Final = (
    facts.ExchangeAccepted,
    facts.SpawnAccepted,
    facts.TurnRequested,
    facts.AnnounceRequested,
    facts.ResultHanded,
)
"""Events of a flow that name a run which it asks for."""

"""The state of exchanges, spawns, deliveries and runs at a position: read from their rows, or folded from their own short streams."""

from collections.abc import Iterable, Sequence
from itertools import chain, takewhile
from typing import Final, TypeVar

from intersession_events import facts
from intersession_events.basics.ids import session_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_events.log.sql import Ask
from intersession_projections.basics.columns import hashed, unpacked
from intersession_projections.questions.places.runs_named import Flow
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import (
    DeliverySummary,
    ExchangeSummary,
    Position,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_flow,
)
from intersession_projections.views.run_outcomes.outcome import RunOutcome, begin_run, evolve_run
from intersession_projections.views.run_outcomes.runs import Runs

S = TypeVar("S", bound=Summary)

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
    """A log as it was at a position. Lists are newest first; only shown entries cost time."""

    def __init__(self, log: Log, position: int) -> None:
        self._log = log
        self.position = position
        self._flows = Flows(log)
        self._runs = Runs(log)

    def deliveries(self, now: Iterable[DeliverySummary]) -> list[DeliverySummary]:
        """Return the state of deliveries that are given as they are now; those that had not begun are left out."""
        return self._stood(now)

    def deliveries_of_each(self, now: Iterable[Sequence[DeliverySummary]]) -> list[list[DeliverySummary]]:
        """Return the same of several lists."""
        each = [list(rows) for rows in now]
        stood = {row.stream: row for row in self._stood(row for rows in each for row in rows)}
        return [[stood[row.stream] for row in rows if row.stream in stood] for rows in each]

    def flows(self, now: Sequence[Flow]) -> list[Flow]:
        """Return the state of exchanges, spawns and runs, with the texts of ended runs; those that had not begun are left out."""
        runs = self._each(flow.run_id for flow in now if isinstance(flow, RunOutcome))
        flows = self._stood([flow for flow in now if not isinstance(flow, RunOutcome)])
        then: dict[int, Flow] = {flow.accepted: flow for flow in (*runs, *flows)}
        return [then[flow.accepted] for flow in now if flow.accepted in then]

    def exchanges(self, limit: int) -> list[ExchangeSummary]:
        """Return the latest accepted exchanges."""
        return self._stood(self._flows.exchanges_at(Position(0, self.position), limit))

    def spawns(self, limit: int) -> list[SpawnSummary]:
        """Return the latest accepted spawns."""
        return self._stood(self._flows.spawns_at(Position(0, self.position), limit))

    def runs(self, limit: int) -> list[RunOutcome]:
        """Return the latest accepted runs."""
        rows = self._log.query(_RUNS, (self.position, limit))
        return self._each(unpacked(run_id) for (run_id,) in rows)

    def of_sessions(self, keys: Sequence[str], limit: int) -> list[Flow]:
        """Return the latest runs, exchanges and spawns of each of some sessions, in any order."""
        where = [Position(0, self.position, key) for key in keys]
        runs, exchanges, spawns = self._log.answers(
            Ask(
                [(_RUNS_OF, (self.position, hashed(key), limit)) for key in keys],
                lambda each: [unpacked(run_id) for rows in each for (run_id,) in rows],
            ),
            self._flows.ask_at("exchange", where, limit),
            self._flows.ask_at("spawn", where, limit),
        )
        flows = {
            flow.accepted: flow
            for flow in chain.from_iterable([*exchanges, *spawns])
            if not isinstance(flow, DeliverySummary)
        }
        return [*self._each(runs), *self._stood(flows.values())]

    def runs_of(self, stream: str) -> list[RunOutcome]:
        """Return the runs that an exchange or a spawn, by its stream, had asked for."""
        asked = (facts.run_asked_in(recorded.event) for recorded in self.events(stream))
        run_ids = dict.fromkeys(event.run_id for event in asked if event is not None)
        return self._each(reversed(list(run_ids)))

    def deliveries_of(self, stream: str) -> list[DeliverySummary]:
        """Return the deliveries that an exchange or a spawn, by its stream, waited for."""
        return self._stood(reversed(self._flows.deliveries_of(stream)))

    def deliveries_of_runs(self, run_ids: Sequence[str]) -> list[DeliverySummary]:
        """Return the deliveries of the texts of some runs, one run after the other."""
        now = reversed(self._flows.deliveries_of_all((), run_ids))
        of_run: dict[str | None, list[DeliverySummary]] = {}
        for row in self._stood(now):
            of_run.setdefault(row.run_id, []).append(row)
        return [row for run_id in run_ids for row in of_run.get(run_id, ())]

    def open_flows(self) -> list[Summary]:
        """Return the exchanges, spawns and deliveries that were not over, in the order they were accepted."""
        rows = self._log.query(_OPEN_FLOWS, (self.position, self.position))
        ids: dict[str, list[str]] = {}
        for kind, name in rows:
            ids.setdefault(kind, []).append(unpacked(name))
        now: list[Summary] = sorted(self._flows.many(ids).values(), key=lambda flow: flow.accepted)
        return [flow for flow in self._stood(now) if flow.is_open]

    def open_runs(self) -> list[RunOutcome]:
        """Return the runs that had not ended, in the order they were accepted."""
        rows = self._log.query(_OPEN_RUNS, (self.position, self.position))
        return [run for run in self._each(unpacked(run_id) for (run_id,) in rows) if not run.ended]

    def events(self, stream: str) -> list[Recorded]:
        """Return the events of a flow, by its stream; flows are short."""
        return self.events_of([stream])[0]

    def events_of(self, streams: Sequence[str]) -> list[list[Recorded]]:
        """Return the same for several flows."""
        return [
            [recorded for recorded in events if recorded.position <= self.position]
            for events in self._log.whole(streams)
        ]

    def _stood(self, now: Iterable[S]) -> list[S]:
        """Return how flows stood that are known as they are now: those of which more has happened since are folded."""
        begun = [flow for flow in now if flow.accepted <= self.position]
        later = [flow.stream for flow in begun if flow.position > self.position]
        folded = dict(zip(later, map(_folded_flow, self.events_of(later)), strict=True))
        stood = ((flow, folded.get(flow.stream, flow)) for flow in begun)
        return [then for flow, then in stood if isinstance(then, type(flow))]

    def _each(self, run_ids: Iterable[str]) -> list[RunOutcome]:
        """Return how far runs had got: those of which more has happened since are folded."""
        asked = list(run_ids)
        now = self._runs.many_without_words(asked)
        begun = [run for run_id in asked if (run := now.get(run_id)) and run.accepted <= self.position]
        done = self._runs.with_words([run for run in begun if run.position <= self.position])
        known = {run.run_id: run for run in (*done, *self._folded(begun))}
        return [known[run.run_id] for run in begun if run.run_id in known]

    def _folded(self, now: Iterable[RunOutcome]) -> list[RunOutcome]:
        """Fold runs of which more has happened since: from where each was queued, then from where it was taken on."""
        later = [run for run in now if run.position > self.position]
        taken = self._runs.taken_versions(run.run_id for run in later)
        queued = self._log.parts(
            [
                StreamPart(session_stream(run.session_key), run.first_version - 1, run.first_version)
                for run in later
            ]
        )
        begun = {
            run.run_id: StreamPart(
                session_stream(run.session_key),
                taken[run.run_id] - 1,
                max(run.last_version, taken[run.run_id]),
            )
            for run in later
            if run.run_id in taken
        }
        at_work = dict(zip(begun, self._log.parts(list(begun.values())), strict=True))
        each = (
            (run, (*first, *at_work.get(run.run_id, ()))) for run, first in zip(later, queued, strict=True)
        )
        folded = (
            _folded_run(run.run_id, takewhile(lambda one: one.position <= self.position, events))
            for run, events in each
        )
        return [run for run in folded if run is not None]


def _folded_flow(events: Iterable[Recorded]) -> Summary | None:
    then: Summary | None = None
    for recorded in events:
        then = accept_flow(recorded) if then is None else evolve_flow(then, recorded)
    return then


def _folded_run(run_id: str, events: Iterable[Recorded]) -> RunOutcome | None:
    then: RunOutcome | None = None
    for recorded in events:
        match recorded.event:
            case facts.RunQueued() as event if event.run_id == run_id and then is None:
                then = begin_run(recorded, event)
            case facts.RunAttempt() as event if event.run_id == run_id and then is not None:
                then = evolve_run(then, recorded, event)
            case _:
                pass
    return then

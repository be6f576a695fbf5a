"""What stays frozen in a fork: what was open at its cut and is not part of the forked run (FORK-6)."""

from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.basics.ids import delivery_stream, exchange_stream, spawn_stream
from intersession_events.log.log import Log
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs

_MOST_HOPS: Final = 1000
"""The most steps that are followed up a chain of causes; guards end chains long before that."""


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The frozen work: streams of exchanges, spawns and deliveries, and ids of runs. Empty for a log that is not a fork.

    `cut` are the runs that were under way at the cut, and go on.
    """

    flows: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    cut: frozenset[str] = frozenset()

    def holds(self, one: ExchangeSummary | SpawnSummary | DeliverySummary | RunOutcome) -> bool:
        """Whether an exchange, a spawn, a delivery or a run is frozen."""
        match one:
            case RunOutcome():
                return one.run_id in self.runs
            case DeliverySummary():
                return delivery_stream(one.delivery_id) in self.flows
            case _:
                return one.stream in self.flows


def frozen_in(log: Log, at: int | None = None) -> Frozen:
    """Return what was open when a log was forked, and stays frozen; empty at a position up to the cut.

    What goes on is the flow that was forked, whatever it led to, and the runs that led to it: those wait for it.
    """
    forked = log.forked
    if forked is None or (at is not None and at <= forked.position):
        return Frozen()
    return _Sorting(log, forked).sorted()


class _Sorting:
    def __init__(self, log: Log, forked: facts.ForkedFrom) -> None:
        self._log = log
        self._cut = forked.position
        self._flow = forked.flow.rpartition(":")[2]
        self._flows = Flows(log)
        self._runs = Runs(log)
        self._above: set[str] = set()
        """What the forked flow came from: ids of runs, names of streams."""

    def sorted(self) -> Frozen:
        streams = (*self._flows.open_exchanges(), *self._flows.open_spawns())
        began = {stream: self._began(stream) for stream in streams}
        for stream, position in began.items():
            if position > self._cut or self._is_it(stream):
                self._above.update(self._way_up(stream))
        for stream in (exchange_stream(self._flow), spawn_stream(self._flow)):
            self._above.update(self._way_up(stream))
        frozen = {
            stream
            for stream, position in began.items()
            if position <= self._cut and not self._goes_on(stream)
        }
        open_runs = [run for run in self._runs.open_runs() if run.accepted <= self._cut]
        runs = {run.run_id for run in open_runs if not self._run_goes_on(run)}
        cut = {run.run_id for run in open_runs if run.status == "running"} - runs
        for stream in self._flows.open_deliveries():
            delivery = self._flows.delivery(stream.rpartition(":")[2])
            if delivery is not None and delivery.accepted <= self._cut and not self._is_sent(delivery):
                frozen.add(stream)
        return Frozen(flows=frozenset(frozen), runs=frozenset(runs), cut=frozenset(cut))

    def _is_it(self, name: str) -> bool:
        return name.rpartition(":")[2] == self._flow

    def _goes_on(self, stream: str) -> bool:
        return (
            self._is_it(stream)
            or stream in self._above
            or any(self._is_it(name) for name in self._way_up(stream))
        )

    def _run_goes_on(self, run: RunOutcome) -> bool:
        if run.run_id in self._above or run.run_id == self._flow:
            return True
        stream = run.flow
        return stream is not None and self._goes_on(stream)

    def _is_sent(self, delivery: DeliverySummary) -> bool:
        if delivery.owner is not None:
            return self._goes_on(delivery.owner)
        run = None if delivery.run_id is None else self._runs.get(delivery.run_id)
        return run is not None and self._run_goes_on(run)

    def _began(self, stream: str) -> int:
        return next((recorded.position for recorded in self._log.stream(stream, to=1)), 0)

    def _way_up(self, stream: str) -> list[str]:
        """Return the runs and flows that led to a flow, the nearest first."""
        way: list[str] = []
        at: str | None = stream
        for _ in range(_MOST_HOPS):
            first = next(iter(self._log.stream(at, to=1)), None) if at is not None else None
            asked = first.event if first is not None else None
            if not isinstance(asked, facts.FlowAccepted):
                break
            if asked.requester_run_id is None:
                break
            way.append(asked.requester_run_id)
            run = self._runs.get(asked.requester_run_id)
            at = None if run is None else run.flow
            if at is not None:
                way.append(at)
        return way

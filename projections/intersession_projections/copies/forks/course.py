"""The order in which a causal chain went on after a cut: a what-if keeps concurrent steps in that order (FORK-7)."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events import facts
from intersession_events.basics.ids import session_stream
from intersession_events.facts import ready
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_projections.copies.forks.frozen_work import Frozen
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs

_AT: Final = "SELECT rowid FROM stored_events WHERE originator_id=? AND originator_version=?"
_BEHIND: Final = (
    "SELECT rowid FROM stored_events WHERE originator_id=? AND rowid>? ORDER BY originator_version LIMIT 1"
)


class Passed(NamedTuple):
    """How many runs of a chain were queued, started and ended after a cut."""

    asked: int
    begun: int
    ended: int

    def has_come_to(self, other: "Passed") -> bool:
        """Whether at least as many of each have passed."""
        return all(now >= then for now, then in zip(self, other, strict=True))


class CourseTurn(NamedTuple):
    """A step of a chain: the number of runs that its decision knew of, and its position.

    What is decided side by side can be recorded in another order.
    """

    knew: int
    position: int


class Course:
    """The runs of a chain after a position of the log, except those that do not go on in a fork cut there.

    The end of a run has its turn where its flow decided on it: that decision knew of whatever came before.
    """

    def __init__(self, log: Log, root: str, cut: int, frozen: Frozen) -> None:
        runs = Runs(log).whole_chain(root)
        flows = {run.run_id: stream for run in runs if (stream := run.flow) is not None}
        streams = sorted(set(flows.values()))
        firsts = log.parts([StreamPart(stream, 0, 1) for stream in streams]) if streams else ()
        begun_by = {stream: next(iter(first), None) for stream, first in zip(streams, firsts, strict=True)}
        stays = _staying(runs, flows, begun_by, frozen)
        self._root = root
        self._cut = cut
        self._accepted = [run.accepted for run in runs]
        self._apart = [run.accepted for run in runs if run.accepted <= cut or run.run_id in stays]
        """The runs that were asked for before the cut, or are not in the fork."""
        goes_on = [run for run in runs if run.run_id not in stays]
        self._ends = self._turns_of_ends(log, [run for run in goes_on if run.position > cut], flows)
        self._calls = {
            run.run_id: self._turn(run.accepted, begun_by.get(flows.get(run.run_id, ""))) for run in goes_on
        }
        taken = _taken(log, runs)
        self._begun = [
            (taken[run.run_id], self._ends.get(before.run_id) if before is not None else None)
            for run, before in _behind(goes_on, taken)
            if taken[run.run_id] > cut
        ]
        """Where runs began, and the turn of what kept their session busy until then."""
        self._open = {
            run.run_id: taken.get(run.run_id, cut + 1) <= cut
            for run in goes_on
            if run.accepted <= cut and not (run.ended and run.position <= cut)
        }
        """The runs that had not ended at the cut, and whether they had begun."""

    def of_end(self, run_id: str) -> CourseTurn | None:
        """Return the end of a run; None for a run that has not ended there, or does not go on."""
        return self._ends.get(run_id)

    def of_call(self, run_id: str | None, told_at: int) -> CourseTurn | None:
        """Return the step at which a run was sent or spawned; without a run, the step of the refusal told at a position.

        None for a run that is not of the chain, or does not go on.
        """
        return self._turn(told_at, None) if run_id is None else self._calls.get(run_id)

    def before(self, turn: CourseTurn) -> Passed:
        """Return the counts before a step."""
        begun = sum(1 for at, busy in self._begun if at < turn.position and (busy is None or busy < turn))
        return Passed(
            turn.knew - bisect_left(self._apart, turn.position),
            begun,
            sum(1 for ended in self._ends.values() if ended < turn),
        )

    def now(self, fork: Log) -> Passed:
        """Return the counts in a fork, now."""
        runs = Runs(fork)
        there = runs.statuses_of_chain(self._root, self._cut)
        waiting = there.get("queued", 0)
        asked, running = sum(there.values()), there.get("running", 0)
        begun, ended = asked - waiting, asked - waiting - running
        for run in runs.many_without_words(self._open).values():
            begun += run.status != "queued" and not self._open[run.run_id]
            ended += run.ended
        return Passed(asked, begun, ended)

    def _turns_of_ends(
        self, log: Log, runs: list[RunOutcome], flows: dict[str, str]
    ) -> dict[str, CourseTurn]:
        decided = _decided(log, [run for run in runs if run.ended], flows)
        records = {one.position: one for one in log.at(decided.values())}
        return {
            run_id: self._turn(at, records.get(at) if run_id in flows else None)
            for run_id, at in decided.items()
        }

    def _turn(self, position: int, decision: Recorded | None) -> CourseTurn:
        knew = None if decision is None else _spent_in(decision)
        return CourseTurn(bisect_left(self._accepted, position) if knew is None else knew, position)


class _Spent(msgspec.Struct):
    runs: int = 0


class _Knew(msgspec.Struct):
    spent: _Spent | None = None


@ready
class _Decision(msgspec.Struct):
    knew: _Knew | None = None


def _spent_in(decision: Recorded) -> int | None:
    """Return how many runs a decision knew of, if it looked at that."""
    if not decision.decision:
        return None
    knew = msgspec.json.decode(decision.decision, type=_Decision).knew
    return None if knew is None or knew.spent is None else knew.spent.runs


def _behind(runs: list[RunOutcome], taken: dict[str, int]) -> Iterator[tuple[RunOutcome, RunOutcome | None]]:
    """Yield the runs that were begun, each with the one before it in its session."""
    last: dict[str, RunOutcome] = {}
    for run in sorted((run for run in runs if run.run_id in taken), key=lambda one: taken[one.run_id]):
        yield run, last.get(run.session_key)
        last[run.session_key] = run


def _taken(log: Log, runs: Iterable[RunOutcome]) -> dict[str, int]:
    """Return where runs were begun, or given up."""
    sessions = {run.run_id: session_stream(run.session_key) for run in runs}
    versions = Runs(log).taken_versions(sessions)
    rows = log.each([(_AT, (sessions[run_id], version)) for run_id, version in versions.items()])
    return {run_id: position for run_id, found in zip(versions, rows, strict=True) for (position,) in found}


def _decided(log: Log, runs: Sequence[RunOutcome], flows: Mapping[str, str]) -> dict[str, int]:
    """Return where the flow of each run decided on its end; for a run outside of flows, where the run ended."""
    found = {run.run_id: run.position for run in runs}
    of_flows = [run for run in runs if run.run_id in flows]
    rows = log.each([(_BEHIND, (flows[run.run_id], run.position)) for run in of_flows])
    return found | {
        run.run_id: position for run, behind in zip(of_flows, rows, strict=True) for (position,) in behind
    }


def _staying(
    runs: Iterable[RunOutcome],
    flows: Mapping[str, str],
    begun_by: Mapping[str, Recorded | None],
    frozen: Frozen,
) -> set[str]:
    """Return the runs that do not go on: frozen ones, and their effects."""
    stays, still = set(frozen.runs), set(frozen.flows)
    for run in runs:  # in the order in which they were asked for: what led to one stands before it
        stream = flows.get(run.run_id)
        first = None if stream is None else begun_by.get(stream)
        asked = None if first is None else first.event
        if stream is None or not isinstance(asked, facts.FlowAccepted):
            continue
        if asked.requester_run_id in stays:
            still.add(stream)
        if stream in still:
            stays.add(run.run_id)
    return stays

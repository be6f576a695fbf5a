"""Forks the runs of a log wherever they can be cut, and holds each fork against the log that it was made of."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from intersession import SessionSystem, echo
from intersession_actors.hindsight.debugger.diff import TurnAnswer
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_actors.hindsight.forking.cutting import consistent
from intersession_actors.hindsight.forking.imports import is_imported, under_way
from intersession_actors.hindsight.forking.making import MadeFork, Wanted
from intersession_actors.hindsight.forking.playing import Cast, Forker, Playing
from intersession_events.basics.machine import random_id
from intersession_events.copies.forks.files import remove_fork
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.forks.closure import closed_streams, roots_of
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import Position
from intersession_projections.views.run_outcomes.runs import Runs
from support.closed import Known, cut_short, not_in
from support.running import WAIT

_RECORDED = Playing({"*": "recorded"})
_LIVE = Playing({"*": echo()})
_PATIENCE = 10 * WAIT
"""A fork that stands still says so at once; one that is waited for so long goes on, on a machine that is busy for hours."""


class Cut(NamedTuple):
    """A run, and a position behind which it can be cut."""

    flow: Flow
    at: int

    @property
    def is_imported(self) -> bool:
        """Whether an import has inferred it: its agents were given nobody knows what."""
        return is_imported(self.flow)


def flows_of(log: PortableLog) -> Iterator[Flow]:
    """Yield all exchanges and spawns of a log, and the runs that are of none."""
    whole = Position(0, log.head())
    yield from Flows(log).exchanges_at(whole, 10_000)
    yield from Flows(log).spawns_at(whole, 10_000)
    yield from Runs(log).alone(whole, 10_000)


class Everywhere:
    """The forks of one log, which a system has open. With what was recorded, each has to come out as its source did."""

    def __init__(self, system: SessionSystem) -> None:
        log = system.log
        assert isinstance(log, PortableLog)
        self._log = log
        self._debug = system.debug
        self._forker = Forker(log, system.service.reader, config=None, new_id=random_id)
        # The system may still be archiving the child of an old log: what a run has come to is among the events that follow it.
        self.flows = list(flows_of(log))
        self._events = list(log.all())

    def cuts(self, flow: Flow) -> list[Cut]:
        """Return every place at which a run can be cut: of the positions inside of one append only one."""
        found: dict[tuple[int, bool], Cut] = {}
        for at in range(flow.accepted, flow.position + 1):
            cut = Cut(flow, at)
            step = under_way(self._log, flow, at) if cut.is_imported else None
            if step is not None:
                answered = step.ended is not None and step.ended <= at
                found.setdefault((step.cut, answered), cut)
                continue
            there = at if cut.is_imported else consistent(self._log, at)
            if there >= flow.accepted:
                found.setdefault((there, False), cut)
        return list(found.values())

    def check_closed(self, flow: Flow, at: int) -> None:
        """Nothing that goes along at a position, whatever it is the middle of, refers to what does not."""
        source = Known([one for one in self._events if one.position <= at])
        roots = roots_of(self._log, flow)
        streams = closed_streams(self._log, roots, at)
        known = Known([one for one in source.events if one.stream in streams])
        assert list(not_in(known, source)) == [], (flow, at)
        assert set(roots) & set(source.names.values()) <= set(known.names.values()), (flow, at)

    def check(self, cut: Cut, *, live: bool = False) -> None:
        """Fork there: what goes along is as it was, the fork carries on, ends as its source did, and verifies.

        With `live` agents it ends, and nobody knows how. So does what was imported: no log has what its agents were given.
        """
        live = live or cut.is_imported
        playing = _LIVE if live else _RECORDED
        made = self._forker.make(Wanted(flow_id(cut.flow), cut.at), playing.agents)
        try:
            opened = self._forker.open(made, playing, _opened)
            with _closing_at_once(opened.system) as fork:
                before = [one for one in self._events if one.position <= made.position]
                assert list(cut_short(list(fork.log.all(to=made.position)), before)) == [], cut
                carried = carry_on(fork.service, made.run, stopping=opened.stopping, timeout=_PATIENCE)
                has_no_task = cut.is_imported and under_way(self._log, cut.flow, cut.at) is None
                state = "imported" if has_no_task and carried.outcome.end is None else "ended"
                assert (carried.state, carried.divergence) == (state, None), (cut, carried)
                assert fork.log.set_aside() == [], cut
                assert isinstance(fork.log, PortableLog)
                report = verify_log(fork.log)
                assert report.ok, (cut, report.findings[:3])
                if not live or (cut.is_imported and state == "ended" and made.position >= cut.flow.position):
                    self._check_same(cut, made)
        finally:
            remove_fork(Path(made.path))

    def _check_same(self, cut: Cut, made: MadeFork) -> None:
        diff = self._debug.diff(flow_id(cut.flow), made.id)
        different = [row for row in diff["turns"] if row["kind"] != "same" and not _said_stats(row)]
        assert different == [], (cut, made.position, different)


@contextmanager
def _closing_at_once(system: SessionSystem) -> Generator[SessionSystem]:
    """Give an agent that answers nothing more no time to do so."""
    try:
        yield system
    finally:
        system.close(grace=0)


def _said_stats(row: TurnAnswer) -> bool:
    """Whether a text differs by what a child has used alone: 0.1.0 said it in the text of its announce."""
    differs = row.get("differs", [])
    return bool(differs) and all(
        one["field"] == "text" and str(one["a"]).startswith(f"{one['b']}\nStats: ") for one in differs
    )


def _opened(made: MadeFork, cast: Cast) -> SessionSystem:
    return SessionSystem(made.path, agents=cast.agents, config=cast.config, stopping=cast.stopping)

"""Where a log can be cut: no step is in a fork by half, in logs of today's form and of 0.1.0 (FORK-4)."""

from pathlib import Path

import pytest

from intersession_actors.hindsight.forking.cutting import consistent
from intersession_events import facts
from intersession_events.log.recorded import parts_in
from intersession_events.stores.opened import open_log
from support.golden_logs import golden_logs
from support.random_runs import random_runs


@pytest.mark.clause("FORK-4")
def test_a_step_that_asks_for_a_run_is_in_the_fork_wherever_its_message_is(tmp_path: Path) -> None:
    """It stands before the start of the run, so a fork that is cut at the start does not ask for the run again."""
    path = random_runs(tmp_path / "log.db", 6_000, asked=3, at_once=False)
    with open_log(str(path), read_only=True) as log:
        at = {
            (type(one.event), one.event.run_id): one.position
            for one in parts_in(log.all())
            if isinstance(one.event, facts.RunQueued | facts.RunStarted)
        }
        asked = {
            one.event.run_id: one.position
            for one in parts_in(log.all())
            if isinstance(one.event, facts.TurnRequested | facts.AnnounceRequested | facts.ResultHanded)
        }
        cuts = {consistent(log, at) for at in range(1, log.head() + 1)}
    assert asked
    for run, step in asked.items():
        queued, begun = at[facts.RunQueued, run], at[facts.RunStarted, run]
        assert queued < step < begun
        assert [cut for cut in cuts if queued <= cut < step] == []


@pytest.mark.clause("FORK-4")
def test_a_run_that_a_step_asks_for_is_on_the_same_side_of_every_cut_as_the_step(tmp_path: Path) -> None:
    """0.1.0 wrote what a step asks of a session before the step itself."""
    (golden,) = [one for one in golden_logs() if one.name == "demo"]
    with open_log(str(golden.unpack(tmp_path)), read_only=True) as log:
        queued = {
            one.event.run_id: one.position for one in log.all() if isinstance(one.event, facts.RunQueued)
        }
        asked = {
            one.event.run_id: one.position
            for one in parts_in(log.all())
            if isinstance(
                one.event,
                facts.ExchangeAccepted | facts.SpawnAccepted | facts.TurnRequested | facts.AnnounceRequested,
            )
        }
        both = queued.keys() & asked.keys()
        cuts = {consistent(log, at) for at in range(1, log.head() + 1)}
        halves = {(run, cut) for run in both for cut in cuts if (queued[run] <= cut) != (asked[run] <= cut)}
    assert both
    assert halves == set()

"""FORK-1: a fork is closed, verifies, and opens as an ordinary log. `test_forks_everywhere.py` has every position of every run."""

import random
from pathlib import Path

import pytest

from intersession_events.facts import ExchangeAccepted
from intersession_events.log.recorded import Recorded
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.forks.closure import closed_streams, roots_of
from intersession_projections.copies.forks.summary import fork_summary
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes.runs import Runs
from support.closed import Known, cut_short, not_in
from support.forked import forked
from support.forked_everywhere import flows_of
from support.golden_logs import GoldenLog, golden_logs
from support.random_runs import random_runs

EVERYDAY = 3
"""So many forks of each log."""


def logs(*names: str) -> list[GoldenLog]:
    return [one for one in golden_logs() if one.name in names]


def holds(log: PortableLog, events: list[Recorded], flow: Flow, at: int, directory: Path) -> None:
    streams = closed_streams(log, roots_of(log, flow), at)
    made = forked(log, streams, at=at, flow=flow_id(flow), directory=directory)
    source = Known([one for one in events if one.position <= at])
    with open_log(made.path, inline=inline_views()) as fork:  # builds its views, as any writer does
        known = Known(list(fork.all(to=at)))
        assert list(not_in(known, source)) == [], (flow, at)
        assert list(cut_short(known.events, source.events)) == []
        assert set(roots_of(log, flow)) & set(source.names.values()) <= set(known.names.values())
        assert fork.set_aside() == []
        report = verify_log(fork)
        assert report.ok, (flow, at, report.findings[:3])
        told = fork_summary(fork)
    assert told is not None
    assert told.place.position == at
    Path(made.path).unlink()


def positions(log: PortableLog) -> list[tuple[Flow, int]]:
    return [(flow, at) for flow in flows_of(log) for at in range(flow.accepted - 1, flow.position + 1)]


def sample(cuts: list[tuple[Flow, int]], some: int) -> list[tuple[Flow, int]]:
    return random.Random(7).sample(cuts, some)  # noqa: S311 - the same ones each time


def try_some(path: Path, directory: Path, some: int) -> int:
    with open_log(str(path), inline=inline_views()):
        pass
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        cuts = positions(log)
        chosen = sample(cuts, min(some, len(cuts)))
        events = list(log.all())
        for flow, at in chosen:
            holds(log, events, flow, at, directory)
    return len(chosen)


@pytest.mark.clause("FORK-1")
@pytest.mark.parametrize("golden", logs("demo", "restricted"), ids=lambda golden: golden.name)
def test_a_fork_at_some_positions_of_a_log_of_0_1_0_is_closed(golden: GoldenLog, tmp_path: Path) -> None:
    assert try_some(golden.unpack(tmp_path), tmp_path / "forks", EVERYDAY) > 0


@pytest.mark.clause("FORK-1")
def test_a_session_that_a_run_comes_to_behind_the_cut_goes_along_as_it_stood(tmp_path: Path) -> None:
    (demo,) = logs("demo")
    with open_log(str(demo.unpack(tmp_path)), inline=inline_views()) as log:
        sent = next(
            one.event for one in log.all() if isinstance(one.event, ExchangeAccepted) and one.event.requester
        )
        run = next(one for one in flows_of(log) if getattr(one, "run_id", "") == sent.requester_run_id)
        streams = closed_streams(log, roots_of(log, run), run.accepted)
    assert f"session:{sent.target}" in streams


@pytest.mark.clause("FORK-1")
def test_a_fork_leaves_out_what_the_run_has_nothing_to_do_with(tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        lone = next(run for run in Runs(log).recent(50) if run.session_key == "agent:alone:main")
        streams = closed_streams(log, roots_of(log, lone), log.head())

        assert streams & set(log.streams("")) == {"session:agent:alone:main"}
    assert try_some(path, tmp_path / "forks", EVERYDAY) > 0

"""Forks at every position of every run: closed, carried on to their end, and with recorded agents as their source (FORK, DIFF)."""

import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from intersession import SessionSystem
from intersession_projections.questions.places.runs_named import Flow
from support.forked_everywhere import Cut, Everywhere
from support.golden_logs import golden_logs
from support.random_runs import random_runs

RUNS = 500
PIECES = 25
BASE = 8
"""So many pieces of the log that has the most runs."""


@contextmanager
def opened(path: Path) -> Generator[Everywhere]:
    with SessionSystem(path) as system:  # it has no agent: whatever goes on, goes on in forks
        yield Everywhere(system)


def golden(name: str, folder: Path) -> Path:
    (found,) = [one for one in golden_logs() if one.name == name]
    return found.unpack(folder)


def every_cut(log: Everywhere) -> list[Cut]:
    return [cut for flow in log.flows for cut in log.cuts(flow)]


def check_some(log: Everywhere, some: int, *, live: bool = False) -> None:
    chance = random.Random(7)  # noqa: S311 - the same ones each time
    for cut in chance.sample(every_cut(log), some):
        log.check(cut, live=live)
    for flow in log.flows:
        log.check_closed(flow, chance.randint(flow.accepted, flow.position))


def check_all(log: Everywhere, flows: Sequence[Flow], *, live: bool = False) -> None:
    """Check every fork of some runs of a log."""
    for flow in flows:
        for at in range(flow.accepted - 1, flow.position + 1):
            log.check_closed(flow, at)
        for cut in log.cuts(flow):
            log.check(cut, live=live)


@pytest.mark.clause("FORK-1", "FORK-4", "FORK-7", "DIFF-1")
@pytest.mark.ci
def test_forks_of_old_and_of_random_runs_come_out_as_they_did(tmp_path: Path) -> None:
    """Some of them: the nightly tests make all."""
    with opened(golden("demo", tmp_path)) as log:
        check_some(log, 3)
    with opened(random_runs(tmp_path / "one.db", 3, asked=2, at_once=False)) as log:
        check_some(log, 3)
    with opened(random_runs(tmp_path / "other.db", 3, asked=1)) as log:
        check_some(log, 2, live=True)


@pytest.mark.clause("FORK-7")
def test_a_recorded_agent_of_an_old_log_answers_what_is_worded_anew_today(tmp_path: Path) -> None:
    """0.1.0 said the hops of few messages, and something else of a sub-agent's announce."""
    with opened(golden("demo", tmp_path)) as log:
        (spawn,) = [flow for flow in log.flows if hasattr(flow, "child")]
        log.check(log.cuts(spawn)[1])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.clause("FORK-1", "FORK-4", "FORK-7", "DIFF-1")
@pytest.mark.parametrize(
    ("name", "piece", "pieces"),
    [("demo", 0, 1), ("restricted", 0, 1), *(("base", piece, BASE) for piece in range(BASE))],
)  # `global` has sessions, and no run
def test_every_fork_of_a_log_of_0_1_0_comes_out_as_its_source(
    name: str, piece: int, pieces: int, tmp_path: Path
) -> None:
    with opened(golden(name, tmp_path)) as log:
        first, behind = (len(log.flows) * number // pieces for number in (piece, piece + 1))
        assert first < behind
        check_all(log, log.flows[first:behind])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.clause("FORK-1", "FORK-4", "FORK-7", "DIFF-1")
@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_every_fork_of_random_runs_ends_and_comes_out_as_its_source(
    piece: int, at_once: bool, tmp_path: Path
) -> None:
    """Runs that speak at once in one session do so in another order each time: theirs are carried on by other agents."""
    left, seeds = RUNS // PIECES, count(piece * 1_000)
    while left:
        seed = next(seeds)
        path = random_runs(tmp_path / f"{seed}.db", seed, asked=4, at_once=at_once)
        with opened(path) as log:
            flows = log.flows[:left]
            check_all(log, flows, live=at_once)
            left -= len(flows)

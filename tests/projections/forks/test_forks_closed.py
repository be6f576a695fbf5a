"""FORK-1: at every position of every run a fork is closed, verifies, and opens as an ordinary log."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from intersession import Reply, SessionSystem, Turn
from intersession_events.log import Recorded, verify_log
from intersession_events.stores import SqliteLog, open_log
from intersession_projections.flows import Flows, Position
from intersession_projections.forks import closed_streams, fork_told, roots_of
from intersession_projections.forks.forking import fork_flow
from intersession_projections.inline_views import inline_views
from intersession_projections.places import Flow
from intersession_projections.run_outcomes import Runs
from support.closed import Known, cut_short, not_in
from support.golden_logs import GoldenLog, golden_logs
from support.running import SEES_ALL, closed_exchange

EVERYDAY = 3
"""So many forks of each log; the nightly test makes all."""
AGENTS = ("main", "ops", "desk", "home")


def logs(*names: str) -> list[GoldenLog]:
    return [one for one in golden_logs() if one.name in names]


def flows_of(log: SqliteLog) -> Iterator[Flow]:
    whole = Position(0, log.head())
    yield from Flows(log).exchanges_at(whole, 10_000)
    yield from Flows(log).spawns_at(whole, 10_000)
    yield from Runs(log).alone(whole, 10_000)


def holds(log: SqliteLog, events: list[Recorded], flow: Flow, at: int, directory: Path) -> None:
    made = fork_flow(log, log, flow, at=at, directory=str(directory))
    source = Known([one for one in events if one.position <= at])
    with open_log(made.path, inline=inline_views()) as fork:  # builds its views, as any writer does
        known = Known(list(fork.all(to=at)))
        assert list(not_in(known, source)) == [], (flow, at)
        assert list(cut_short(known.events, source.events)) == []
        assert set(roots_of(flow)) & set(source.names.values()) <= set(known.names.values())
        assert fork.set_aside() == []
        report = verify_log(fork)
        assert report.ok, (flow, at, report.findings[:3])
        told = fork_told(fork)
    assert told is not None
    assert told.place.position == at
    Path(made.path).unlink()


def positions(log: SqliteLog) -> list[tuple[Flow, int]]:
    return [(flow, at) for flow in flows_of(log) for at in range(flow.accepted - 1, flow.position + 1)]


def sample(cuts: list[tuple[Flow, int]], some: int) -> list[tuple[Flow, int]]:
    return random.Random(7).sample(cuts, some)  # noqa: S311 - the same ones each time


def try_some(path: Path, directory: Path, some: int | None) -> int:
    with open_log(str(path), inline=inline_views()):
        pass
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        cuts = positions(log)
        chosen = cuts if some is None else sample(cuts, min(some, len(cuts)))
        events = list(log.all())
        for flow, at in chosen:
            holds(log, events, flow, at, directory)
    return len(chosen)


@pytest.mark.clause("FORK-1")
@pytest.mark.parametrize("golden", logs("demo", "restricted"), ids=lambda golden: golden.name)
def test_a_fork_at_some_positions_of_a_log_of_0_1_0_is_closed(golden: GoldenLog, tmp_path: Path) -> None:
    # The runs of `base` touch nearly all of it: that is for the nightly test.
    assert try_some(golden.unpack(tmp_path), tmp_path / "forks", EVERYDAY) > 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.clause("FORK-1")
@pytest.mark.parametrize("golden", logs("demo", "restricted", "base"), ids=lambda golden: golden.name)
def test_a_fork_at_every_position_of_a_log_of_0_1_0_is_closed(golden: GoldenLog, tmp_path: Path) -> None:
    some = 1_000 if golden.name == "base" else None
    assert try_some(golden.unpack(tmp_path), tmp_path / "forks", some) > 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.clause("FORK-1")
@pytest.mark.parametrize("seed", range(50))
def test_a_fork_at_every_position_of_random_runs_is_closed(seed: int, tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", seed, asked=4)

    assert try_some(path, tmp_path / "forks", None) > 0


@pytest.mark.clause("FORK-1")
def test_a_fork_leaves_out_what_the_run_has_nothing_to_do_with(tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        lone = next(run for run in Runs(log).recent(50) if run.session_key == "agent:alone:main")
        streams = closed_streams(log, roots_of(lone), log.head())

        assert streams & set(log.streams("")) == {"session:agent:alone:main"}
    assert try_some(path, tmp_path / "forks", EVERYDAY) > 0


def random_runs(path: Path, seed: int, *, asked: int) -> Path:
    """Have agents talk to each other as chance has it: sends, spawns, failures; and one that talks to nobody."""
    chance = random.Random(seed)  # noqa: S311 - the same each time

    def speak(turn: Turn) -> str | Reply:
        if turn.step != "message":
            return Reply.skip() if chance.random() < 0.3 else f"well, {turn.message[:20]}"
        if chance.random() < 0.1:
            raise ValueError("out of order")
        if chance.random() < 0.6:
            other = chance.choice(AGENTS)
            turn.tools.call(
                "sessions_send",
                {"sessionKey": f"agent:{other}:main", "message": f"for {other}", "timeoutSeconds": 0},
            )
        elif chance.random() < 0.3:
            turn.tools.call("sessions_spawn", {"task": "look it up"})
        return f"said {turn.message[:20]}"

    config = {**SEES_ALL, "session": {"agentToAgent": {"maxPingPongTurns": 2}}}
    agents = {**dict.fromkeys(AGENTS, speak), "alone": lambda turn: f"to myself: {turn.message}"}
    with SessionSystem(f"sqlite:///{path}", agents=agents, config=config) as system:
        for number in range(asked):
            for key in (f"agent:{chance.choice(AGENTS)}:main", "agent:alone:main"):
                sent = {"sessionKey": key, "message": f"hello {number}", "idempotencyKey": f"{key} {number}"}
                system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent)["runId"]})
        for exchange in system.service.flows.exchanges_at(Position(0, system.log.head()), 1_000):
            closed_exchange(system, exchange.run_id)
    return path

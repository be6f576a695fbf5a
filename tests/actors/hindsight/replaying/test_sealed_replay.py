"""What was recorded is decided again by today's rules and actors, with the recorded inputs and nothing else (SEAL)."""

import lzma
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from msgspec import structs

from intersession import (
    CorruptEvent,
    Debugger,
    Sealed,
    SessionSystem,
    ToolRefused,
    Turn,
    open_log,
    replay_file,
)
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.hindsight.replaying.redeciding import doors
from intersession_actors.owners.exchange import rules as exchange_rules
from intersession_actors.owners.session import answers
from intersession_actors.rules.errors import Denial
from intersession_actors.rules.policy import access, judgements
from intersession_actors.rules.policy.chain import Tripped, one_hop_on
from intersession_actors.rules.policy.sending import Verdict
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events import facts
from intersession_events.basics.machine import machine_entropy, random_id, sealed, wall_clock_ms
from intersession_events.log.recorded import Recorded
from support.paths import TESTS
from support.rewritten import rewritten
from support.running import SEES_ALL
from support.simulated_runs import run_of

DENIED = Verdict(action="deny", rule="the moon is full")
BY_ANOTHER_RULE = Verdict(action="allow", rule="the moon is new")
NOT_STARTED = Denial("agent_not_allowed", ("agents.list[].subagents.allowAgents",))

GOLDEN = sorted((TESTS / "golden" / "0.1.0").glob("*.db.xz"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a simulated run: sends, turns, spawns, announces, deliveries."""
    store = tmp_path_factory.mktemp("recorded") / "run.db"
    run_of(f"sqlite:///{store}", 5)
    return store


@pytest.fixture(scope="module")
def spawned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a session that starts a sub-agent."""
    store = tmp_path_factory.mktemp("spawned") / "run.db"
    runtime = SimulatedRuntime()
    with SessionSystem(store, runtime=runtime, agents={"main": lambda _: "done"}) as system:
        system.inbound(
            channel="chat", chat_id="7", sender="ann", text="hello", agent_id="main", deliver=False
        )
        system.tools("agent:main:main").call("sessions_spawn", {"task": "dig"})
        runtime.run_for(60)
    return store


def differing_runs(debugger: Debugger) -> list[str | None]:
    """Return what is decided differently, of every run and of the whole log."""
    asked = [item.event.run_id for item in debugger.view.log.all() if isinstance(item.event, facts.RunQueued)]
    found = [debugger.replay(), *(debugger.replay(run) for run in asked)]
    return [one["firstDifference"]["text"] for one in found if one["firstDifference"] is not None]


@pytest.mark.clause("SEAL-2", "SEAL-4", "C5")
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name.partition(".")[0])
def test_golden_logs_are_decided_as_they_were(tmp_path: Path, golden: Path) -> None:
    store = tmp_path / "golden.db"
    store.write_bytes(lzma.decompress(golden.read_bytes()))
    with open_log(store) as log:
        whole = log.debug.replay()
        if golden.name.startswith("demo"):
            assert differing_runs(log.debug) == []

    assert whole["firstDifference"] is None
    assert whole["walked"] is not golden.name.startswith("demo")
    if not whole["walked"]:
        assert whole["decided"] > 50


@pytest.mark.clause("SEAL-1", "SEAL-2", "C5")
@pytest.mark.parametrize(("seed", "early"), [(1, 0.0), (2, 0.05), (3, 0.05)])
def test_every_run_of_simulated_systems_is_decided_as_it_was(tmp_path: Path, seed: int, early: float) -> None:
    store = tmp_path / "run.db"
    run_of(f"sqlite:///{store}", seed, early=early)

    with open_log(store) as log:
        assert differing_runs(log.debug) == []


@pytest.mark.clause("SEAL-2", "SPAWN-11", "C5")
@pytest.mark.parametrize("cleanup", ["delete", "keep"])
def test_a_child_that_is_archived_by_its_spawn_is_decided_as_it_was(tmp_path: Path, cleanup: str) -> None:
    runtime, store = SimulatedRuntime(), tmp_path / "run.db"
    with SessionSystem(store, runtime=runtime, agents={"main": lambda _: "done"}) as system:
        system.tools().call("sessions_spawn", {"task": "dig", "cleanup": cleanup})
        runtime.run_for(7200)
    with open_log(store) as log:
        assert [item.event for item in log.log.all() if isinstance(item.event, facts.ChildArchived)]
        assert differing_runs(log.debug) == []


@pytest.mark.clause("SEAL-2", "HIST-7", "C5")
def test_a_session_that_is_deleted_while_runs_wait_in_it_is_decided_as_it_was(tmp_path: Path) -> None:
    runtime, store = SimulatedRuntime(), tmp_path / "run.db"

    def works(turn: Turn) -> str:
        if ":subagent:" in turn.session_key:
            runtime.pause(60)
        return "done"

    with SessionSystem(store, runtime=runtime, agents={"main": works}, config=SEES_ALL) as system:
        child = system.tools().call("sessions_spawn", {"task": "dig"})["childSessionKey"]
        for text in ("one", "two"):
            system.tools().call("sessions_send", {"sessionKey": child, "message": text, "timeoutSeconds": 0})
        runtime.run_for(5)
        assert system.gateway.call("sessions.delete", {"key": child})["ok"]
        runtime.run_for(120)
    with open_log(store) as log:
        gone = [item for item in log.log.all() if isinstance(item.event, facts.RunFailed)]
        assert [failed.event.code for failed in gone if isinstance(failed.event, facts.RunFailed)]
        assert differing_runs(log.debug) == []


@pytest.mark.clause("SEAL-2", "C5")
def test_a_run_that_is_not_to_be_tried_again_is_decided_as_it_was(tmp_path: Path) -> None:
    store, config = tmp_path / "run.db", {"runs": {"retryInterrupted": 0}}
    for crashes in (True, False):
        runtime = SimulatedRuntime()

        def works(_: Turn, waits: float = 60.0 if crashes else 0.0, runtime: Any = runtime) -> str:
            runtime.pause(waits)
            return "done"

        system = SessionSystem(store, runtime=runtime, agents={"main": works}, config=config)
        if crashes:
            system.gateway.call("agent", {"message": "go", "idempotencyKey": "1"})
            runtime.run_for(5)
            system.log.crash()  # type: ignore[attr-defined]  # the log in an SQLite file has it
            runtime.crash()
        else:
            runtime.run_for(60)
            system.close()
    with open_log(store) as log:
        codes = [item.event.code for item in log.log.all() if isinstance(item.event, facts.RunFailed)]
        assert codes == ["interrupted"]
        assert differing_runs(log.debug) == []


@pytest.mark.nightly
@pytest.mark.clause("SEAL-2", "C5")
def test_every_run_of_thousands_of_simulated_systems_is_decided_as_it_was(tmp_path: Path) -> None:
    for seed in range(2000):
        store = tmp_path / f"{seed}.db"
        run_of(f"sqlite:///{store}", seed, early=0.05 * (seed % 3))
        with open_log(store) as log:
            assert (seed, differing_runs(log.debug)) == (seed, [])
        store.unlink()


@pytest.mark.clause("SEAL-2")
def test_a_turn_limit_that_is_one_higher_is_caught_and_said_in_words(recorded: Path) -> None:
    with (
        open_log(recorded) as log,
        rewritten(exchange_rules, "state.turn >= settings.max_turns", "state.turn > settings.max_turns"),
    ):
        found = log.debug.replay()

    differs = found["firstDifference"]
    assert differs is not None
    assert not found["same"]
    assert (differs["kind"], differs["recorded"], differs["now"]) == (
        "changed",
        "turn_ended.1",
        "TurnEnded",
    )
    assert {"then.loopEnded", "then.turnRequested"} <= {field["path"] for field in differs["fields"]}
    assert "turn_limit (session.agentToAgent.maxPingPongTurns)" in differs["text"]
    assert differs["command"] == "RunEnded"


@pytest.mark.clause("SEAL-2")
@pytest.mark.parametrize(
    ("module", "rule", "says", "now"),
    [
        (access, "_matches", False, "forbidden"),
        (judgements, "judge_send", DENIED, "policy_denied"),
        (doors, "judge_send", BY_ANOTHER_RULE, "ExchangeAccepted"),
        (doors, "why_no_loop", "one_way", "ExchangeAccepted"),
        (judgements, "judge_start", NOT_STARTED, "agent_not_allowed"),
    ],
)
def test_a_rule_of_a_door_that_is_another_one_is_told(
    request: pytest.FixtureRequest, module: ModuleType | type, rule: str, says: object, now: str
) -> None:
    of_spawns = rule == "judge_start"
    store = request.getfixturevalue("spawned" if of_spawns else "recorded")
    with open_log(store) as log:
        assert log.debug.replay()["same"]
    with open_log(store) as log, patch.object(module, rule, lambda *_: says):
        differs = log.debug.replay()["firstDifference"]

    assert differs is not None
    began = "spawn_accepted.1" if of_spawns else "exchange_accepted.1"
    assert (differs["recorded"], differs["now"]) == (began, now)
    if now == "ExchangeAccepted":
        assert differs["fields"][0]["path"] in {"loop", "sendRule", "send_rule"}
    else:
        assert f"today's rules refuse it ({now}): " in differs["text"]


@pytest.mark.clause("SEAL-2", "INB-2")
def test_an_answer_that_nobody_would_be_shown_today_is_missing(recorded: Path) -> None:
    with (
        open_log(recorded) as log,
        rewritten(
            answers,
            "(reply is None and not files) or is_withheld(reply)",
            "reply is not None or is_withheld(reply)",
        ),
    ):
        found = log.debug.replay()

    differs = found["firstDifference"]
    assert differs is not None
    assert (differs["kind"], differs["recorded"]) == ("missing", "delivery_decided.1")


@pytest.mark.clause("SEAL-2", "LOOP-5")
@pytest.mark.parametrize("store", ["recorded", "spawned"])
def test_a_budget_that_a_door_hands_on_otherwise_is_told(request: pytest.FixtureRequest, store: str) -> None:
    def two_hops_on(budget: facts.Budget, target: str, limits: facts.Limits) -> facts.Budget:
        return structs.replace(one_hop_on(budget, target, limits), hops=budget.hops + 2)

    with open_log(request.getfixturevalue(store)) as log, patch.object(doors, "one_hop_on", two_hops_on):
        differs = log.debug.replay()["firstDifference"]

    assert differs is not None
    assert differs["recorded"] in {"exchange_accepted.1", "spawn_accepted.1"}
    assert {"path": "budget.hops", "recorded": 1, "now": 2} in differs["fields"]


@pytest.mark.clause("SEAL-2", "LOOP-5")
@pytest.mark.parametrize("store", ["recorded", "spawned"])
def test_a_hop_that_is_one_too_many_today_is_told(request: pytest.FixtureRequest, store: str) -> None:
    tripped = Tripped(limit="hop_limit", setting="session.agentToAgent.limits.hops", value=1, allowed=1)
    with (
        open_log(request.getfixturevalue(store)) as log,
        patch.object(judgements, "judge_chain", lambda *_: tripped),
    ):
        differs = log.debug.replay()["firstDifference"]

    assert differs is not None
    assert (differs["kind"], differs["now"]) == ("refused", "limit")
    assert "session.agentToAgent.limits.hops" in differs["text"]


@pytest.mark.clause("SEAL-2")
def test_a_field_that_differs_is_shown_with_both_values(recorded: Path) -> None:
    with (
        open_log(recorded) as log,
        rewritten(exchange_rules, '"session.agentToAgent.maxPingPongTurns"', '"another.limit"'),
    ):
        found = log.debug.replay()

    differs = found["firstDifference"]
    assert differs is not None
    assert differs["recorded"] == "turn_ended.1"
    assert differs["fields"] == [
        {
            "path": "then.loopEnded.limit",
            "recorded": "session.agentToAgent.maxPingPongTurns",
            "now": "another.limit",
        }
    ]


@pytest.mark.clause("SEAL-1")
def test_a_rule_that_asks_the_machine_fails_the_replay_by_name(recorded: Path) -> None:
    with (
        open_log(recorded) as log,
        rewritten(
            exchange_rules,
            "if state.turn >= settings.max_turns",
            "from intersession_events.basics.machine import wall_clock_ms\n    if wall_clock_ms() and state.turn >= settings.max_turns",
        ),
    ):
        found = log.debug.replay()

    differs = found["firstDifference"]
    assert differs is not None
    assert "intersession_actors.owners.exchange.rules" in differs["text"]
    assert "asked for the time: a sealed replay has only what was recorded" in differs["text"]


@pytest.mark.clause("SEAL-1")
def test_inside_a_seal_the_machine_is_not_reachable() -> None:
    assert wall_clock_ms() > 0
    with sealed():
        for asked, what in ((wall_clock_ms, "the time"), (random_id, "a new id")):
            with pytest.raises(Sealed, match=f"test_sealed_replay.* asked for {what}"):
                asked()
        with pytest.raises(Sealed, match="random bytes"):
            machine_entropy(1)
        with pytest.raises(Sealed, match=r"socket\.connect"), socket.socket() as reaching:
            reaching.connect(("127.0.0.1", 1))
    assert wall_clock_ms() > 0


NAMES_ARE_GONE = """
import os
from intersession_events.basics import machine

with machine.sealed():
    pass
for name in [*vars(machine)]:
    setattr(machine, name, None)
open(os.devnull).close()
"""
"""As Python ends a process: a module that something still has is left without its names, and files are closed after it."""


@pytest.mark.clause("SEAL-1")
def test_a_process_that_has_sealed_something_ends_without_a_word() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", NAMES_ARE_GONE], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.clause("SEAL-3")
def test_a_run_in_a_file_is_replayed_without_its_log(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    with open_log(recorded) as log:
        flow = log.debug.view.flow(exchange_of(log.log.all()))
        Recordings(log.log).write(flow, file)
        there = log.debug.replay(exchange_of(log.log.all()))

    assert replay_file(file) == there
    assert there["same"]
    with rewritten(exchange_rules, "state.turn >= settings.max_turns", "state.turn > settings.max_turns"):
        assert not replay_file(file)["same"]
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CorruptEvent, match="no recording of a run"):
        replay_file(file)


def exchange_of(events: Iterator[Recorded]) -> str:
    return next(item.event.run_id for item in events if isinstance(item.event, facts.ExchangeAccepted))


@pytest.mark.clause("SEAL-3")
def test_what_is_no_run_is_refused(recorded: Path) -> None:
    with open_log(recorded) as log, pytest.raises(ToolRefused):
        log.debug.replay("nothing")

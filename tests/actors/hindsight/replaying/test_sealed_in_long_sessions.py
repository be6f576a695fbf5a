"""A run in a long session is decided again from the snapshot before it: nobody waits for what came long before (issue 10)."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from intersession import Debugger, SessionSystem, Turn, open_log
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.hindsight.replaying.replayed import replay_file, replay_run
from intersession_actors.owners.exchange import rules as exchange_rules
from intersession_actors.owners.session.snapshots import long_sessions, take_snapshots
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events import facts
from intersession_events.basics.ids import session_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_events.log.sql import Row, SqlValue
from intersession_events.stores.sqlite.log import SqliteLog
from support.rewritten import rewritten
from support.rows import edited

EVERY = 250
"""After so many events of a stream its state is kept (docs/explanation/design.md)."""

ROUNDS = 60
LATE = ROUNDS * 3 // 4
"""Which round has a snapshot before it in each session."""
CONFIG = {
    "tools": {"agentToAgent": {"enabled": True}, "sessions": {"visibility": "all"}},
    "session": {"agentToAgent": {"maxPingPongTurns": 2}},
}


def ops(turn: Turn) -> str:
    return f"about {turn.message}"


AGENTS = {"main": lambda _: "and then?", "ops": ops}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "log.db"
    runtime = SimulatedRuntime()
    with SessionSystem(path, runtime=runtime, agents=AGENTS, config=CONFIG) as system:
        for number in range(ROUNDS):
            system.inbound(
                channel="chat", chat_id="7", sender="ann", text=f"{number}", agent_id="main", deliver=False
            )
            runtime.run_for(1)
            asked = {"sessionKey": "agent:ops:main", "message": f"round {number}", "timeoutSeconds": 0}
            system.tools("agent:main:main").call("sessions_send", asked)
            runtime.run_for(5)
    with SqliteLog(path) as log:
        take_snapshots(log, long_sessions(log))
    return path


@pytest.fixture
def debugger(store: Path) -> Generator[Debugger]:
    with open_log(store) as log:
        yield log.debug


def exchanges(debugger: Debugger) -> list[str]:
    found = (item.event for item in debugger.view.log.all())
    return [event.exchange_id for event in found if isinstance(event, facts.ExchangeAccepted)]


@pytest.mark.clause("SEAL-1", "SEAL-2")
def test_a_run_comes_out_the_same_of_a_small_part_of_its_sessions(debugger: Debugger, tmp_path: Path) -> None:
    recordings = Recordings(debugger.view.log)
    asked = exchanges(debugger)
    assert len(asked) == ROUNDS
    for number in (0, ROUNDS // 2, LATE, ROUNDS - 1):
        flow = debugger.view.flow(asked[number])
        file = tmp_path / f"{number}.jsonl"
        recordings.write(flow, file)
        found = debugger.replay(asked[number])
        assert found == replay_file(file)  # which has all that ever was in its sessions
        assert found["same"]
        assert found["decided"] > 15

    whole, late = recordings.of(flow), recordings.of_late(flow)
    assert late is not None
    assert len(whole.order) > 2 * EVERY
    assert len(late.order) < 2 * EVERY + found["events"] + 50


@pytest.mark.clause("SEAL-2")
def test_what_differs_is_told_as_without_a_snapshot(debugger: Debugger, tmp_path: Path) -> None:
    log, asked = debugger.view.log, exchanges(debugger)[LATE]
    flow, file = debugger.view.flow(asked), tmp_path / "kept.jsonl"
    Recordings(log).write(flow, file)
    was = exchange_rules.decide
    assert replay_run(log, flow)["same"]
    with rewritten(exchange_rules, "state.turn >= settings.max_turns", "state.turn > settings.max_turns"):
        found = debugger.replay(asked)
        assert found == replay_file(file)
    assert exchange_rules.decide is was
    assert found["firstDifference"] is not None
    assert "then.turnRequested was null and is {" in found["firstDifference"]["text"]


@pytest.mark.clause("SEAL-2")
def test_a_snapshot_that_is_wrong_changes_nothing(store: Path, tmp_path: Path) -> None:
    """It is held against the event that it is after; and what differs is looked at again without any."""
    mine = tmp_path / "log.db"
    mine.write_bytes(store.read_bytes())
    with edited(mine) as rows:
        rows.execute("UPDATE stored_snapshots SET originator_version = originator_version + 1")
    with open_log(mine) as log:
        assert log.debug.replay(exchanges(log.debug)[LATE])["same"]


class Counted:
    """A log that counts how many events are read, and how many statements that takes."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.read = 0
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def stream(self, stream: str, **asked: Any) -> Sequence[Recorded]:
        found = self._log.stream(stream, **asked)
        self.asked += 1
        self.read += len(found)
        return found

    def parts(self, parts: Sequence[StreamPart]) -> Sequence[Sequence[Recorded]]:
        found = self._log.parts(parts)
        self.asked += 1
        self.read += sum(map(len, found))
        return found

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        self.asked += 1
        return self._log.query(statement, parameters)


@pytest.mark.ci
@pytest.mark.clause("SEAL-1")
def test_of_a_long_session_only_what_is_near_a_run_is_read(debugger: Debugger) -> None:
    log, asked = debugger.view.log, exchanges(debugger)
    whole = sum(len(log.stream(session_stream(key))) for key in ("agent:main:main", "agent:ops:main"))
    assert whole > 3 * EVERY
    for number in (0, 1, LATE, ROUNDS - 1):
        counted = Counted(log)
        found = replay_run(cast("Log", counted), debugger.view.flow(asked[number]))
        assert found["same"]
        assert counted.read < 2 * EVERY + 4 * found["events"]  # behind a snapshot of each session
        assert counted.asked < 40  # however many runs its chain has


@pytest.mark.ci
@pytest.mark.clause("SEAL-1")
def test_what_waited_and_was_over_before_a_run_is_not_read(tmp_path: Path) -> None:
    """A session that has much to do has a long queue at its snapshot, of which a run behind it takes up nothing."""
    path, runtime, runs = tmp_path / "log.db", SimulatedRuntime(), list[str]()
    with SessionSystem(path, runtime=runtime, agents=AGENTS, config=CONFIG) as system:
        tools = system.tools("agent:main:main")
        asked = {"sessionKey": "agent:ops:main", "timeoutSeconds": 0}
        for _ in range(6):
            for number in range(20):
                tools.call("sessions_send", {**asked, "message": f"{number}"})
            runtime.run_for(60)
            runs.append(tools.call("sessions_send", {**asked, "message": "19"})["runId"])
            runtime.run_for(60)
    with SqliteLog(path) as log:
        take_snapshots(log, long_sessions(log))
    with open_log(path) as log:
        begun = [
            begun
            for run in runs
            if (late := Recordings(log.log).of_late(log.debug.view.flow(run))) is not None
            for begun in late.sources.begun.values()
        ]
        assert max(len(one.session.queue) for one in begun) > 5
        assert all(one.first == one.version for one in begun)
        assert all(log.debug.replay(run)["same"] for run in runs)

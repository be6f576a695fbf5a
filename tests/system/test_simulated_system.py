"""A whole system in one thread: the same seed gives the same log, byte for byte, and a crash keeps what was committed."""

import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from intersession_actors.agents import Turn
from intersession_actors.answers import InboundAnswer
from intersession_actors.channels import MemoryChannel
from intersession_actors.simulation import SimulatedRuntime
from intersession_actors.system import SessionSystem
from intersession_events.stores import open_log

CONFIG = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "session": {"agentToAgent": {"maxPingPongTurns": 2}},
}


def asks(turn: Turn) -> str:
    """Sends, spawns and waits as a plain function."""
    if turn.step is not None:
        return f"{turn.step}"
    sent = turn.tools.call(
        "sessions_send", {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 30}
    )
    turn.tools.call("sessions_spawn", {"task": "look", "agentId": "b"})
    return f"b says {sent.get('reply')}"


async def lists(turn: Turn) -> str:
    """Awaits its tools on the simulation's loop."""
    found = await turn.tools.acall("sessions_list", {})
    return f"fine, {found['count']} sessions"


def ask(
    runtime: SimulatedRuntime, system: SessionSystem, who: str, wait: float = 0.0
) -> Future[InboundAnswer]:
    """Have a person say something, beside all else that goes on."""
    return runtime.spawn(
        lambda: system.inbound(channel="chat", chat_id=who, sender=who, agent_id="a", text="ask", wait=wait)
    )


def simulated(store: str, seed: int, *, early: float = 0.0) -> tuple[SimulatedRuntime, SessionSystem]:
    runtime = SimulatedRuntime(seed, early=early)
    system = SessionSystem(
        store,
        runtime=runtime,
        agents={"a": asks, "b": lists},
        channels={"chat": MemoryChannel()},
        config=CONFIG,
    )
    return runtime, system


def run_of(store: str, seed: int, *, early: float = 0.0) -> str:
    """Have two people ask at once, run to the end, and return a digest of the log's rows."""
    runtime, system = simulated(store, seed, early=early)
    with system:
        asked = [ask(runtime, system, who, 300) for who in ("u1", "u2")]
        assert runtime.run_until(lambda: all(one.done() for one in asked))
        runtime.run_for(3600)
        if not early:
            assert [one.result()["status"] for one in asked] == ["ok", "ok"]
        digest = hashlib.sha256()
        for row in system.log.rows(after=0, limit=100_000):
            digest.update(repr(row).encode())
    return digest.hexdigest()


@pytest.mark.clause("C1")
def test_the_same_seed_gives_the_same_log_in_two_processes_whatever_their_hashes(tmp_path: Path) -> None:
    script = (
        "from system.test_simulated_system import run_of\n"
        "print([run_of(':memory:', seed, early=early) for seed, early in ((1, 0), (2, 0.05))])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=100,
        ).stdout
        for seed in ("1", "99")
    }

    assert len(printed) == 1
    assert len(set(eval(printed.pop()))) == 2  # noqa: S307 - what was printed just above


def test_a_simulated_system_starts_no_thread() -> None:
    before = threading.enumerate()
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", noted)
        run_of(":memory:", 3)

    assert started == []
    assert threading.enumerate() == before


def test_after_a_crash_at_any_step_the_log_goes_on_where_it_was(tmp_path: Path) -> None:
    for crashed_after in range(20, 200, 30):
        store = f"sqlite:///{tmp_path / f'{crashed_after}.db'}"
        runtime, system = simulated(store, crashed_after)
        asked = ask(runtime, system, "u1")
        runtime.run_until(asked.done)
        for _ in range(crashed_after):
            runtime.step()
        head = system.log.head()
        system.log.crash()  # type: ignore[attr-defined]  # the log in an SQLite file has it
        runtime.crash()
        with open_log(store, read_only=True) as left:
            assert left.head() == head

        runtime, system = simulated(store, crashed_after + 1)
        with system:
            runtime.run_for(3600)
            status = system.gateway.perform("agent.wait", {"runId": asked.result()["runId"], "timeoutMs": 0})
            assert status["status"] == "ok"

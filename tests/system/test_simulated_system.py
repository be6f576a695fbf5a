"""A whole system in one thread: the same seed gives the same log, byte for byte, and a crash keeps what was committed."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from intersession_actors.owners.exchange.commands import HoldExchange
from intersession_actors.owners.streams.commands import Refused
from intersession_events.stores.opened import open_log
from support.any_log import Logs
from support.simulated_runs import ask, run_of, simulated


@pytest.mark.clause("C1")
@pytest.mark.ci
def test_the_same_seed_gives_the_same_log_in_two_processes_whatever_their_hashes(tmp_path: Path) -> None:
    script = (
        "from support.simulated_runs import run_of\n"
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
    before = set(threading.enumerate())  # those of other tests may end meanwhile
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", noted)
        run_of(":memory:", 3)

    assert started == []
    assert set(threading.enumerate()) <= before


@pytest.mark.clause("C1")
def test_the_same_seed_gives_the_same_log_in_a_file_and_on_a_server(logs: Logs, tmp_path: Path) -> None:
    """Issue 13: on PostgreSQL nothing is changed but the URL."""
    assert run_of(logs.at(tmp_path), 3) == run_of(":memory:", 3)


def test_after_a_crash_at_any_step_the_log_goes_on_where_it_was(logs: Logs, tmp_path: Path) -> None:
    for crashed_after in range(20, 200, 30):
        store = logs.at(tmp_path, str(crashed_after))
        runtime, system = simulated(store, crashed_after)
        asked = ask(runtime, system, "u1")
        runtime.run_until(asked.done)
        for _ in range(crashed_after):
            runtime.step()
        head = system.log.head()
        system.log.crash()  # type: ignore[attr-defined]  # the logs of a runtime without threads have it
        runtime.crash()
        with open_log(store, read_only=True) as left:
            assert left.head() == head

        runtime, system = simulated(store, crashed_after + 1)
        with system:
            runtime.run_for(3600)
            status = system.gateway.perform("agent.wait", {"runId": asked.result()["runId"], "timeoutMs": 0})
            assert status["status"] == "ok"


@pytest.mark.clause("C1")
def test_a_flow_is_told_nothing_once_no_actors_are_started_any_more() -> None:
    runtime, system = simulated(":memory:", 1)
    answers: list[object] = []
    with system:
        runtime.stop(0)
        hold = HoldExchange(stream="exchange:x", before="next", by="ann", answer=answers.append)
        system.service.world.mail.tell_flow("exchange:x", hold)

    assert answers == [Refused(code="unavailable", error="the system is stopping")]

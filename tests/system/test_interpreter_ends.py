"""Hosts whose main thread returns, whose interpreter ends, or that fork: the system lives until it is closed or the process ends."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.paths import ROOT

HOST = ROOT / "tests" / "support" / "processes" / "ending_host.py"
PATIENCE = 60


def lines_of(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def ended(url: str, way: str) -> list[dict[str, Any]]:
    """Run a host that never closes its system to its end, and return what it told; its log is whole, and it printed nothing else."""
    done = subprocess.run(
        [sys.executable, str(HOST), url, way], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done
    assert "Traceback" not in done.stderr, done
    assert_whole(url)
    return lines_of(done.stdout)


def assert_whole(url: str) -> None:
    with open_log(url, read_only=True) as log:
        assert verify_log(log).ok


def ok(*replies: str) -> list[dict[str, Any]]:
    return [{"status": "ok", "reply": reply, "error": None} for reply in replies]


FIRST = ok("re first", "re first")
GOES_ON = [
    *ok("re again", "re again", "re again", "re on a loop"),
    {"status": "ok"},
    {"available": True},
]


@pytest.mark.clause("L11")
def test_sessions_wake_after_the_main_thread_has_returned(log_url: str) -> None:
    assert ended(log_url, "asleep") == [*FIRST, *GOES_ON]


@pytest.mark.ci
@pytest.mark.clause("L11")
@pytest.mark.parametrize("way", ["threads", "handler", "closing_handler"])
def test_whoever_goes_on_when_the_interpreter_ends_is_served(log_url: str, way: str) -> None:
    assert ended(log_url, way) == [*FIRST, *GOES_ON]


@pytest.mark.ci
@pytest.mark.clause("L11")
def test_a_system_outlives_the_loops_that_use_it(log_url: str) -> None:
    told = ended(log_url, "loops")

    answers = ok("re one loop", "re another", "re a third")
    listed = {"status": "ok"}
    assert told == [*FIRST, answers[0], listed, answers[1], listed, answers[2], listed]


@pytest.mark.ci
@pytest.mark.clause("L11")
def test_a_thread_that_exits_ends_nothing(log_url: str) -> None:
    assert ended(log_url, "exit_in_a_thread") == [*FIRST, *ok("re after")]


@pytest.mark.ci
@pytest.mark.clause("L11", "D1")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_host_that_a_signal_ends_leaves_its_log_whole(log_url: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, str(HOST), log_url, "until_a_signal"],
        stdout=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background of a shell has this one ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as host:
        assert host.stdout is not None
        for line in host.stdout:
            if json.loads(line) == {"ready": True}:
                break
        answered = json.loads(next(host.stdout))
        host.send_signal(number)
        code = host.wait(PATIENCE)

    assert answered == ok("re first")[0]
    assert code == {signal.SIGTERM: -15, signal.SIGINT: 0}[number]
    assert_whole(log_url)
    told = ended(log_url, "nothing")
    assert [line for line in told if "failure" not in line] == FIRST


@pytest.mark.ci
@pytest.mark.clause("D9")
def test_a_forked_child_is_refused_at_once_and_harms_nothing(log_url: str) -> None:
    told = ended(log_url, "fork")

    refused = {line["call"]: line["refused"] for line in told if "call" in line}
    assert refused == {
        "inbound": "unavailable",
        "ainbound": "unavailable",
        "tools": "unavailable",
        "gateway": "unavailable",
        "debug": "ForkedStoreError",
        "status": False,  # the store is not available
        "checkpoint": "ForkedStoreError",
        "ref": "ForkedStoreError",
        "log": "ForkedStoreError",
        "register_agent": "ForkedStoreError",
        "unbind_thread": "ToolRefused",
        "again": "StoreLocked",
    }
    after = [line for line in told if "call" not in line]
    assert after == [*FIRST, {"child": 7}, *ok("re after"), {"available": True}]

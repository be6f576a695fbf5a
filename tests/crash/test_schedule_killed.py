"""A host is killed while a scheduled job that is due is being run, and started again: the job runs once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_events.facts import RunCompleted, RunQueued, ScheduleFired, ScheduleSet
from intersession_events.stores import open_log
from support.any_log import Logs
from support.every_day import every_day
from support.fakes import ManualClock
from support.history.check import broken, check_sealed
from support.history.evidence import Evidence
from support.paths import ROOT
from support.processes.scheduled import CONFIG, DONE
from support.running import WAIT

NOON = 1_700_049_600_000
DUE = NOON + 10 * 60_000

POINTS = ["E1:2", "E1:3", "E2:1", "E2:2", "E2:3", "E2:4", "S3", "S4", "S5", "S6"]
"""Before and behind each commit of the start, of the firing, and of its run."""


def run(url: str, crash_at: str | None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    if crash_at is not None:
        environment["INTERSESSION_CRASH_AT"] = crash_at
    made = subprocess.run(
        [sys.executable, "-m", "support.processes.scheduled", url, str(DUE + 3_000)],
        env=environment, timeout=3 * WAIT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return made.stdout.strip()


@pytest.mark.clause("CRON-2")
@pytest.mark.parametrize("crash_at", every_day(POINTS, "E2:2"))
def test_a_job_that_is_due_runs_once_wherever_its_host_dies(
    logs: Logs, tmp_path: Path, crash_at: str
) -> None:
    url = logs.at(tmp_path)
    with SessionSystem(url, agents={"main": echo()}, config=CONFIG, clock=ManualClock(NOON)) as system:
        system._parts.scheduler._asked(lambda: None)

    killed = run(url, crash_at)
    again = run(url, None)

    assert again == DONE, killed
    with open_log(url, read_only=True) as log:
        told = list(log.all())
        assert broken(Evidence(events=told)) == []
        assert check_sealed(log.log_id, told) == []
        events = [item.event for item in told]
    (fired,) = [event for event in events if isinstance(event, ScheduleFired)]
    (queued,) = [event for event in events if isinstance(event, RunQueued)]
    assert (fired.due_ms, fired.run_id) == (DUE, queued.run_id)
    assert len([event for event in events if isinstance(event, RunCompleted)]) == 1
    assert len([event for event in events if isinstance(event, ScheduleSet)]) == 1

"""`schedules` on the command line: through the log's host, and without one (CRON-5)."""

import json
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from support.doors.command_line import ran
from support.running import WAIT

CONFIG = {
    "cron": {
        "jobs": {
            "news": {
                "schedule": {"kind": "cron", "expr": "0 9 1 1 *", "tz": "Europe/Berlin"},
                "payload": {"message": "what is new?"},
                "delivery": {"mode": "none"},
            }
        }
    }
}


@pytest.mark.clause("CRON-5")
def test_jobs_are_listed_run_and_paused_through_the_host_and_without_it(tmp_path: Path) -> None:
    store, config = tmp_path / "s.db", tmp_path / "config.json5"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    with SessionSystem(store, agents={"main": echo()}, config=CONFIG) as system:
        beside = ran("schedules", "--store", store)
        begun = ran("schedules", "run", "news", "--store", store, "--json")
        run_id = json.loads(begun.out)["runId"]
        system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": round(WAIT * 1000)})
        paused = ran("schedules", "pause", "news", "--store", store)
        twice = ran("schedules", "pause", "news", "--store", store)
        wrong = ran("schedules", "run", "new", "--store", store)
    alone = ran("schedules", "--store", store, "--config", config)
    told = ran("schedules", "runs", "news", "--store", store)
    resumed = ran("schedules", "resume", "news", "--store", store, "--config", config)
    nothing = ran("schedules", "--store", store)

    assert "0 9 1 1 * Europe/Berlin" in beside.out
    assert (paused.out, twice.out) == ("news is paused\n", "news is paused already\n")
    assert (wrong.exit_code, "there is no job 'new', the jobs are news" in wrong.err) == (1, True)
    assert "paused" in alone.out
    assert run_id in told.out
    assert resumed.out == "news goes on\n"
    assert "no jobs" in nothing.out

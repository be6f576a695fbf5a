"""Scheduled jobs of a running system: due by the log and the clock, run once, missed ones told (CRON)."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from intersession import MemoryChannel, SessionSystem, Turn, echo
from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_events.basics import ids
from intersession_events.facts import (
    DeliveryDone,
    RunCompleted,
    RunQueued,
    ScheduleFired,
    ScheduleMissed,
    ScheduleSet,
    SessionReset,
)
from support.fakes import ManualClock
from support.history.check import check_sealed
from support.running import Booth, Gate, pass_time, recorded, wait_for, wait_for_number
from support.soaking import until

MINUTE = 60_000
NOON = 1_700_049_600_000
"""A Wednesday, 12:00 UTC."""


def job(expr: str = "*/10 * * * *", **given: Any) -> dict[str, Any]:
    """Return a job's settings; fields of None are left out."""
    settings = {
        "schedule": {"kind": "cron", "expr": expr},
        "payload": {"message": "how is it going?"},
        "delivery": {"mode": "none"},
        **given,
    }
    return {name: value for name, value in settings.items() if value is not None}


def cron(**jobs: Mapping[str, Any]) -> dict[str, Any]:
    return {"cron": {"jobs": jobs}}


def settle(system: SessionSystem) -> None:
    """Have the scheduler look what is due."""
    system._parts.scheduler._asked(system._parts.scheduler._look)


def start(
    booth: Booth, clock: ManualClock, agent: Any = None, channels: Any = None, **jobs: Any
) -> SessionSystem:
    system = booth.start({"main": agent or echo()}, channels, cron(**jobs), clock=clock)
    settle(system)
    return system


def pass_to(system: SessionSystem, clock: ManualClock, minutes: int) -> None:
    """Move the clock on by minutes, one after the other."""
    for _ in range(minutes):
        pass_time(system, clock, MINUTE)
        settle(system)


@pytest.mark.clause("CRON-2", "CRON-4")
def test_a_job_runs_in_its_session_when_it_is_due_and_announces_the_answer(booth: Booth) -> None:
    clock, chat = ManualClock(NOON), MemoryChannel()
    delivery = {"channel": "telegram", "to": "42"}
    system = start(booth, clock, channels={"telegram": chat}, news=job(delivery=delivery))
    pass_to(system, clock, 9)
    assert recorded(system, ScheduleFired) == []

    pass_to(system, clock, 1)
    wait_for(system, DeliveryDone)

    (fired,) = recorded(system, ScheduleFired)
    run_id = ids.derive(system.log.log_id, "run", "cron", "news", NOON + 10 * MINUTE)
    assert (fired.due_ms, fired.run_id, fired.missed) == (NOON + 10 * MINUTE, run_id, 0)
    assert fired.session_key == "agent:main:cron:news"
    (queued,) = recorded(system, RunQueued)
    assert queued.run_id == run_id
    assert queued.system_context == "Scheduled job news, due 2023-11-15T12:10:00+00:00."
    assert [out.to for out in chat.shown] == ["42"]
    assert "how is it going?" in chat.shown[0].text


@pytest.mark.clause("CRON-2")
def test_each_isolated_run_begins_with_no_memory_of_the_last(booth: Booth) -> None:
    clock, seen = ManualClock(NOON), list[int]()

    def agent(turn: Turn) -> str:
        seen.append(len(turn.messages()))
        return "done"

    system = start(booth, clock, agent, news=job())
    for number in (1, 2, 3):
        pass_to(system, clock, 10)
        wait_for_number(system, RunCompleted, number)

    assert len(recorded(system, ScheduleFired)) == 3
    assert [reset.reason for reset in recorded(system, SessionReset)] == ["run", "run"]
    assert len(set(seen)) == 1


@pytest.mark.clause("CRON-3")
@pytest.mark.parametrize("catch_up", ["once", "skip"])
def test_times_missed_while_down_are_told_and_done_once_or_skipped(booth: Booth, catch_up: str) -> None:
    clock = ManualClock(NOON)
    start(booth, clock, news=job(catchUp=catch_up)).close()
    clock.advance(35 * MINUTE)

    system = start(booth, clock, news=job(catchUp=catch_up))

    latest = NOON + 30 * MINUTE
    if catch_up == "once":
        (fired,) = recorded(system, ScheduleFired)
        assert (fired.due_ms, fired.missed) == (latest, 2)
        wait_for(system, RunCompleted)
    else:
        (missed,) = recorded(system, ScheduleMissed)
        assert (missed.due_ms, missed.times, missed.reason) == (latest, 3, "down")
        assert recorded(system, ScheduleFired) == []
    pass_to(system, clock, 5)
    assert recorded(system, ScheduleFired)[-1].due_ms == NOON + 40 * MINUTE


@pytest.mark.clause("CRON-2")
def test_two_starts_in_one_minute_fire_once(booth: Booth) -> None:
    clock = ManualClock(NOON)
    first = start(booth, clock, news=job())
    pass_to(first, clock, 10)
    first.close()

    again = start(booth, clock, news=job())
    pass_to(again, clock, 2)

    assert len(recorded(again, ScheduleFired)) == len(recorded(again, RunQueued)) == 1


@pytest.mark.clause("CRON-3")
def test_a_time_that_comes_while_the_last_run_is_under_way_is_missed_and_told(booth: Booth) -> None:
    clock, gate = ManualClock(NOON), Gate()
    hour = {"message": "take your time", "timeoutSeconds": 3_600}
    system = start(booth, clock, gate.saying("done"), news=job(payload=hour))
    pass_to(system, clock, 10)
    gate.reached()
    pass_to(system, clock, 10)
    pass_to(system, clock, 10)  # it is under way still, though a time was missed since it began
    gate.open()
    wait_for(system, RunCompleted)
    pass_to(system, clock, 10)

    missed = [(one.due_ms, one.reason, one.times) for one in recorded(system, ScheduleMissed)]
    assert missed == [(NOON + 20 * MINUTE, "busy", 1), (NOON + 30 * MINUTE, "busy", 1)]
    assert [fired.due_ms for fired in recorded(system, ScheduleFired)] == [
        NOON + 10 * MINUTE,
        NOON + 40 * MINUTE,
    ]


@pytest.mark.clause("CRON-1", "CRON-3")
def test_a_reload_sets_changes_and_takes_out_jobs_without_making_up_for_their_past(booth: Booth) -> None:
    clock = ManualClock(NOON)
    system = start(booth, clock)
    pass_to(system, clock, 15)

    system.reload(cron(news=job()))
    settle(system)
    pass_to(system, clock, 5)
    assert [fired.due_ms for fired in recorded(system, ScheduleFired)] == [NOON + 20 * MINUTE]

    system.reload(cron())
    settle(system)
    pass_to(system, clock, 20)
    assert len(recorded(system, ScheduleFired)) == 1
    assert [one.schedule for one in recorded(system, ScheduleSet)] == [
        '{"expr":"*/10 * * * *","kind":"cron"}',
        None,
    ]


@pytest.mark.clause("CRON-3")
@pytest.mark.parametrize(("at", "fires"), [("2023-11-15T12:05", True), ("2023-11-15T11:55+00:00", False)])
def test_a_job_of_one_time_runs_then_and_one_whose_time_had_passed_never(
    booth: Booth, at: str, fires: bool
) -> None:
    clock = ManualClock(NOON)
    once = job(schedule={"kind": "at", "at": at})
    system = start(booth, clock, once=once)
    pass_to(system, clock, 10)

    assert len(recorded(system, ScheduleFired)) == fires
    assert [missed.reason for missed in recorded(system, ScheduleMissed)] == ([] if fires else ["past"])


def test_every_counts_from_when_the_job_was_set_also_after_a_restart(booth: Booth) -> None:
    clock = ManualClock(NOON + 123)
    every = job(schedule={"kind": "every", "everyMs": 5 * MINUTE})
    start(booth, clock, pulse=every).close()
    clock.advance(4 * MINUTE)
    system = start(booth, clock, pulse=every)
    pass_to(system, clock, 2)

    assert [fired.due_ms for fired in recorded(system, ScheduleFired)] == [NOON + 123 + 5 * MINUTE]


@pytest.mark.clause("CRON-2")
def test_a_job_of_an_agent_that_is_not_here_is_missed_and_told(booth: Booth) -> None:
    clock = ManualClock(NOON)
    system = start(booth, clock, news=job(agentId="nobody"))
    pass_to(system, clock, 10)

    (missed,) = recorded(system, ScheduleMissed)
    assert (missed.reason, missed.error) == ("refused", "agentId: 'nobody' is not configured")
    assert system._parts.reports.counts["schedule_missed"] == 1
    assert system.status()["schedules"]["trouble"] == {"news": missed.error}


def test_a_log_without_jobs_says_nothing_of_them(booth: Booth) -> None:
    system = start(booth, ManualClock(NOON))

    assert [item.stream for item in system.log.all() if item.stream.startswith("schedule:")] == []


@pytest.mark.clause("CRON-5")
def test_jobs_are_listed_run_now_paused_and_told_of_by_methods(booth: Booth) -> None:
    clock = ManualClock(NOON)
    system = start(booth, clock, news=job(name="The news"), other=job(enabled=False))
    call: Any = system.gateway.call

    news, other = call("cron.list")["jobs"]
    assert (news["id"], news["name"], news["sessionKey"]) == ("news", "The news", "agent:main:cron:news")
    assert news["state"]["nextRunAtMs"] == NOON + 10 * MINUTE
    assert other["state"]["nextRunAtMs"] is None
    assert [row["id"] for row in call("cron.list", {"includeDisabled": False})["jobs"]] == ["news"]
    assert call("cron.run", {"jobId": "news", "mode": "due"})["reason"] == "not-due"

    ran = call("cron.run", {"jobId": "news"})
    call("agent.wait", {"runId": ran["runId"]})
    (entry,) = call("cron.runs", {"jobId": "news"})["entries"]
    assert (entry["runId"], entry["status"], entry["by"]) == (ran["runId"], "ok", "operator")

    assert call("cron.update", {"jobId": "news", "patch": {"enabled": False}})["job"]["paused"]
    assert call("cron.status") == {"enabled": True, "jobs": 2, "nextWakeAtMs": None}
    pass_to(system, clock, 25)
    assert len(recorded(system, ScheduleFired)) == 1
    call("cron.update", {"jobId": "news", "patch": {"enabled": True}})
    pass_to(system, clock, 5)
    assert [fired.due_ms for fired in recorded(system, ScheduleFired)][1:] == [NOON + 30 * MINUTE]
    refused = call("cron.run", {"jobId": "nothing"})
    assert (refused["code"], refused["error"]) == (
        "invalid_request",
        "jobId: there is no job 'nothing', the jobs are news, other",
    )


@pytest.mark.clause("CRON-2", "CRON-4")
def test_a_session_that_takes_no_more_holds_up_its_own_job_alone(booth: Booth) -> None:
    clock, gate = ManualClock(NOON), Gate()
    jobs = {"a": job(sessionTarget="main"), "b": job(delivery=None)}
    system = booth.start(
        {"main": gate.saying("done")}, None, cron(**jobs), {"runs": {"inboxMax": 1}}, clock=clock
    )
    pass_to(system, clock, 9)
    call: Any = system.gateway.call
    call("chat.send", {"sessionKey": "agent:main:main", "message": "hello", "idempotencyKey": "1"})
    gate.reached()
    pass_to(system, clock, 1)

    assert [fired.job_id for fired in recorded(system, ScheduleFired)] == ["b"]
    trouble: Any = system.status()["schedules"]
    assert trouble["trouble"] == {
        "b": "its answer goes nowhere: give delivery.channel and to, or the mode none"
    }
    gate.open()
    wait_for_number(system, RunCompleted, 2)

    def fired_both() -> bool:
        settle(system)
        return len(recorded(system, ScheduleFired)) > 1

    until(fired_both)  # the session takes more just after the end of its run is recorded
    assert [fired.job_id for fired in recorded(system, ScheduleFired)] == ["b", "a"]


@pytest.mark.clause("CRON-2", "SEAL-1")
def test_what_became_of_each_time_is_decided_again_by_a_sealed_replay(booth: Booth) -> None:
    clock, skip = ManualClock(NOON), job(catchUp="skip")
    first = start(booth, clock, news=job(), skips=skip)
    pass_to(first, clock, 10)
    wait_for_number(first, RunCompleted, 2)
    first.close()
    clock.advance(35 * MINUTE)
    past = job(schedule={"kind": "at", "at": "2023-11-15T11:00"})
    system = start(booth, clock, news=job(), skips=skip, past=past, nobody=job(agentId="nobody"))
    wait_for_number(system, RunCompleted, 3)
    call: Any = system.gateway.call
    call("agent.wait", {"runId": call("cron.run", {"jobId": "news"})["runId"]})
    for enabled in (False, True):
        call("cron.update", {"jobId": "news", "patch": {"enabled": enabled}})
    pass_to(system, clock, 10)
    wait_for_number(system, RunCompleted, 6)
    system.reload(cron(news=job("0 * * * *")))
    settle(system)
    events = list(system.log.all())
    of_jobs = [item for item in events if item.stream.startswith("schedule:")]

    assert {item.event.reason for item in of_jobs if isinstance(item.event, ScheduleMissed)} == {
        *("down", "past", "refused"),
    }
    again = [one for one in redecided_all(Sources(system.log.log_id, events)) if one.append[0] in of_jobs]
    assert sum(len(one.append) for one in again) == len(of_jobs)
    assert [one for one in again if not one.is_same] == []
    assert check_sealed(system.log.log_id, events) == []

    fired = next(item for item in of_jobs if isinstance(item.event, ScheduleFired) and item.event.missed)
    other = structs.replace(fired, event=structs.replace(fired.event, missed=7))
    doctored = [other if item is fired else item for item in events]
    (finding,) = check_sealed(system.log.log_id, doctored)
    assert "the command was ScheduleDue" in finding.words

"""The jobs of a configuration: what is taken, and what is refused, with its path and what to do (CRON-1)."""

from typing import Any

import pytest

from intersession import ConfigError
from intersession_actors.rules.config.config import load_config

CRON = {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Berlin"}


def jobs(job_id: str = "news", **given: Any) -> dict[str, Any]:
    job = {"schedule": CRON, "payload": {"kind": "agentTurn", "message": "hello"}, **given}
    return {"cron": {"jobs": {job_id: job}}}


@pytest.mark.clause("CRON-1")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {
            "schedule": {"kind": "every", "everyMs": 60_000, "anchorMs": 5},
            "sessionTarget": "session:agent:main:main",
        },
        {
            "schedule": {"kind": "at", "at": "2026-12-01T08:00Z"},
            "delivery": {"channel": "telegram", "to": "42"},
        },
    ],
)
def test_jobs_in_the_words_of_the_original_are_taken(given: dict[str, Any]) -> None:
    assert load_config(jobs(**given)).notices == ()


@pytest.mark.clause("CRON-1")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"schedule": {**CRON, "expr": "0 25 * * *"}},
            "schedule.expr: '0 25 * * *' is no time of cron: bad hour",
        ),
        (
            {"schedule": {**CRON, "expr": "0 0 31 2 *"}},
            "schedule.expr: '0 0 31 2 *' is no time of cron: bad day-of-month",
        ),
        (
            {"schedule": {**CRON, "tz": "Europe/Berln"}},
            "schedule.tz: 'Europe/Berln' is no time zone that this machine knows",
        ),
        ({"schedule": {"kind": "every"}}, "schedule.everyMs: is missing; a schedule of kind 'every' has it"),
        (
            {"schedule": {**CRON, "at": "2026-12-01T08:00"}},
            "schedule.at: means nothing for kind 'cron'; take it out",
        ),
        ({"schedule": {"kind": "at", "at": "tomorrow"}}, "schedule.at: 'tomorrow' is no moment"),
        (
            {"schedule": {"kind": "every", "everyMs": 1}},
            "schedule.everyMs: expected a whole number >= 1000, got 1",
        ),
        ({"schedule": {"kind": "hourly"}}, "schedule.kind: 'hourly' is unknown, allowed: cron, every, at"),
        ({"payload": {"kind": "systemEvent", "message": "x"}}, "payload.kind: 'systemEvent' is unknown"),
        ({"payload": {}}, "payload.message: is missing"),
        ({"sessionTarget": "current"}, "sessionTarget: 'current' means nothing in a file"),
        ({"delivery": {"to": "42"}}, "delivery.channel: is missing; give channel and to together"),
        ({"delivery": {"mode": "webhook"}}, "delivery.mode: 'webhook' is unknown"),
        ({"agentId": "No Agent"}, "agentId: 'No Agent' is no agent id"),
        ({"catchUp": "twice"}, "catchUp: 'twice' is unknown, allowed: once, skip"),
    ],
)
def test_a_job_that_could_never_run_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(jobs(**given))

    assert f"cron.jobs.news.{said}" in str(refused.value)


@pytest.mark.clause("CRON-1")
@pytest.mark.parametrize("job_id", ["a:b", "News", ""])
def test_an_id_that_is_no_part_of_a_key_is_refused(job_id: str) -> None:
    with pytest.raises(ConfigError, match=r"is no job id"):
        load_config(jobs(job_id))

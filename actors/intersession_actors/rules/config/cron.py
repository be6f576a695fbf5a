"""The scheduled jobs of a configuration, in the original's words, and what can be wrong with them (CRON-1)."""

from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.config.check import Findings, is_zone
from intersession_actors.rules.config.settings import (
    MAX_SECONDS,
    NameText,
    Seconds,
    Settings,
    Text,
    ThinkingLevel,
)
from intersession_actors.rules.gate.limits import MessageText
from intersession_actors.rules.schedules.deciding import CatchUp
from intersession_actors.rules.schedules.times import Kind, Times, check_expression, moment_of, zone_of
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey, valid_agent_id
from intersession_events.facts import ready

MOST_JOBS: Final = 1_000

Identity = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


@ready
class JobSchedule(Settings, frozen=True, kw_only=True):
    """When a job is due: `cron` with `expr` and `tz`, `every` with `everyMs` from `anchorMs` on, or once `at` a moment."""

    kind: Kind
    expr: Text | None = None
    tz: Text | None = None
    every_ms: Annotated[int, msgspec.Meta(ge=1_000, le=MAX_SECONDS * 1000)] | None = None
    anchor_ms: Annotated[int, msgspec.Meta(ge=0, le=2**43)] | None = None
    at: Text | None = None

    def times(self, set_ms: int) -> Times:
        """Return its times; `set_ms` is when the job was set, which `every` counts from unless an anchor is given.

        Raises:
            ValueError: it has none.
        """
        zone = zone_of(self.tz)
        anchor = set_ms if self.anchor_ms is None else self.anchor_ms
        at_ms = 0 if self.at is None else moment_of(self.at, zone)
        return Times(self.kind, self.expr or "", zone, self.every_ms or 1, anchor, at_ms)


class JobPayload(Settings, frozen=True, kw_only=True):
    """What the agent is told. `timeout_seconds` is the limit of the run, where it has one of its own."""

    message: MessageText
    kind: Literal["agentTurn"] = "agentTurn"
    thinking: ThinkingLevel | None = None
    timeout_seconds: Seconds | None = None


class JobDelivery(Settings, frozen=True, kw_only=True):
    """Where the answer goes: `announce` to `to` on `channel`, else to the session's own route; `none` keeps it inside."""

    mode: Literal["announce", "none"] = "announce"
    channel: Identity | None = None
    to: Identity | None = None
    account_id: Identity | None = None
    thread_id: Identity | None = None


class CronJob(Settings, frozen=True, kw_only=True):
    """A scheduled job. `session_target` is `isolated` (`cron:<job id>`, anew each time), `main`, or `session:<key>`."""

    schedule: JobSchedule
    payload: JobPayload
    name: NameText | None = None
    enabled: bool = True
    agent_id: NameText | None = None
    session_target: Identity = "isolated"
    delivery: JobDelivery = JobDelivery()
    catch_up: CatchUp = "once"


class Cron(Settings, frozen=True, kw_only=True):
    """The scheduled jobs, by their ids."""

    enabled: bool = True
    jobs: dict[str, CronJob] = msgspec.field(default_factory=dict[str, CronJob])


def check_cron(cron: Cron, findings: Findings) -> None:
    """Refuse a job that could never run, an invalid id or session, and more jobs than are looked after.

    Its agent may be one that a host registers.
    """
    if len(cron.jobs) > MOST_JOBS:
        findings.refuse("cron.jobs", f"{len(cron.jobs)} jobs are too many; give {MOST_JOBS} at most")
    for job_id, job in cron.jobs.items():
        path = f"cron.jobs.{job_id}"
        try:
            if SessionKey.cron("main", job_id).rest != f"cron:{job_id}":
                findings.refuse(path, f"{job_id!r} is no job id; use small letters, digits, - and _")
        except InvalidKey as error:
            findings.refuse(path, f"{job_id!r} is no job id: {error}")
        if job.agent_id is not None and not valid_agent_id(job.agent_id):
            findings.refuse(
                f"{path}.agentId", f"{job.agent_id!r} is no agent id; use [a-z0-9][a-z0-9_-]{{0,63}}"
            )
        target = job.session_target
        if target not in {"main", "isolated"} and not target.removeprefix("session:"):
            findings.refuse(f"{path}.sessionTarget", "names no session; give main, isolated or session:<key>")
        if target == "current":
            findings.refuse(
                f"{path}.sessionTarget", "'current' means nothing in a file; give session:<key> instead"
            )
        if (job.delivery.channel is None) != (job.delivery.to is None):
            missing = "channel" if job.delivery.channel is None else "to"
            findings.refuse(f"{path}.delivery.{missing}", "is missing; give channel and to together")
        _check_schedule(job.schedule, f"{path}.schedule", findings)


def _check_schedule(schedule: JobSchedule, path: str, findings: Findings) -> None:
    """Refuse a schedule without what its kind needs, or with what another kind has."""
    own = {"cron": ("expr", "tz"), "every": ("everyMs", "anchorMs"), "at": ("at", "tz")}[schedule.kind]
    given = {
        "expr": schedule.expr,
        "tz": schedule.tz,
        "everyMs": schedule.every_ms,
        "anchorMs": schedule.anchor_ms,
        "at": schedule.at,
    }
    if given[own[0]] is None:
        findings.refuse(f"{path}.{own[0]}", f"is missing; a schedule of kind {schedule.kind!r} has it")
    for name, value in given.items():
        if value is not None and name not in own:
            findings.refuse(f"{path}.{name}", f"means nothing for kind {schedule.kind!r}; take it out")
    if schedule.tz is not None and not is_zone(schedule.tz):
        what = f"{schedule.tz!r} is no time zone that this machine knows, use one such as Europe/Berlin"
        findings.refuse(f"{path}.tz", what)
        return
    try:
        if schedule.expr is not None:
            check_expression(schedule.expr)
    except ValueError as error:
        findings.refuse(f"{path}.expr", f"{schedule.expr!r} is no time of cron: {error}")
    try:
        if schedule.at is not None:
            moment_of(schedule.at, zone_of(schedule.tz))
    except (ValueError, OverflowError):
        findings.refuse(f"{path}.at", f"{schedule.at!r} is no moment; give one such as 2026-12-01T08:00")

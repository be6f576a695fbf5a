"""What becomes of a scheduled job, from its stream and the clock. Pure (CRON-2, CRON-3)."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from intersession_actors.rules.schedules.times import Times
from intersession_events.facts import ScheduleFired, ScheduleMissed, ScheduleSet
from intersession_events.log.recorded import Recorded

LATE_MS: Final = 60_000
"""A time that passed this long ago passed while nobody was there: the process was down, or its machine slept."""

CatchUp = Literal["once", "skip"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """How a job stands: how it is set, since when, and what came last of its times. `version` is that of its stream."""

    job_id: str
    version: int = 0
    set_at: int = 0
    set_ms: int = 0
    set: ScheduleSet | None = None
    last: ScheduleFired | ScheduleMissed | None = None

    @property
    def runs(self) -> bool:
        """Whether its times are due."""
        now = self.set
        return now is not None and now.schedule is not None and now.enabled and not now.paused

    @property
    def since_ms(self) -> int:
        """Up to which moment its times are dealt with."""
        return max(self.set_ms, 0 if self.last is None else self.last.due_ms)


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A job is to run for its time `due_ms`, and for as many before as `missed` says."""

    due_ms: int
    missed: int = 0

    def fired(self, job: Job, *, run_id: str, session_key: str, by: str | None = None) -> ScheduleFired:
        """Return the event that stands beside its run."""
        return ScheduleFired(
            job_id=job.job_id,
            due_ms=self.due_ms,
            set_at=job.set_at,
            run_id=run_id,
            session_key=session_key,
            missed=self.missed,
            by=by,
        )

    def refused(self, job: Job, error: str) -> ScheduleMissed:
        """Return the event that says that its run was refused."""
        return ScheduleMissed(
            job_id=job.job_id,
            due_ms=self.due_ms,
            set_at=job.set_at,
            reason="refused",
            times=self.missed + 1,
            error=error,
        )


def evolve(job: Job, recorded: Recorded) -> Job:
    """Apply one recorded event of the job's stream."""
    event, version = recorded.event, recorded.version
    match event:
        case ScheduleSet():
            return msgspec.structs.replace(
                job, version=version, set=event, set_at=version, set_ms=recorded.time
            )
        case ScheduleFired() | ScheduleMissed():
            return msgspec.structs.replace(job, version=version, last=event)
        case _:
            return job


def decide_set(
    job: Job, *, schedule: str | None, enabled: bool = True, at_ms: int | None = None, now_ms: int = 0
) -> Sequence[ScheduleSet | ScheduleMissed]:
    """Return what a configuration changes of a job; `schedule` None: it has no such job. `at_ms` is the only time of one that has one."""
    was = job.set
    if (was is None or was.schedule is None) and schedule is None:
        return ()
    if was is not None and (was.schedule, was.enabled) == (schedule, enabled):
        return ()
    paused = was is not None and was.paused and schedule is not None
    new = ScheduleSet(job_id=job.job_id, schedule=schedule, enabled=enabled, paused=paused)
    if schedule is None or at_ms is None or at_ms > now_ms:
        return (new,)
    past = ScheduleMissed(job_id=job.job_id, due_ms=at_ms, set_at=job.version + 1, reason="past")
    return new, past


def decide_pause(job: Job, *, paused: bool, by: str) -> Sequence[ScheduleSet]:
    """Return the pausing of a job, or its going on; nothing if it is so already."""
    was = job.set
    if was is None or was.paused == paused:
        return ()
    return (msgspec.structs.replace(was, paused=paused, by=by),)


def decide_due(
    job: Job, times: Times, *, catch_up: CatchUp, busy: bool, now_ms: int
) -> Due | ScheduleMissed | None:
    """Say what is due of a job: a run, or that its times passed without one; None if nothing is.

    `busy`: the last run of it is not over.
    """
    latest = times.latest(job.since_ms, now_ms) if job.runs else None
    if latest is None:
        return None
    number = times.number(job.since_ms, latest)
    late = now_ms - latest > LATE_MS
    if (late and catch_up == "skip") or busy:
        reason: Literal["down", "busy"] = "busy" if busy else "down"
        return ScheduleMissed(
            job_id=job.job_id, due_ms=latest, set_at=job.set_at, reason=reason, times=number
        )
    return Due(due_ms=latest, missed=number - 1)


def decide_now(job: Job, *, now_ms: int) -> Due:
    """Return the time of a job that somebody runs out of turn: one that it never had."""
    return Due(due_ms=max(now_ms, 0 if job.last is None else job.last.due_ms + 1))

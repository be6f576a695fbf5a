"""Watches the clock for scheduled jobs, on a thread of its own, and has each run when it is due (CRON).

What a job did and what it waits for is in its stream; the timer here is only the alarm. So nothing is lost by a stop, and a time that
was dealt with never comes again.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from intersession_actors.assembly.schedules.firing import fire
from intersession_actors.assembly.schedules.reading import known_jobs, last_run, read_job, schedule_text
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.streams.drafting import append_of
from intersession_actors.owners.streams.records import present, record_of
from intersession_actors.rules.config.cron import CronJob
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.schedules.deciding import (
    CatchUp,
    Due,
    Job,
    decide_due,
    decide_now,
    decide_pause,
    decide_set,
)
from intersession_actors.running.host.own_threads import filling
from intersession_actors.running.host.threads import Job as Work
from intersession_actors.running.host.threads import Workers
from intersession_actors.running.runtime.timers import Timers
from intersession_events.basics import ids
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ScheduleEvent, ScheduleMissed

T = TypeVar("T")
logger = logging.getLogger("intersession.schedules")

LOOK_AGAIN_MS: Final = 30_000
"""The wall clock can be set while a timer runs, so it is looked at this often."""
TRY_AGAIN_MS: Final = 5_000
ASKED_SECONDS: Final = 60.0
"""How long a caller waits for a job that is to run now."""
_TIMER: Final = ("schedules",)


class Scheduler:
    """Decides when jobs are due, and queues their runs. Its methods may be called from any thread."""

    def __init__(self, service: Service, *, timers: Timers) -> None:
        self._service = service
        self._timers = timers
        self._workers = Workers(1, keep=0, name="schedules", threads=service.blocking)
        self._known: set[str] | None = None
        """Jobs that the log has had, once it was asked."""
        self._stopped = False
        self.next_ms: int | None = None
        """When the next job is due, as far as it has been looked at."""

    @property
    def is_sealed(self) -> bool:
        """Whether no job runs here: the log is a fork (FORK-5)."""
        return self._service.log.forked is not None

    def start(self) -> None:
        """Begin to watch the clock, if there is any job.

        A command of the operator that has no configuration takes none out.
        """
        if self._service.config.cron.jobs:
            self.look()

    def look(self) -> None:
        """Look what is due, as the settings are now."""
        if not self.is_sealed and (self._known or self._service.config.cron.jobs):
            self._submit(self._look)

    def stop(self) -> None:
        """Run nothing more: what is due meanwhile is found by the next start."""
        self._stopped = True
        self._timers.cancel(_TIMER)
        self._workers.stop()

    def run(self, job_id: str, *, by: str, only_due: bool = False) -> str | None:
        """Run a job now, and return its run; None if it is `only_due`, and is not.

        Raises:
            ToolRefused: there is no such job, its last run is not over, or its run was refused.
        """
        return self._asked(lambda: self._run_now(job_id, by=by, only_due=only_due))

    def pause(self, job_id: str, *, paused: bool, by: str) -> bool:
        """Pause a job, or let it go on; return whether it was otherwise before.

        Raises:
            ToolRefused: there is no such job.
        """
        return self._asked(lambda: self._pause(job_id, paused=paused, by=by))

    def _asked(self, work: Callable[[], T]) -> T:
        if self.is_sealed:
            raise ToolRefused(
                "invalid_request", "jobId: no job runs in a fork, ask in the log it was made of"
            )
        future: Future[T] = Future()
        self._submit(filling(future, work))
        if self._stopped or not self._service.blocking.wait(future, ASKED_SECONDS):
            raise ToolRefused("unavailable", "the job was not looked at in time, try again")
        return future.result()

    def _submit(self, work: Callable[[], None]) -> None:
        try:
            self._workers.submit(Work(work))
        except RuntimeError:
            self._stopped = True

    # --- on the thread of its own

    def _look(self) -> None:
        pause_ms = LOOK_AGAIN_MS
        try:
            self._take_settings()
            comes = [self._take_turn(job_id, job) for job_id, job in self._service.config.cron.jobs.items()]
            self.next_ms = min((ms for ms in comes if ms is not None), default=None)
            if self.next_ms is not None:
                pause_ms = min(max(self.next_ms - self._service.clock.now_ms(), 1), LOOK_AGAIN_MS)
        except LogError as error:
            pause_ms = TRY_AGAIN_MS
            self._service.store_failed(error)
        except Exception:
            pause_ms = TRY_AGAIN_MS
            if not self._stopped:
                logger.exception("scheduled jobs could not be looked at")
        if not self._stopped and self._known:
            self._timers.after(pause_ms, _TIMER, self.look)

    def _take_settings(self) -> None:
        """Record which jobs there are now, where that is new."""
        cron, now_ms = self._service.config.cron, self._service.clock.now_ms()
        if self._known is None:
            self._known = known_jobs(self._service.log)
        for job_id in sorted(self._known - {*cron.jobs}):
            job = self._job(job_id)
            self._append(job, decide_set(job, schedule=None), record_of("SetSchedule"))
            self._known.discard(job_id)
        for job_id, settings in cron.jobs.items():
            at_ms = settings.schedule.times(0).at_ms or None
            job, text = self._job(job_id), schedule_text(settings)
            enabled = settings.enabled and cron.enabled
            given: JsonObject = {"schedule": text, "enabled": enabled, "atMs": at_ms}
            record = record_of("SetSchedule", present(given), {} if at_ms is None else {"nowMs": now_ms})
            self._append(
                job, decide_set(job, schedule=text, enabled=enabled, at_ms=at_ms, now_ms=now_ms), record
            )
            self._known.add(job_id)

    def _take_turn(self, job_id: str, settings: CronJob) -> int | None:
        """Do what is due of a job; return when it is due next."""
        job = self._job(job_id)
        times, now_ms = settings.schedule.times(job.set_ms), self._service.clock.now_ms()
        busy = self._is_busy(job)
        decided = decide_due(job, times, catch_up=settings.catch_up, busy=busy, now_ms=now_ms)
        record = _due_record(settings, now_ms, busy=busy)
        if isinstance(decided, Due):
            if not self._fire(job, settings, decided, record):
                return now_ms + TRY_AGAIN_MS
        elif decided is not None:
            self._missed(job, decided, record)
        job = self._job(job_id) if decided is not None else job
        return times.after(max(job.since_ms, now_ms)) if job.runs else None

    def _run_now(self, job_id: str, *, by: str, only_due: bool) -> str | None:
        settings = self._settings(job_id)
        self._take_settings()
        job, now_ms = self._job(job_id), self._service.clock.now_ms()
        if self._is_busy(job):
            raise ToolRefused("busy", f"jobId: the last run of {job_id} is not over, wait for it")
        if only_due:
            times = settings.schedule.times(job.set_ms)
            due = decide_due(job, times, catch_up="once", busy=False, now_ms=now_ms)
            if not isinstance(due, Due):
                return None
            record = _due_record(settings, now_ms, busy=False, catch_up="once")
            return fire(self._service, job, settings, due, decision=record).run_id
        record = record_of("RunSchedule", {"by": by}, {"nowMs": now_ms})
        due = decide_now(job, now_ms=now_ms)
        return fire(self._service, job, settings, due, decision=record, by=by).run_id

    def _pause(self, job_id: str, *, paused: bool, by: str) -> bool:
        self._settings(job_id)
        self._take_settings()
        job = self._job(job_id)
        decided = decide_pause(job, paused=paused, by=by)
        self._append(job, decided, record_of("PauseSchedule", present({"paused": paused, "by": by})))
        self._look()
        return bool(decided)

    def _settings(self, job_id: str) -> CronJob:
        jobs = self._service.config.cron.jobs
        if job_id not in jobs:
            known = ", ".join(jobs) or "none: cron.jobs of the configuration has them"
            raise invalid("jobId", f"there is no job {job_id!r}, the jobs are {known}")
        return jobs[job_id]

    def _fire(self, job: Job, settings: CronJob, due: Due, record: str) -> bool:
        """Run a job that is due, or record that it was refused; return whether that is so, or it is to be tried again."""
        try:
            fired = fire(self._service, job, settings, due, decision=record)
        except ToolRefused as refused:
            if refused.code in {"unavailable", "busy"}:
                logger.warning("the job %s waits: %s", job.job_id, refused.error)
                return False  # nothing is decided by that
            self._missed(job, due.refused(job, refused.error), record)
        else:
            if fired.missed:
                what = f"{fired.missed} earlier times of {job.job_id} passed while nobody was there"
                self._service.world.reports.tell("schedule_missed", stream=_stream(job), error=what)
        return True

    def _missed(self, job: Job, missed: ScheduleMissed, record: str) -> None:
        self._append(job, (missed,), record)
        self._service.world.reports.tell(
            "schedule_missed", stream=_stream(job), error=missed.error or missed.reason
        )

    def _append(self, job: Job, events: Sequence[ScheduleEvent], record: str) -> None:
        if not events:
            return
        log, now_ms = self._service.log, self._service.clock.now_ms()
        append = append_of(
            log.log_id,
            _stream(job),
            job.version,
            events,
            time=now_ms,
            causation=None,
            correlation=None,
            decision=record,
        )
        log.append_now((append,))

    def _job(self, job_id: str) -> Job:
        return read_job(self._service.log, job_id)

    def _is_busy(self, job: Job) -> bool:
        """Whether the last run of a job is not over."""
        run_id = last_run(self._service.log, job)
        run = None if run_id is None else self._service.runs.get(run_id)
        return run is not None and not run.ended


def _due_record(settings: CronJob, now_ms: int, *, busy: bool, catch_up: CatchUp | None = None) -> str:
    """Return the record of the decision about what is due: what it knew besides the job's stream."""
    knew = present({"catchUp": catch_up or settings.catch_up, "busy": busy, "nowMs": now_ms})
    return record_of("ScheduleDue", {}, knew)


def _stream(job: Job) -> str:
    return ids.schedule_stream(job.job_id)

"""The methods `cron.*`: the scheduled jobs of the configuration, when they run and what came of it (CRON-5)."""

from intersession_actors.assembly.methods.params import (
    CronListParams,
    CronRunParams,
    CronRunsParams,
    CronUpdateParams,
    NoParams,
)
from intersession_actors.assembly.schedules.reading import entries, job_value, key_of
from intersession_actors.assembly.schedules.scheduler import Scheduler
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.config.cron import CronJob
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonMapping, JsonObject


class GatewaySchedules:
    """Scheduled jobs for the gateway's callers. A limited one sees those of its own sessions."""

    def __init__(self, service: Service, scheduler: Scheduler) -> None:
        self._service = service
        self._scheduler = scheduler

    def list(self, call: Call, params: JsonMapping) -> Result:
        """Return the jobs of the configuration, with what came of each last and when it is due next."""
        given = read_arguments(CronListParams, params)
        reader = self._service.reader
        shown = [
            self._row(call, job_id, job)
            for job_id, job in sorted(reader.config.cron.jobs.items())
            if self._reaches(call, key_of(reader, job_id, job))
        ]
        if not given.include_disabled:
            shown = [row for row in shown if row["enabled"] and not row["paused"]]
        return {"jobs": shown}

    def status(self, call: Call, params: JsonMapping) -> Result:
        """Return whether jobs run here, their number, and when the next one is due."""
        read_arguments(NoParams, params)
        jobs = self.list(call, {})["jobs"]
        due = [row["state"]["nextRunAtMs"] for row in jobs if row["state"]["nextRunAtMs"] is not None]
        enabled = self._service.config.cron.enabled and not self._scheduler.is_sealed
        return {"enabled": enabled, "jobs": len(jobs), "nextWakeAtMs": min(due, default=None)}

    def runs(self, call: Call, params: JsonMapping) -> Result:
        """Return what came of a job's times, the newest first."""
        given = read_arguments(CronRunsParams, params)
        job_id, _ = self._seen(call, given.job_id, given.id)
        return {"jobId": job_id, "entries": entries(self._service.reader, job_id, given.limit)}

    def run(self, call: Call, params: JsonMapping) -> Result:
        """Run a job now."""
        given = read_arguments(CronRunParams, params)
        job_id, job = self._seen(call, given.job_id, given.id)
        run_id = self._scheduler.run(job_id, by=call.caller.name, only_due=given.mode == "due")
        if run_id is None:
            return {"ok": True, "ran": False, "reason": "not-due", "jobId": job_id}
        return {
            "ok": True,
            "ran": True,
            "jobId": job_id,
            "runId": run_id,
            "sessionKey": str(key_of(self._service.reader, job_id, job)),
        }

    def update(self, call: Call, params: JsonMapping) -> Result:
        """Pause a job, or let it go on."""
        given = read_arguments(CronUpdateParams, params)
        job_id, job = self._seen(call, given.job_id, given.id)
        changed = self._scheduler.pause(job_id, paused=not given.patch.enabled, by=call.caller.name)
        return {
            "ok": True,
            "changed": changed,
            "job": self._row(call, job_id, job),
        }

    def _seen(self, call: Call, job_id: str | None, older: str | None) -> tuple[str, CronJob]:
        """Return a job within the caller's reach.

        Raises:
            ToolRefused: there is none.
        """
        named = job_id or older
        if named is None:
            raise invalid("jobId", "missing, give it: `cron.list` shows the jobs")
        jobs, reader = self._service.config.cron.jobs, self._service.reader
        seen = [one for one, job in jobs.items() if self._reaches(call, key_of(reader, one, job))]
        if named not in seen:
            known = ", ".join(seen) or "none: cron.jobs of the configuration has them"
            raise invalid("jobId", f"there is no job {named!r}, the jobs are {known}")
        return named, jobs[named]

    def _reaches(self, call: Call, key: SessionKey | None) -> bool:
        return call.caller.is_operator or (key is not None and call.caller.reaches(key))

    def _row(self, call: Call, job_id: str, job: CronJob) -> JsonObject:
        row = job_value(self._service.reader, job_id, job)
        if row["sessionKey"] is not None:
            call.saw(row["sessionKey"])
        return row

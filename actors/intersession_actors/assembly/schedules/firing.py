"""Queues the run of a scheduled job, in one append with the event that says that it was due (CRON-2)."""

from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from intersession_actors.assembly.schedules.reading import route_for, session_of
from intersession_actors.calls.service import asking
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.session.commands import Enqueue, message_for
from intersession_actors.owners.streams.drafting import append_of
from intersession_actors.rules.config.cron import CronJob
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.policy.resetting import Renewal
from intersession_actors.rules.schedules.deciding import Due, Job
from intersession_actors.rules.schedules.times import zone_of
from intersession_events.basics import ids
from intersession_events.facts import (
    Provenance,
    RunQueued,
    ScheduleFired,
)

CRON: Final = "cron"
"""The name that scheduled runs are asked for by, and the channel that their messages come from."""


def fire(
    service: Service, job: Job, settings: CronJob, due: Due, *, decision: str, by: str | None = None
) -> ScheduleFired:
    """Queue the run of a job that is due, with the record of that decision; `by` runs it out of turn.

    Raises:
        ToolRefused: the run was refused, or the log did not take it (`unavailable`).
    """
    log_id, now_ms = service.log.log_id, service.clock.now_ms()
    key = session_of(service.reader, job.job_id, settings)
    run_id = ids.derive(log_id, "run", CRON, job.job_id, due.due_ms)
    fired = due.fired(job, run_id=run_id, session_key=str(key), by=by)
    payload = settings.payload
    limit_ms = service.config.run_timeout_ms()
    queued = RunQueued(
        run_id=run_id,
        session_id="",
        step="message",
        answers=ids.derive(log_id, "message", run_id),
        system_context=_told(job.job_id, settings, due),
        timeout_ms=limit_ms if payload.timeout_seconds is None else milliseconds(payload.timeout_seconds),
        route=route_for(service.reader, settings, key),
        caller=CRON,
        idempotency_key=run_id,
        request_digests=(asking.digest_of([str(key), payload.message]),),
        thinking=payload.thinking,
    )
    stream = ids.schedule_stream(job.job_id)
    asked = asking.MessageRequest(run_id, str(key), tool="cron.run", field="sessionTarget")
    with asking.reserving(service, Caller(name=CRON), asked) as origin:
        said_by = Provenance(kind="internal_system", source_channel=CRON)
        asking.ask_session(
            service,
            str(key),
            Enqueue(
                budget=origin.budget,
                message=message_for(queued, payload.message, said_by, now_ms),
                queue=queued,
                opening=replace(asking.opening(service, key, by="operator"), by=CRON),
                carried=(
                    append_of(
                        log_id,
                        stream,
                        job.version,
                        (fired,),
                        time=now_ms,
                        causation=None,
                        correlation=run_id,
                        decision=decision,
                    ),
                ),
                renewal=Renewal(command="run", by=CRON) if settings.session_target == "isolated" else None,
                at_most=service.config.runs.inbox_max,
            ),
        )
    return fired


def _told(job_id: str, settings: CronJob, due: Due) -> str:
    """Return what an agent is told of the job beside its message."""
    at = datetime.fromtimestamp(due.due_ms / 1000, UTC).astimezone(zone_of(settings.schedule.tz))
    named = job_id if settings.name is None else f"{job_id} ({settings.name})"
    missed = f" It stands for {due.missed} earlier times that were missed." if due.missed else ""
    return f"Scheduled job {named}, due {at.isoformat(timespec='seconds')}.{missed}"

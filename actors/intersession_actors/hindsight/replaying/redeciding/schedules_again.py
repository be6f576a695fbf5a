"""Decides each event of a scheduled job again, from the job's stream and its decision record. Pure (CRON-2, SEAL-1)."""

from collections.abc import Sequence

import msgspec

from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.owners.flows.rules import RecordRead
from intersession_actors.owners.streams.effects import Plan
from intersession_actors.owners.streams.records import Record
from intersession_actors.rules.config.cron import JobSchedule
from intersession_actors.rules.schedules.deciding import (
    Due,
    Job,
    decide_due,
    decide_now,
    decide_pause,
    decide_set,
)
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import Recorded


def decided_again(
    _: Sources, append: Sequence[Recorded], read: RecordRead, *, job: Job
) -> tuple[Record, Plan] | None:
    """Return what an append was decided upon, and its events by today's rules; None for a record of another kind."""
    events = _events(job, append, read.record, read.log_id)
    if events is None:
        return None
    run_id = next((one.run_id for one in events if isinstance(one, facts.ScheduleFired)), None)
    return read.record, Plan(events=tuple(events), correlation=run_id)


def _events(
    job: Job, append: Sequence[Recorded], record: Record, log_id: str
) -> Sequence[facts.Event] | None:
    """Return the events. Where a run is, and why it was refused, a door has found out: that is as it was."""
    first, inputs, knew = append[0].event, record.inputs, record.knew
    match record.asked:
        case "SetSchedule":
            return decide_set(
                job,
                schedule=inputs.get("schedule"),
                enabled=inputs.get("enabled", "schedule" not in inputs),
                at_ms=inputs.get("atMs"),
                now_ms=knew.get("nowMs", 0),
            )
        case "PauseSchedule":
            return decide_pause(job, paused=inputs.get("paused", False), by=inputs["by"])
        case "ScheduleDue" if job.set is not None and job.set.schedule is not None:
            schedule = msgspec.json.decode(job.set.schedule, type=JobSchedule)
            decided = decide_due(
                job,
                schedule.times(job.set_ms),
                catch_up=knew["catchUp"],
                busy=knew.get("busy", False),
                now_ms=knew["nowMs"],
            )
        case "RunSchedule":
            decided = decide_now(job, now_ms=knew["nowMs"])
        case _:
            return None
    if not isinstance(decided, Due):
        return () if decided is None else (decided,)
    if isinstance(first, facts.ScheduleMissed):
        return (decided.refused(job, first.error or ""),)
    run_id = ids.derive(log_id, "run", "cron", job.job_id, decided.due_ms)
    key = first.session_key if isinstance(first, facts.ScheduleFired) else ""
    return (decided.fired(job, run_id=run_id, session_key=key, by=inputs.get("by")),)

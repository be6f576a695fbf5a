"""Reads how scheduled jobs stand from the log and the configuration, for the scheduler, its methods and the command line."""

from typing import Final

import msgspec

from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.reader import Reader
from intersession_actors.rules.config.cron import CronJob
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.schedules.deciding import Job, evolve
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.ids import schedule_stream
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import KeyReference
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Route, ScheduleFired, ScheduleMissed
from intersession_events.log.log import ReadsEvents, ReadsViews
from intersession_events.log.recorded import Recorded

_SET: Final = "SELECT DISTINCT originator_id FROM stored_events WHERE originator_id >= 'schedule:' AND originator_id < 'schedule;'"


def schedule_text(settings: CronJob) -> str:
    """Return the source text of a job's schedule, as its stream has it."""
    given = msgspec.to_builtins(settings.schedule)
    return msgspec.json.encode(
        {name: value for name, value in given.items() if value is not None}, order="sorted"
    ).decode()


def known_jobs(log: ReadsViews) -> set[str]:
    """Return the jobs that a log has ever had."""
    return {stream.partition(":")[2] for (stream,) in log.query(_SET, ())}


def read_job(log: ReadsEvents, job_id: str) -> Job:
    """Return how a job stands, from two events of its stream, however long that is."""
    stream, job = schedule_stream(job_id), Job(job_id=job_id)
    newest = log.stream(stream, backwards=True, limit=1)
    if not newest:
        return job
    last = newest[0]
    if isinstance(last.event, ScheduleFired | ScheduleMissed):
        set_at = last.event.set_at
        for recorded in log.stream(stream, after=set_at - 1, to=set_at):
            job = evolve(job, recorded)
    elif last.version > 1:
        # What came last of its times stands before it, at once or behind other settings.
        job = _last_of(log, stream, job)
    return evolve(job, last)


def last_run(log: ReadsEvents, job: Job) -> str | None:
    """Return the run of a job that may be under way; None if there is none."""
    if isinstance(job.last, ScheduleMissed) and job.last.reason == "busy":
        # Each such time was missed for the run that is before all of them.
        for recorded in log.stream(schedule_stream(job.job_id), backwards=True):
            if isinstance(recorded.event, ScheduleFired):
                return recorded.event.run_id
    return job.last.run_id if isinstance(job.last, ScheduleFired) else None


def _last_of(log: ReadsEvents, stream: str, job: Job) -> Job:
    for recorded in log.stream(stream, backwards=True, limit=_FEW):
        if isinstance(recorded.event, ScheduleFired | ScheduleMissed):
            return evolve(job, recorded)
    return job


_FEW: Final = 20


def _firings(log: ReadsEvents, job_id: str, limit: int) -> list[Recorded]:
    """Return what came of a job's times, the newest first."""
    recorded = log.stream(schedule_stream(job_id), backwards=True, limit=limit + _FEW)
    return [one for one in recorded if isinstance(one.event, ScheduleFired | ScheduleMissed)][:limit]


def session_of(reader: Reader, job_id: str, settings: CronJob) -> SessionKey:
    """Return the session that a job speaks to.

    Raises:
        ToolRefused: `sessionTarget` is no session, or of an agent that is not here.
    """
    target = settings.session_target
    agent_id = settings.agent_id or reader.config.default_agent
    if target == "main":
        key = reader.main_key(agent_id)
    elif target == "isolated":
        key = SessionKey.cron(agent_id, job_id)
    else:
        text = target.removeprefix("session:")
        try:
            named = reader.config.refer(text, requester_agent=agent_id)
        except InvalidKey as error:
            raise invalid("sessionTarget", str(error)) from None
        if not isinstance(named, KeyReference):
            raise invalid("sessionTarget", f"{text!r} is no session key, give one such as agent:main:main")
        key = named.key
    if key.agent_id not in reader.config.agent_ids:
        raise ToolRefused("unknown_agent", f"agentId: {key.agent_id!r} is not configured")
    return key


def route_for(reader: Reader, settings: CronJob, key: SessionKey) -> Route | None:
    """Return where a job's answers go: as set, else where its session's go, else its agent's main session's."""
    delivery = settings.delivery
    if delivery.mode == "none":
        return None
    if delivery.channel is not None and delivery.to is not None:
        return Route(
            channel=delivery.channel,
            to=delivery.to,
            account=delivery.account_id,
            thread=delivery.thread_id,
        )
    own = route_of(reader.sessions.get(str(key)), key)
    main = reader.main_key(key.agent_id)
    return own or route_of(reader.sessions.get(str(main)), main)


def key_of(reader: Reader, job_id: str, settings: CronJob) -> SessionKey | None:
    """Return the session that a job speaks to; None where it can't: then each time of the job says why."""
    try:
        return session_of(reader, job_id, settings)
    except ToolRefused:
        return None


def job_value(reader: Reader, job_id: str, settings: CronJob) -> JsonObject:
    """Return a job as it is listed: how it is set, what came of it last, and when it is due next."""
    key = key_of(reader, job_id, settings)
    job = read_job(reader.log, job_id)
    route = None if key is None else route_for(reader, settings, key)
    return {
        "id": job_id,
        "name": settings.name,
        "enabled": settings.enabled and reader.config.cron.enabled,
        "paused": job.set is not None and job.set.paused,
        "schedule": msgspec.json.decode(schedule_text(settings)),
        "sessionTarget": settings.session_target,
        "sessionKey": None if key is None else str(key),
        "catchUp": settings.catch_up,
        "delivery": {"mode": settings.delivery.mode, "to": None if route is None else route.text},
        "state": _state(reader, job, settings),
    }


def _state(reader: Reader, job: Job, settings: CronJob) -> JsonObject:
    last = {} if job.last is None else entry_value(reader, job.last)
    coming = None
    if job.runs and reader.log.forked is None:
        coming = settings.schedule.times(job.set_ms).after(max(job.since_ms, reader.clock.now_ms()))
    return {
        "nextRunAtMs": coming,
        "lastRunAtMs": last.get("dueMs"),
        "lastStatus": last.get("status"),
        "lastError": last.get("error"),
        "lastRunId": last.get("runId"),
    }


def entry_value(reader: Reader, event: ScheduleFired | ScheduleMissed) -> JsonObject:
    """Return what came of a time of a job: `status` is that of its run, or `skipped`."""
    if isinstance(event, ScheduleMissed):
        return {
            "dueMs": event.due_ms,
            "status": "skipped",
            "reason": event.reason,
            "times": event.times,
            "error": event.error,
        }
    run = reader.runs.get(event.run_id)
    return {
        "dueMs": event.due_ms,
        "status": "queued" if run is None else run.status,
        "runId": event.run_id,
        "sessionKey": event.session_key,
        "missed": event.missed,
        "by": event.by,
        "error": None if run is None else run.error,
    }


def entries(reader: Reader, job_id: str, limit: int) -> list[JsonObject]:
    """Return what came of a job's times, the newest first, each with its position in the log."""
    return [
        {**entry_value(reader, recorded.event), "position": recorded.position}
        for recorded in _firings(reader.log, job_id, limit)
        if isinstance(recorded.event, ScheduleFired | ScheduleMissed)
    ]

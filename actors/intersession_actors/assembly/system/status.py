"""The answer of `status`: the log's head, awake and degraded actors, waiting work, events set aside."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from intersession_actors.assembly.schedules.reading import job_value
from intersession_actors.assembly.system.assembly import Assembly
from intersession_actors.assembly.system.settings import Settings
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.lists.hosts import hosts_of
from intersession_actors.outside.agents.runners import is_agent, runner_of
from intersession_actors.running.failures.failure import described
from intersession_events.basics.errors import LogError, StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import SessionPatched
from intersession_events.log.log import Log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.views.flows.held import held_value
from intersession_projections.views.held_calls import HeldCalls, held_call_value
from intersession_projections.views.held_sessions import HeldSessions

_NEWEST: Final = 20


def status_of(parts: Assembly, settings: Settings) -> JsonObject:
    """Return the system's status. If the log can't be read, its fields are left out, and its position is null."""
    log, writer = parts.service.log, parts.service.writer
    unread: str | None = None
    try:
        recorded = {
            "position": log.head(),
            "setAside": [msgspec.to_builtins(item) for item in log.set_aside()],
            "copy": parts.copied.status,
            "schedules": _schedules(parts),
            **_open_work(
                parts.service.reader,
                # A follower does not know which agents and channels the writer has.
                has_channel=lambda name: writer is not None or parts.caller.has(name),
                has_agent=lambda key: writer is not None or parts.executor.has(runner_of(key)),
            ),
        }
    except LogError as error:  # the caller of `status` is told just this
        recorded, unread = {"position": None}, described(error)
    return {
        "logId": log.log_id,
        "epoch": log.epoch,
        "writer": None if writer is None else writer.standing,
        **standing_of(parts, settings, unread=unread),
        "agents": [runner for runner in parts.executor.registered if is_agent(runner)],
        "channels": list(parts.caller.registered),
        "liveSessions": parts.supervisor.live_sessions,
        "channelCalls": msgspec.to_builtins(parts.caller.lanes.calls()),
        "failures": parts.reports.counts,
        **recorded,
        "notices": list(settings.notices),
    }


def standing_of(parts: Assembly, settings: Settings, *, unread: str | None = None) -> JsonObject:
    """Return the part of the status that needs no log: it is asked for often, and when the log is away.

    `unread` is why the log could not be read, where somebody tried.
    """
    log = parts.service.log
    store_error = parts.reports.store_error or unread or _gone(log)
    return {
        "store": {
            "available": store_error is None,
            "error": store_error,
            "startAgain": isinstance(log, PortableLog) and log.over is not None,
        },
        "degraded": parts.supervisor.degraded,
        "zombies": parts.executor.zombies,
        "channelZombies": parts.caller.zombies,
        "checkpoints": parts.checkpointer.status,
        "retention": parts.retention.status,
        "configError": settings.error,
    }


def _schedules(parts: Assembly) -> JsonObject:
    """Return the number of scheduled jobs, when the next one is due, and what is wrong with them: with the last time, or with where they announce."""
    reader = parts.service.reader
    jobs = [job_value(reader, job_id, job) for job_id, job in reader.config.cron.jobs.items()]
    trouble = {
        job["id"]: "its answer goes nowhere: give delivery.channel and to, or the mode none"
        for job in jobs
        if job["enabled"] and job["delivery"] == {"mode": "announce", "to": None}
    }
    trouble |= {
        job["id"]: job["state"]["lastError"] or job["state"]["lastStatus"]
        for job in jobs
        if job["state"]["lastStatus"] in {"skipped", "error", "timeout", "interrupted"}
    }
    return {"jobs": len(jobs), "nextMs": parts.scheduler.next_ms, "trouble": trouble}


def _gone(log: Log) -> str | None:
    """Return the state of a store without writes since; None while it is where it was opened."""
    try:
        if isinstance(log, PortableLog):
            log.look()
    except StoreUnavailable as error:
        return described(error)
    return None


def _open_work(
    reader: Reader, *, has_channel: Callable[[str], bool], has_agent: Callable[[str], bool]
) -> JsonObject:
    """Return what does not go on by itself: runs that wait for an agent, by session key, and deliveries, by channel and how they stand.

    And what is held until somebody releases it (LIVE-1), and those of the newest runs that failed and that nobody has tried again (GATE-6).

    `has_agent` is asked for a session's key, `has_channel` for a channel's name.
    """
    frozen = frozen_in(reader.log).runs
    holding = HeldSessions(reader.log)
    calls = HeldCalls(reader.log)
    open_runs, open_deliveries, held, held_sessions, open_calls, newest = reader.log.answers(
        reader.runs.ask_open(),
        reader.flows.ask_open_deliveries_by_channel(),
        reader.flows.ask_stopped(),
        holding.ask_positions(),
        calls.ask_open(),
        reader.runs.ask_newest(_NEWEST),
    )
    parked = Counter(
        run.session_key
        for run in open_runs
        if run.status == "queued" and run.run_id not in frozen and not has_agent(run.session_key)
    )
    deliveries: dict[str, Counter[str]] = {"waiting": Counter(), "retrying": Counter(), "underWay": Counter()}
    for channel, state, number in open_deliveries:
        if not has_channel(channel):
            deliveries["waiting"][channel] += number
        elif state == "retrying":
            deliveries["retrying"][channel] += number
        else:
            deliveries["underWay"][channel] += number
    return {
        "fork": _fork(reader),
        "hosts": hosts_of(reader.log, open_runs, most=_NEWEST),
        "parkedRuns": dict(parked),
        "deliveries": {name: dict(numbers) for name, numbers in deliveries.items()},
        "held": [held_value(exchange) for exchange in held],
        "heldCalls": [held_call_value(one) for one in calls.at(open_calls)],
        "heldSessions": {
            recorded.stream.partition(":")[2]: recorded.event.values["hold"]
            for recorded in holding.at(held_sessions)
            if isinstance(recorded.event, SessionPatched)
        },
        "failedRuns": [
            {"runId": run.run_id, "sessionKey": run.session_key, "errorCode": run.code}
            for run in reader.runs.not_retried(newest)
        ],
    }


def _fork(reader: Reader) -> JsonObject | None:
    """Return of which log this one is a fork, and what stays as it was at its cut (FORK-6); None if it is no fork."""
    forked = reader.log.forked
    if forked is None:
        return None
    frozen = frozen_in(reader.log)
    return {
        "from": {"logId": forked.log_id, "position": forked.position},
        "flow": forked.flow,
        "frozen": {"flows": sorted(frozen.flows), "runs": sorted(frozen.runs)},
    }

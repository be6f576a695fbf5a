"""What is wrong now, and what to do: in the process that writes a log, with its sessions, with the clock. For `health`, `status`, `doctor`."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from intersession_events.basics.ids import CLOCK
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.basics.times import length, moment
from intersession_events.facts import ClockStepped
from intersession_events.facts.reasons import counted
from intersession_events.log.log import Log
from intersession_projections.views.positions import Positions

Level = Literal["error", "warning", "note"]
"""`error`: somebody gets no answer, or something can be lost; `warning`: something stands still; `note`: good to know."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding. `code` stays the same from version to version; `what` and `advice` are for people."""

    code: str
    level: Level
    what: str
    advice: str


def wrong(code: str, what: str, advice: str) -> Finding:
    """Return a finding of level `error`: messages stay unanswered, or data can be lost."""
    return Finding(code=code, level="error", what=what, advice=advice)


def warning(code: str, what: str, advice: str) -> Finding:
    """Return a finding of level `warning`: some work stands still."""
    return Finding(code=code, level="warning", what=what, advice=advice)


def note(code: str, what: str, advice: str) -> Finding:
    """Return a finding of level `note`: good to know."""
    return Finding(code=code, level="note", what=what, advice=advice)


def process_findings(status: JsonMapping) -> Iterator[Finding]:
    """Yield what is wrong in the process: the store, actors given up, calls that never returned, waiting work.

    `status` is what the method of that name answers, or a part of it. The process may be of another version, which says less.
    """
    store: JsonObject = status.get("store") or {}
    failures: JsonObject = status.get("failures") or {}
    degraded: JsonObject = status.get("degraded") or {}
    parked: JsonObject = status.get("parkedRuns") or {}
    deliveries: JsonObject = status.get("deliveries") or {}
    waiting: JsonObject = deliveries.get("waiting") or {}
    if store.get("available") is False:
        why = f": {store['error']}" if store.get("error") else ""
        yield wrong(
            "store_away",
            f"the process can't use its store{why}",
            "mend what it says, and start the process again: it writes nothing more, and what was acknowledged is in the log"
            if store.get("startAgain")
            else "free space or mend the disk; the process goes on by itself then",
        )
    if refused := failures.get("batch_refused"):
        yield warning(
            "batch_refused",
            f"{refused} batches of appends were refused, and written one by one, which is slow",
            "report it, with the line of the process's log (`intersession.store`) that names the statement",
        )
    for name, reason in degraded.items():
        yield wrong(
            "set_aside",
            f"{name} can't go on: {reason}",
            "look at the traceback in the process's log; `intersession verify`; a new start tries it again",
        )
    for field, what in (("zombies", "agents"), ("channelZombies", "channels")):
        if status.get(field):
            yield warning(
                "zombies",
                f"{status[field]} calls of {what} were given up and have not come back; each keeps a thread",
                f"give the code of your {what} limits of time; a new start frees the threads",
            )
    for key, number in parked.items():
        yield warning(
            "parked_runs",
            f"{number} messages wait in {key}: its agent is not registered in the process",
            "register the agent, give it a model (agents.list, models.providers), or start a worker that has it: `intersession work`",
        )
    for channel, number in waiting.items():
        yield warning(
            "channel_missing",
            f"{number} texts wait for channel {channel!r}, which nobody registered in the process",
            f"register it, configure channels.{channel}.deliver, or start a worker: `intersession work --channel {channel}`",
        )
    yield from _of_schedules(status.get("schedules") or {})
    yield from _of_checkpoints(status.get("checkpoints") or {})
    yield from _of_retention(status.get("retention") or {})
    if status.get("configError"):
        yield wrong(
            "config_refused",
            f"a changed configuration was refused, the old one is in force: {status['configError']}",
            "mend the file: `intersession config check FILE`",
        )
    for item in status.get("setAside") or ():
        yield wrong(
            "event_unreadable",
            f"an event could not be taken into the views: {item}",
            "`intersession verify` says whether the log is damaged",
        )


def _of_schedules(schedules: JsonMapping) -> Iterator[Finding]:
    trouble: JsonObject = schedules.get("trouble") or {}
    for job, why in trouble.items():
        yield warning(
            "schedule_missed",
            f"the scheduled job {job} does not do what it is there for: {why}",
            f"`intersession schedules runs {job}` says more; `intersession schedules run {job}` runs it now",
        )


def _of_retention(retention: JsonMapping) -> Iterator[Finding]:
    last: JsonObject = retention.get("last") or {}
    if retention.get("error"):
        yield wrong(
            "retention_stuck",
            f"what is too old by retention could not be erased: {retention['error']}",
            "mend what it says; it is tried again within ten minutes",
        )
    if waiting := last.get("waiting"):
        yield note(
            "retention_waits",
            f"words that are too old are still under way in {counted(len(waiting), 'stream')}, {waiting[0]} first",
            "end what is open there: `intersession runs --open`; the next pass erases it",
        )


def _of_checkpoints(checkpoints: JsonMapping) -> Iterator[Finding]:
    publish_errors: JsonObject = checkpoints.get("publishErrors") or {}
    if checkpoints.get("error"):
        yield wrong(
            "checkpoint_failed",
            f"the process takes no checkpoints any more: {checkpoints['error']}",
            "`intersession verify` says whether the log is damaged; a new start tries it again",
        )
    for target, error in publish_errors.items():
        yield warning(
            "publish_failed",
            f"checkpoints can't be published to the {target}: {error}",
            f"look at {publishing_setting(target)}; it is tried again by itself",
        )


def publishing_setting(target: str) -> str:
    """Return the setting that names a target of checkpoints."""
    kind = target.split(" ", maxsplit=1)[0]
    return {"witness": "checkpoints.witnesses", "timestamp": "checkpoints.timestamp"}.get(
        kind, f"checkpoints.publish.{kind}"
    )


def full_findings(sessions: Iterable[tuple[str, int | None]]) -> Iterator[Finding]:
    """Yield the sessions that nearly fill their model's window, or exceed it; each with its percentage (CTX-4)."""
    known = [(key, filled) for key, filled in sessions if filled is not None and filled >= _FILLING]
    over = [key for key, filled in known if filled > _FULL]
    near = [f"{key} ({filled} %)" for key, filled in known if filled <= _FULL]
    if over:
        yield warning(
            "sessions_full",
            f"of {len(over)} sessions the oldest messages are left out, since their model takes no more: {_some(over)}",
            "reset them, give their agents a model with a larger window, or say its window: contextWindow of the model",
        )
    if near:
        yield note(
            "sessions_filling",
            f"{len(near)} sessions fill the window of their model: {_some(near)}",
            "reset them, or the oldest messages will be left out",
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


_COPY_OLD_MS: Final = 8 * 24 * 3_600_000


def copy_findings(copy: JsonMapping | None) -> Iterator[Finding]:
    """Yield whether the log has gone on for long since its last copy (COPY-5), if one is known."""
    if copy is not None and copy["staleMs"] > _COPY_OLD_MS:
        yield warning(
            "copy_old",
            f"the last copy of the log that is known was taken {length(copy['ageMs'])} ago by {copy['by']}, up to position "
            f"{copy['position']}: {counted(copy['behind'], 'event')} behind that are in none",
            "take one (`intersession backup FILE`), and see why whatever took the others takes none any more",
        )


_FILLING: Final = 80
_FULL: Final = 100
_NAMED: Final = 5


_AHEAD_MS: Final = 300_000


def clock_findings(log: Log, now_ms: int) -> Iterator[Finding]:
    """Yield the steps of the clock, and whether the log's time is minutes ahead of it (L8).

    The last step is a warning where it went ahead: what is recorded since has the time that the clock tells now. A log that no process
    writes has no time that falls before the next start.
    """
    positions = Positions(log)
    latest = positions.latest_time()
    if latest is not None and latest - now_ms > _AHEAD_MS:
        yield warning(
            "log_ahead",
            f"the log's time is {moment(latest)} UTC, which is later than this machine's clock ({moment(now_ms)} UTC), from position "
            f"{positions.position_at(now_ms) + 1} on: a clock was wrong then, or this one is now",
            "look at the machine's clock; with the next event that is recorded by a clock that is right, the log's time comes "
            "back: until then name places by position, not by time",
        )
    last = next(iter(log.stream(CLOCK, backwards=True, limit=1)), None)
    if last is not None and isinstance(last.event, ClockStepped):
        step = last.event
        is_back = step.to_ms < step.from_ms
        said = (
            f"the clock stepped {counted(last.version, 'time')}, the last time {'back' if is_back else 'ahead'} by "
            f"{length(abs(step.to_ms - step.from_ms))}, from {moment(step.from_ms)} to {moment(step.to_ms)} UTC, at position "
            f"{last.position}"
        )
        if is_back:
            yield note(
                "clock_stepped",
                said,
                "nothing to do if the clock is right now: what was recorded with a later time before counts as of that time",
            )
        else:
            yield warning(
                "clock_stepped",
                said,
                "look at the machine's clock, unless it was set right then, or the machine had slept: events have its time",
            )

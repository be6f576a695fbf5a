"""The effects of a spawn's events beside the steps in the same append, and those that an open spawn repeats. Pure."""

from collections.abc import Sequence

from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.spawn.commands import ArchiveDue
from intersession_actors.owners.spawn.rules import Spawn
from intersession_actors.owners.streams.commands import Accepted, Refused
from intersession_actors.owners.streams.effects import (
    DropStopwatch,
    Effect,
    Pass,
    Report,
    Sleep,
    StartStopwatch,
    TellFlow,
    Until,
)
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import Recorded


class Prepare(Effect, frozen=True):
    """Put a child's files in place and open its thread; `again`: a crash may have interrupted this."""

    accepted: facts.SpawnAccepted
    caused: CausedBy
    again: bool = False


class TellStarted(Effect, frozen=True):
    """Tell all that wait for the child whether it is there."""

    outcome: Accepted | Refused


class ThreadRecorded(Effect, frozen=True):
    """The outcome of the request for a thread is recorded."""

    key: str


class RemoveFiles(Effect, frozen=True):
    """Remove a child's files (ATT-5)."""

    accepted: facts.SpawnAccepted
    files: facts.Attachments


def effects(state: Spawn, recorded: Recorded, limits: Config) -> Sequence[Effect]:
    """Return the effects of a durable event; `state` is the spawn after it."""
    del limits
    asked = list[Effect]()
    for event in facts.parts_of(recorded.event):
        match event:
            case facts.SpawnAccepted():
                begun = prepared(state, recorded.id) if state.phase == "preparing" else _STARTED
                asked += (Pass("P2"), begun)
            case facts.ThreadOpened() | facts.AttachmentsReady():
                asked += (Pass("P4"), *_thread_recorded(state), _STARTED)
            case facts.ChildEnded():
                asked.append(StartStopwatch(("ended", recorded.stream)))
            case facts.AnnounceDecided(silent=True):
                asked.append(Pass("A4"))
            case facts.SpawnClosed():
                asked += _thread_recorded(state)
                if state.not_started:
                    asked.append(TellStarted(why_not_started(event)))
                asked += clean_up(state)
            case facts.ChildArchived():
                asked += (DropStopwatch(("ended", recorded.stream)), *_files(state))
            case facts.AttachmentRemovalFailed(directory=directory, error=error):
                fields = {"stream": recorded.stream, "error": f"{directory}: {error}"}
                asked.append(Report("files_left", fields))
            case _:
                pass
    return asked


def prepared(state: Spawn, cause: str | None, *, again: bool = False) -> Prepare:
    """Return the effect that prepares a child; the channel's code runs as part of the spawn's chain."""
    accepted = state.accepted
    asking = accepted.requester or accepted.child
    return Prepare(accepted, CausedBy(session_key=asking, budget=state.budget, event=cause), again)


def clean_up(state: Spawn) -> Sequence[Effect]:
    """Return the remaining effects of an ended spawn: its child is archived in time, its files are removed (SPAWN-11, ATT-5)."""
    stream, after_ms, ended = ids.spawn_stream(state.accepted.spawn_id), state.archive_after_ms, state.ended
    watch = ("ended", stream)
    if after_ms is None:
        return DropStopwatch(watch), *_files(state)
    until = (Until(watch, ended.ended_ms or 0, after_ms),) if after_ms and ended is not None else ()
    return Sleep(("archive", stream), TellFlow(ArchiveDue(stream=stream)), after_ms, until), *_files(state)


_STARTED = TellStarted(Accepted(recorded=()))


def _thread_recorded(state: Spawn) -> Sequence[Effect]:
    thread = state.accepted.thread
    return () if thread is None else (ThreadRecorded(thread.key),)


def _files(state: Spawn) -> Sequence[Effect]:
    files = state.files_due
    return () if files is None else (RemoveFiles(state.accepted, files),)


def why_not_started(closed: facts.SpawnClosed) -> Refused:
    """Return the answer about a child that never existed."""
    codes: dict[str | None, RefusalCode] = {code: code for code in REFUSAL_CODES}
    return Refused(
        code=codes.get(closed.code, "internal"),
        error=closed.note or "the sub-agent could not be started, spawn again",
    )

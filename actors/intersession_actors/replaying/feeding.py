"""Which command led to an event that nobody decided: what people, agents, channels and timers did, from what was recorded of it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from intersession_actors.agents import Answered, Broke
from intersession_actors.channels import Delivered, NotDelivered
from intersession_actors.delivery import (
    DeliveryReturned,
    GiveUpDelivery,
    RetryDelivery,
    RetryDue,
    TooOld,
    ended_in,
)
from intersession_actors.errors import REFUSAL_CODES, RefusalCode
from intersession_actors.exchange import HoldExchange, OpenExchange, ReleaseExchange
from intersession_actors.policy import budget_of
from intersession_actors.replaying.looked_at import TOO_OLD
from intersession_actors.replaying.recording import Recording
from intersession_actors.session import (
    Abort,
    AddMessage,
    Archive,
    DeadlinePassed,
    Enqueue,
    Patch,
    RecordMessages,
    Reset,
    RunReturned,
    Unbind,
    Wake,
    ended_again,
)
from intersession_actors.spawn import ArchiveDue, FilesRemoved, OpenSpawn, Prepared
from intersession_actors.streams import ChildGone, Command, Refused, Resume, RunEnded
from intersession_events import facts
from intersession_events.facts import Budget, text_of
from intersession_events.ids import delivery_stream, derive, session_stream, spawn_stream
from intersession_events.log import Recorded

GIVEN_UP = "given up by "
CUT_OFF = "cut off in the middle of attempt "
_READY = facts.ThreadOpened | facts.AttachmentsReady


class ToSession(NamedTuple):
    """A command to a session's actor."""

    key: str
    command: Command


class ToFlow(NamedTuple):
    """A command to the manager of a flow. `cut_off`: the process that had made the attempt under way was gone."""

    stream: str
    command: Command
    cut_off: bool = False


def command_for(recorded: Recorded, recording: Recording) -> ToSession | ToFlow | None:
    """Return what led to the next event of a stream; None where an actor decides it by itself, or it is not known."""
    kind = recorded.stream.partition(":")[0]
    match kind:
        case "session":
            return _to_session(recorded, recording)
        case "exchange":
            return _to_exchange(recorded, recording)
        case "spawn":
            return _to_spawn(recorded, recording)
        case "delivery":
            return _to_delivery(recorded, recording)
        case _:
            return None


def goes_on(recorded: Recorded, recording: Recording) -> ToSession | ToFlow | None:
    """Return what a start tells whoever leads a stream that was open; None where it had not begun.

    A process that has come to its end is an outside event that the log doesn't have: what was to be told was not told then.
    """
    stream = recording.decided_in(recorded)
    past = recording.past(stream)
    if stream.startswith("session:"):
        return ToSession(stream.partition(":")[2], Wake())
    if not past:
        return None
    if isinstance(recorded.event, facts.ChildArchived):
        return ToFlow(stream, ChildGone(stream=stream))
    runs = (facts.run_named(item.event) for item in reversed(past))
    run_id = next((run_id for run_id in runs if run_id is not None), None)
    deliveries = (facts.delivery_named(item.event) for item in past)
    ended = [
        _run_ended(stream, run_id, recording),
        *(
            ended_in(recording.past(delivery_stream(delivery_id)))
            for delivery_id in deliveries
            if delivery_id is not None
        ),
    ]
    return ToFlow(stream, Resume(stream=stream, ended=tuple(one for one in ended if one is not None)))


def _run_ended(stream: str, run_id: str | None, recording: Recording) -> RunEnded | None:
    """Return how the run that a flow waits for had ended, if it had."""
    of_run = [
        item for item in recording.of_run(run_id or "") if item.version <= recording.version(item.stream)
    ]
    end = next((item for item in of_run if isinstance(item.event, facts.RunEnd)), None)
    if end is None:
        return None
    past = recording.past(end.stream)
    ended = ended_again(stream, [item for item in past if of_run[0].version <= item.version <= end.version])
    return None if ended is None else msgspec.structs.replace(ended, thread=_thread_of(past))


def _thread_of(session: Sequence[Recorded]) -> facts.Route | None:
    """Return the thread that a session is bound to after these events; a start tells a spawn of it (SPAWN-12)."""
    for item in reversed(session):
        match item.event:
            case facts.ThreadBound() as bound:
                return bound.route
            case facts.ThreadUnbound():
                return None
            case _:
                pass
    return None


# --- sessions


def _to_session(recorded: Recorded, recording: Recording) -> ToSession | ToFlow | None:  # noqa: C901, PLR0912 - one case an event
    key = recorded.stream.partition(":")[2]
    together = recording.append_ahead(recorded.stream)
    flow = recording.decided_in(recorded)
    if flow != recorded.stream:
        return _began(flow, recording)
    said = _said(key, together)
    if said is not None:
        return said
    match recorded.event:
        case facts.MessageRecorded(message=message) if message.run_id is not None:
            return ToSession(key, _of_run(key, together, recording))
        case facts.MessageRecorded(message=message):
            return ToSession(key, AddMessage(message=message))
        case facts.RunCompleted() as event:
            return ToSession(key, _returned(event, (), recording.log_id))
        case facts.RunFailed(code="timeout") as event:
            return ToSession(key, DeadlinePassed(run_id=event.run_id, attempt=event.attempt))
        case facts.RunFailed(code="limit"):
            return None
        case facts.RunFailed(code="target_gone", attempt=0) if gone := _archived(key, together, recording):
            return gone
        case facts.RunFailed() as event:
            broke = Broke(code=event.code, error=event.error, traceback=event.traceback)
            return ToSession(key, RunReturned(run_id=event.run_id, attempt=event.attempt, result=broke))
        case facts.RunInterrupted() as event:
            broke = Broke(code="interrupted", error="interrupted")
            return ToSession(key, RunReturned(run_id=event.run_id, attempt=event.attempt, result=broke))
        case facts.RunAborted() as event:
            return _archived(key, together, recording) or _aborted(key, event, together)
        case facts.LateReplyDropped() as event:
            late = RunReturned(
                run_id=event.run_id,
                attempt=event.attempt,
                result=Answered(text=event.reply),
                causation=recorded.causation,
                correlation=recorded.correlation,
            )
            return ToSession(key, late)
        case facts.SessionOpened() as event:
            patched = next(
                (item.event for item in together if isinstance(item.event, facts.SessionPatched)), None
            )
            return ToSession(key, _patch(patched or facts.SessionPatched(), event))
        case facts.SessionPatched() as event:
            return ToSession(key, _patch(event, None))
        case facts.SessionReset() as event:
            return ToSession(key, Reset(session_id=event.session_id, reason=event.reason))
        case facts.SessionArchived():
            return _archived(key, together, recording)
        case facts.ThreadUnbound(reason="archived"):
            return _archived(key, together, recording)
        case facts.ThreadUnbound() as event:
            return ToSession(key, Unbind(only_due=event.reason in {"idle", "max_age"}))
        case _:
            return None


def _said(key: str, together: list[Recorded]) -> ToSession | None:
    """Return the message that an append began with, after what came with it: an opening, a route, a run that it stopped."""
    opening: facts.SessionOpened | None = None
    bound: facts.ThreadBound | None = None
    route: facts.RouteChanged | None = None
    by: str | None = None
    for number, item in enumerate(together):
        match item.event:
            case facts.SessionOpened() as event:
                opening = event
            case facts.ThreadBound() as event:
                bound = event
            case facts.RouteChanged() as event:
                route = event
            case facts.RunAborted() as event:
                by = event.by
            case facts.MessageRecorded(message=message):
                queued, patch = _queued(together[number + 1 : number + 3], message.id)
                if queued is None and (
                    message.run_id is not None or (opening, route, by, patch) == (None,) * 4
                ):
                    return None
                first = together[0]
                budget = (
                    budget_of(queued, first.correlation, first.time)
                    if queued is not None
                    else Budget(root=first.correlation or "")
                )
                return ToSession(
                    key,
                    Enqueue(
                        budget=budget,
                        message=message,
                        queue=queued,
                        opening=opening,
                        bound=bound,
                        route=route,
                        patch=patch,
                        interrupts=by,
                        causation=first.causation,
                    ),
                )
            case _:
                return None
    return None


def _queued(
    behind: list[Recorded], message_id: str
) -> tuple[facts.RunQueued | None, facts.SessionPatched | None]:
    patch: facts.SessionPatched | None = None
    for item in behind:
        match item.event:
            case facts.RunQueued() as event if event.message_id == message_id:
                return event, patch
            case facts.SessionPatched() as event:
                patch = event
            case _:
                break
    return None, patch


def _began(flow: str, recording: Recording) -> ToFlow | None:
    """Return what led to a step of a flow whose message comes before the flow's own event, unless an actor decides it by itself.

    It is what began the flow, or a child that had to wait for files or a thread.
    """
    first = recording.ahead(flow)
    if first is None or not (first.version == 1 or isinstance(first.event, _READY)):
        return None
    found = command_for(first, recording)
    return found if isinstance(found, ToFlow) else None


def _of_run(key: str, together: list[Recorded], recording: Recording) -> RecordMessages | RunReturned:
    """Return what an agent recorded, or answered: an answer ends in the end of its run."""
    messages: list[facts.Message] = []
    for item in together:
        match item.event:
            case facts.MessageRecorded(message=message):
                messages.append(message)
            case facts.RunCompleted() as event:
                return _returned(event, tuple(messages), recording.log_id)
            case _:
                break
    run_id = messages[0].run_id or ""
    own = [message for message in messages if message.run_id == run_id]
    return RecordMessages(run_id=run_id, attempt=_attempt(key, run_id, recording), messages=tuple(own))


def _attempt(key: str, run_id: str, recording: Recording) -> int:
    for item in reversed(recording.past(session_stream(key))):
        if isinstance(item.event, facts.RunStarted) and item.event.run_id == run_id:
            return item.event.attempt
    return 1


def _returned(event: facts.RunCompleted, messages: tuple[facts.Message, ...], log_id: str) -> RunReturned:
    only = derive(log_id, "message", event.run_id, "reply", event.attempt)
    text, given = event.reply, messages
    if messages and messages[-1].id == only:
        text, given = text_of(messages[-1]), messages[:-1]
    answered = Answered(
        text=text,
        usage=event.usage,
        model=event.model,
        messages=given or None,
        stop_reason=event.stop_reason,
        notes=event.notes,
    )
    return RunReturned(run_id=event.run_id, attempt=event.attempt, result=answered)


def _aborted(key: str, event: facts.RunAborted, together: list[Recorded]) -> ToSession:
    several = sum(isinstance(item.event, facts.RunAborted) for item in together) > 1
    return ToSession(key, Abort(run_id=None if several else event.run_id, by=event.by))


def _archived(key: str, together: list[Recorded], recording: Recording) -> ToSession | ToFlow | None:
    """Return what archived a session, with all that was under way or waited in it: somebody, or its spawn, whose time had come."""
    archived = next((item.event for item in together if isinstance(item.event, facts.SessionArchived)), None)
    if archived is None:
        return None
    opened = (item.event for item in reversed(recording.past(session_stream(key))))
    spawn_id = next((event.spawn_id for event in opened if isinstance(event, facts.SessionOpened)), None)
    flow = spawn_stream(spawn_id or "")
    if archived.reason in {"cleanup", "expired"} and recording.has(flow):
        return ToFlow(flow, ArchiveDue(stream=flow))
    return ToSession(key, Archive(reason=archived.reason))


def _patch(event: facts.SessionPatched, opening: facts.SessionOpened | None) -> Patch:
    return Patch(values=event.values, cleared=event.cleared, by=event.by, opening=opening)


# --- flows


def _to_exchange(recorded: Recorded, recording: Recording) -> ToFlow | None:
    stream = recorded.stream
    match recorded.event:
        case facts.HoldRequested(before=before, by=by):
            return ToFlow(stream, HoldExchange(stream=stream, before=before, by=by))
        case facts.HoldWithdrawn(by=by):
            return ToFlow(stream, ReleaseExchange(stream=stream, action="go_on", by=by))
        case facts.ExchangeReleased() as event:
            release = ReleaseExchange(
                stream=stream,
                action=event.action,
                by=event.by,
                text=event.text,
                hold_id=event.hold_id,
                for_good=event.for_good,
            )
            return ToFlow(stream, release)
        case facts.ExchangeAccepted() as event:
            return _accepted(recorded, event, recording)
        case _:
            return None


def _accepted(recorded: Recorded, accepted: facts.ExchangeAccepted, recording: Recording) -> ToFlow:
    opening: facts.SessionOpened | None = None
    timeout_ms = 0
    target = session_stream(accepted.target)
    version = recording.message_version(accepted.target, accepted.message_id) or 0
    for item in (recording.at(target, near) for near in range(version - 3, version + 3)):
        match item.event if item is not None else None:
            case facts.SessionOpened() as event:
                opening = event
            case facts.RunQueued() as event if event.run_id == accepted.run_id:
                timeout_ms = event.timeout_ms
            case _:
                pass
    budget = budget_of(accepted, recorded.correlation, recorded.time)
    command = OpenExchange(
        budget=budget,
        accepted=accepted,
        opening=opening,
        run_timeout_ms=timeout_ms,
        causation=recorded.causation,
    )
    return ToFlow(recorded.stream, command)


def _to_spawn(recorded: Recorded, recording: Recording) -> ToFlow | None:
    stream = recorded.stream
    match recorded.event:
        case facts.SpawnAccepted() as accepted:
            budget = budget_of(accepted, recorded.correlation, recorded.time)
            return ToFlow(stream, OpenSpawn(budget=budget, accepted=accepted, causation=recorded.causation))
        case facts.ThreadOpened() | facts.AttachmentsReady():
            ahead = [item.event for item in recording.append_ahead(stream)]
            thread = next((one for one in ahead if isinstance(one, facts.ThreadOpened)), None)
            files = next((one for one in ahead if isinstance(one, facts.AttachmentsReady)), None)
            command = Prepared(
                stream=stream,
                manifest_sha256=None if files is None else files.manifest_sha256,
                files_withheld=files is not None and files.withheld,
                thread=None if thread is None else thread.route,
                thread_withheld=thread is not None and thread.withheld,
            )
            return ToFlow(stream, command)
        case facts.SpawnClosed(note=note, code=code) if not _began_a_child(recorded, recording):
            known: RefusalCode = "unavailable"
            for one in REFUSAL_CODES:
                if one == code:
                    known = one
            refused = Refused(code=known, error=note or "it could not be prepared")
            return ToFlow(stream, Prepared(stream=stream, refused=refused))
        case facts.ChildArchived(reason="deleted"):
            return None
        case facts.ChildArchived():
            return ToFlow(stream, ArchiveDue(stream=stream))
        case facts.AttachmentsRemoved():
            return ToFlow(stream, FilesRemoved(stream=stream))
        case facts.AttachmentRemovalFailed(error=error):
            return ToFlow(stream, FilesRemoved(stream=stream, error=error))
        case _:
            return None


def _began_a_child(recorded: Recorded, recording: Recording) -> bool:
    return any(not isinstance(item.event, facts.SpawnAccepted) for item in recording.past(recorded.stream))


def _to_delivery(recorded: Recorded, recording: Recording) -> ToFlow | None:
    stream = recorded.stream
    match recorded.event:
        case facts.DeliveryDone() as event:
            result = Delivered(receipt=event.receipt, cut_at=event.cut_at)
            return ToFlow(stream, DeliveryReturned(stream=stream, attempt=event.attempt, result=result))
        case facts.DeliveryFailed(error=error) if error.endswith(TOO_OLD):
            return ToFlow(stream, TooOld(stream=stream), cut_off=True)
        case facts.DeliveryFailed(error=error) if error.startswith(GIVEN_UP):
            by = error.removeprefix(GIVEN_UP)
            return ToFlow(stream, GiveUpDelivery(stream=stream, by=by), cut_off=True)
        case facts.DeliveryFailed(error=error) if error.startswith(CUT_OFF):
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryFailed() as event:
            failed = NotDelivered(
                error=event.error, retry=event.retry_at_ms is not None, traceback=event.traceback
            )
            return ToFlow(stream, DeliveryReturned(stream=stream, attempt=event.attempt, result=failed))
        case facts.DeliveryUnknown(error=None) | facts.DeliveryWithheld():
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryUnknown(error=str(error)) as event:
            doubt = NotDelivered(error=error, retry=False, in_doubt=True)
            return ToFlow(stream, DeliveryReturned(stream=stream, attempt=event.attempt, result=doubt))
        case facts.DeliveryStarted() | facts.DeliveryDenied():
            return _tried_again(stream, recording)
        case facts.DeliveryRetried(by=by):
            return ToFlow(stream, RetryDelivery(stream=stream, by=by))
        case _:
            return None


def _tried_again(stream: str, recording: Recording) -> ToFlow | None:
    """Return what had an attempt follow on another one: it was time, or the one before was cut off."""
    past = recording.past(stream)
    match past[-1].event if past else None:
        case facts.DeliveryStarted():
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryFailed(attempt=attempt):
            return ToFlow(stream, RetryDue(stream=stream, attempt=attempt))
        case _:
            return None  # it is asked for with what came before

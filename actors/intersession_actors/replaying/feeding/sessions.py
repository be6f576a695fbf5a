"""What led to an event of a session: somebody's words, an agent's answer, a deadline, a change of its settings."""

from collections.abc import Sequence

from intersession_actors.agents import Answered, Broke
from intersession_actors.policy import budget_of
from intersession_actors.replaying.feeding.fed import ToFlow, ToSession
from intersession_actors.replaying.feeding.flows import began
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
)
from intersession_actors.spawn import ArchiveDue
from intersession_events import facts
from intersession_events.facts import Budget, text_of
from intersession_events.ids import derive, session_stream, spawn_stream
from intersession_events.log import Recorded


def to_session(recorded: Recorded, recording: Recording) -> ToSession | ToFlow | None:  # noqa: C901, PLR0912 - one case an event
    """Return what led to the next event of a session."""
    key = recorded.stream.partition(":")[2]
    together = recording.append_ahead(recorded.stream)
    flow = recording.decided_in(recorded)
    if flow != recorded.stream:
        return began(flow, recording)
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
        case facts.RunFailed(code="target_gone", attempt=0) if gone := _over(key, together, recording):
            return gone
        case facts.RunFailed() as event:
            broke = Broke(code=event.code, error=event.error, traceback=event.traceback)
            return _broken(key, event, broke, recording)
        case facts.RunInterrupted(too_long=str() as error) as event:
            return _broken(key, event, Broke(code="backend", error=error, too_long=True), recording)
        case facts.RunInterrupted() as event:
            broke = Broke(code="interrupted", error="interrupted")
            return _broken(key, event, broke, recording)
        case facts.RunAborted() as event:
            return _over(key, together, recording) or _aborted(key, event, together)
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
            return _reset(key, event)
        case facts.SessionArchived():
            return _over(key, together, recording)
        case facts.ThreadUnbound(reason="archived"):
            return _over(key, together, recording)
        case facts.ThreadUnbound() as event:
            return ToSession(key, Unbind(only_due=event.reason in {"idle", "max_age"}, by=event.by))
        case _:
            return None


def _said(key: str, together: Sequence[Recorded]) -> ToSession | None:
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
    behind: Sequence[Recorded], message_id: str
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


def _of_run(key: str, together: Sequence[Recorded], recording: Recording) -> RecordMessages | RunReturned:
    """Return what an agent recorded, or answered: an answer ends in the end of its run."""
    messages: list[facts.Message] = []
    anew: int | None = None
    for item in together:
        match item.event:
            case facts.MessageRecorded(message=message):
                messages.append(message)
                anew = item.event.attempt
            case facts.RunCompleted() as event:
                return _returned(event, tuple(messages), recording.log_id)
            case _:
                break
    run_id = messages[0].run_id or ""
    own = [message for message in messages if message.run_id == run_id]
    attempt = _attempt(key, run_id, recording)
    return RecordMessages(run_id=run_id, attempt=attempt, messages=tuple(own), anew=anew)


def _broken(
    key: str, event: facts.RunFailed | facts.RunInterrupted, broke: Broke, recording: Recording
) -> ToSession:
    """Return an attempt that came to no answer: its agent failed, or another process has begun since."""
    is_cut = isinstance(event, facts.RunInterrupted) or event.code == "interrupted"
    return ToSession(
        key,
        RunReturned(run_id=event.run_id, attempt=event.attempt, result=broke),
        left_behind=(event.run_id, event.attempt)
        if is_cut and recording.has_begun_since(event.run_id, event.attempt)
        else None,
    )


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


def _aborted(key: str, event: facts.RunAborted, together: Sequence[Recorded]) -> ToSession:
    several = sum(isinstance(item.event, facts.RunAborted) for item in together) > 1
    return ToSession(key, Abort(run_id=None if several else event.run_id, by=event.by))


def _over(key: str, together: Sequence[Recorded], recording: Recording) -> ToSession | ToFlow | None:
    """Return what archived or reset a session, with all that was under way or waited in it: somebody, or its spawn, whose time had come."""
    over = (
        item.event for item in together if isinstance(item.event, facts.SessionArchived | facts.SessionReset)
    )
    archived = next(over, None)
    if archived is None:
        return None
    if isinstance(archived, facts.SessionReset):
        return _reset(key, archived)
    opened = (item.event for item in reversed(recording.past(session_stream(key))))
    spawn_id = next((event.spawn_id for event in opened if isinstance(event, facts.SessionOpened)), None)
    flow = spawn_stream(spawn_id or "")
    if archived.reason in {"cleanup", "expired"} and recording.has(flow):
        return ToFlow(flow, ArchiveDue(stream=flow))
    return ToSession(key, Archive(reason=archived.reason, by=archived.by))


def _reset(key: str, event: facts.SessionReset) -> ToSession:
    return ToSession(key, Reset(session_id=event.session_id, reason=event.reason, by=event.by))


def _patch(event: facts.SessionPatched, opening: facts.SessionOpened | None) -> Patch:
    return Patch(values=event.values, cleared=event.cleared, by=event.by, opening=opening)

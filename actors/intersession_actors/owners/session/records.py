"""Decision records of sessions: how commands and circumstances are written, and read again. Pure.

What was said and done stands in the events of the append, so that a record seldom has more than the command's name.
"""

from collections.abc import Callable, Sequence
from typing import Final, cast

import msgspec

from intersession_actors.outside.agents.result import Answered, Broke
from intersession_actors.owners.session import commands
from intersession_actors.owners.session.answers import reply_id
from intersession_actors.owners.session.rules import Beginning, Circumstances, Start, ThreadLeft, beginning_of
from intersession_actors.owners.session.state import Session
from intersession_actors.owners.streams.judgements import judgement_value
from intersession_actors.owners.streams.records import Record, Wording, Words, present, spent_in, spent_of
from intersession_actors.rules.config.messages import FOLLOWUP, INBOUND, Queueing
from intersession_actors.rules.config.tools import Compaction
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.budgets import Counted
from intersession_actors.rules.policy.chain import Spent, budget_of
from intersession_actors.rules.policy.resetting import Renewal
from intersession_actors.rules.policy.windows import Reckoned
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold, hash_as_recorded
from intersession_events import facts
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.recorded import Recorded, StreamAppend

ToolsOf = Callable[[facts.SessionOpened | None, facts.RunStarted, str | None], tuple[str, ...] | None]
"""Says which tools a session had that was opened so, when a run of it started."""

_BARE: Final[JsonObject] = {}
_UNUSED: Final = Spent()


def inputs_of(command: commands.SessionCommand) -> JsonObject:  # noqa: C901 - one case a command
    """Return a command's fields in a record, beside its name: none that events tell."""
    match command:
        case commands.RecordMessages(judged=Judgement() as judged, messages=messages):
            return {"judged": judgement_value(judged, {"tool": messages[0].tool_name})}
        case commands.Enqueue():
            at_most, bound, of = command.at_most, command.only_bound is not None, _of(command)
            renewal = None if command.renewal is None else msgspec.to_builtins(command.renewal)
            queueing = None if command.queueing in {None, FOLLOWUP} else msgspec.to_builtins(command.queueing)
            if not (at_most or of or bound or renewal or queueing or command.counted):
                return _BARE
            told = {"atMost": at_most, "onlyBound": bound, "sessionId": of}
            counted = msgspec.to_builtins(command.counted) or None
            return present({**told, "renewal": renewal, "queueing": queueing, "counted": counted})
        case commands.AddMessage():
            return present({"sessionId": command.session_id})
        case commands.Reset():
            return present({"sessionId": command.previous})
        case commands.Compact():
            return present({"sessionId": command.session_id})
        case commands.RunReturned(result=Broke(too_long=True)):
            return {"tooLong": True}
        case commands.Archive():
            return present({"onlyIdle": command.only_idle, "sessionId": _of(command)})
        case commands.Abort():
            return present({"all": command.run_id is None})
        case commands.Unbind():
            return present({"onlyDue": command.only_due})
        case _:
            return _BARE


def _of(command: commands.Enqueue | commands.Archive) -> str | None:
    """Return for which generation a door was allowed to say something; what a flow says its own events tell."""
    return command.session_id if command.flow is None else None


def knew_of(now: Circumstances) -> JsonObject:
    """Return the circumstances in a record: only values that differ from the usual ones."""
    knew: JsonObject = {}
    if now.now_ms:
        knew["nowMs"] = now.now_ms
    if now.start is not None:
        knew |= _of_start(now.start)
    if now.spent != _UNUSED:
        knew["spent"] = spent_of(now.spent)
    if now.thread_left is not None:
        knew["threadLeft"] = present({"ms": now.thread_left[0], "why": now.thread_left[1]})
    if now.age_ms:
        knew["ageMs"] = now.age_ms
    if not now.was_called:
        knew["notCalled"] = True
    if now.retries:
        knew["retries"] = now.retries
    if now.failure_text:
        knew["failureText"] = Wording(now.failure_text)
    if now.shown is not None:
        knew["shown"] = Wording(now.shown)
    return knew


def _of_start(start: Start) -> JsonObject:
    """Return what of a start its event does not tell; all of it where a compaction goes ahead, which has no start."""
    beginning, context, _ = start
    knew: JsonObject = {"withheld": beginning.withheld} if beginning.withheld else {}
    at = beginning.compacts_at
    if context.compacts:
        knew["keep"] = beginning.keep
    elif at is not None and context.used > at:
        # The tokens that there were then: what is erased later has fewer.
        knew |= {"keep": beginning.keep, "compactsAt": at, **present({"words": beginning.words})}
        knew |= {"used": context.used, "open": context.open_tokens}
    return knew


def command_in(  # noqa: C901 - one case a command
    record: Record, append: Sequence[Recorded], carried: StreamAppend | None, state: Session, log_id: str
) -> commands.Decidable | None:
    """Return the command of a record, with its events; None if they can't have come from one.

    `carried` is the append of the flow that its step came with.
    """
    inputs, first = record.inputs, append[0]
    # Of all events there are more than pyright tells apart in a pair. Those of other streams come out behind all cases.
    last = cast("facts.SessionEvent | facts.RunEvent", append[-1].event)
    if record.asked == "Enqueue":
        return _enqueued(inputs, append, carried, state)
    match record.asked, last:
        case (
            "RunReturned",
            facts.RunCompleted() | facts.RunFailed() | facts.RunInterrupted() | facts.LateReplyDropped(),
        ):
            return commands.RunReturned(
                run_id=last.run_id,
                attempt=last.attempt,
                result=_result(inputs, append, log_id),
                causation=first.causation,
                correlation=first.correlation,
            )
        case "RecordMessages", facts.MessageRecorded():
            return commands.RecordMessages(
                run_id=last.message.run_id or "",
                attempt=last.attempt or 1,
                messages=_messages_in(append),
                anew=last.attempt,
            )
        case "AddMessage", facts.MessageRecorded():
            return commands.AddMessage(message=last.message, session_id=inputs.get("sessionId"))
        case "Patch", facts.SessionPatched() | facts.SessionOpened():
            opening = first.event if isinstance(first.event, facts.SessionOpened) else None
            patched = last if isinstance(last, facts.SessionPatched) else facts.SessionPatched()
            return commands.Patch(
                values=patched.values, cleared=patched.cleared, by=patched.by, opening=opening
            )
        case "Reset", facts.SessionReset():
            return commands.Reset(
                session_id=last.session_id,
                previous=inputs.get("sessionId"),
                reason=last.reason,
                by=last.by,
            )
        case "Compact", facts.RunQueued():
            wish = None if last.instructions is None else last.instructions.asked
            return commands.Compact(
                run_id=last.run_id,
                by=last.caller,
                wish=wish if isinstance(wish, str) else None,
                session_id=inputs.get("sessionId"),
            )
        case "Archive", facts.SessionArchived():
            return commands.Archive(
                reason=last.reason,
                by=last.by,
                session_id=inputs.get("sessionId"),
                only_idle=inputs.get("onlyIdle", False),
                carried=() if carried is None else (carried,),
            )
        case "Unbind", facts.ThreadUnbound():
            return commands.Unbind(only_due=inputs.get("onlyDue", False), by=last.by)
        case "Wake", _:
            return commands.Wake()
        case "StartNext", _:
            return commands.StartNext()
        case _:
            return _of_a_run(record, first.event, last, state)


def _of_a_run(
    record: Record, first: facts.Event, last: facts.SessionEvent | facts.RunEvent, state: Session
) -> commands.Decidable | None:
    """Return a command on a run that is under way or waits: on its end, its answer, its held calls."""
    inputs = record.inputs
    match record.asked, last:
        case "Abort", facts.RunAborted():
            return commands.Abort(run_id=None if inputs.get("all", False) else last.run_id, by=last.by)
        case "ShowAnswer", facts.AnswerShown():
            return commands.ShowAnswer(run_id=last.run_id, attempt=last.attempt)
        case "AnswerTaken", facts.AnswerShown():
            return commands.AnswerTaken(
                run_id=last.run_id, attempt=last.attempt, receipt=last.receipt, error=last.error
            )
        case "DeadlinePassed", facts.RunFailed():
            held_ms = 0 if state.running is None else state.running.held_ms
            return commands.DeadlinePassed(run_id=last.run_id, attempt=last.attempt, held_ms=held_ms)
        case "HoldCall", facts.ToolCallHeld():
            return commands.HoldCall(held=last)
        case "ReleaseCall", facts.ToolCallReleased():
            return commands.ReleaseCall(
                hold_id=last.hold_id,
                action=last.action,
                by=last.by,
                arguments=last.arguments,
                text=last.text,
            )
        case "CallDue", facts.ToolCallReleased():
            return commands.CallDue(hold_id=last.hold_id)
        case "Steer", _ if isinstance(first, facts.MessageRecorded):
            by = first.message.provenance
            source = "" if by is None else by.source_session_key or ""
            return commands.Steer(run_id=first.message.run_id or "", message=first.message, by=source)
        case _:
            return None


def circumstances_in(
    record: Record,
    append: Sequence[Recorded],
    state: Session,
    transcript: TranscriptFold,
    *,
    log_id: str,
    words: Words,
    tools_of: ToolsOf,
) -> Circumstances:
    """Return the circumstances from a record. The events themselves tell how a run begins, and what was before it."""
    knew = record.knew
    return Circumstances(
        log_id=log_id,
        key=append[0].stream.partition(":")[2],
        now_ms=knew.get("nowMs", 0),
        thread_left=_thread_left(knew),
        start=_start(record, append, state, transcript, tools_of),
        spent=spent_in(knew),
        age_ms=knew.get("ageMs", 0),
        was_called=not knew.get("notCalled", False),
        retries=knew.get("retries", 0),
        failure_text=words(knew["failureText"]) if "failureText" in knew else "",
        shown=words(knew["shown"]) if "shown" in knew else None,
        compaction=_compaction(append[-1].event),
    )


def _compaction(event: facts.Event) -> Compaction:
    """Return how a summary was asked for, as its run says it."""
    if not isinstance(event, facts.RunQueued) or event.instructions is None:
        return Compaction()
    asked = event.instructions.asked
    return Compaction(
        custom_instructions=asked if isinstance(asked, str) else None,
        timeout_seconds=event.timeout_ms / 1000,
        model=event.model,
    )


def fitted(context: RunContext, beginning: Beginning) -> RunContext:
    """Return a context fitted into what there is room for at a start."""
    return context.fitted(beginning.words, may_read=True, keep=beginning.keep) or context


def _thread_left(knew: JsonMapping) -> ThreadLeft:
    left: JsonMapping | None = knew.get("threadLeft")
    return None if left is None else (left.get("ms", 0), left["why"])


def _sender_of(state: Session, run_id: str) -> str | None:
    """Return the person whose message led to a waiting run (TOOLS-2)."""
    return next((one.budget.sender for one in state.queue if one.queued.run_id == run_id), None)


def _start(
    record: Record,
    append: Sequence[Recorded],
    state: Session,
    transcript: TranscriptFold,
    tools_of: ToolsOf,
) -> Start | None:
    last = append[-1]
    match record.asked, last.event:
        case "StartNext", facts.RunFailed() as failed:
            return Start(Beginning(None, None, None, None), transcript.context(failed.run_id))
        case "StartNext", facts.RunStarted() as begun:
            withheld: int = record.knew.get("withheld", 0)
            compacts = begun.covers is not None
            tools = (
                ()
                if compacts
                else ("",) * withheld
                if withheld
                else tools_of(state.opened, begun, _sender_of(state, begun.run_id))
            )
            beginning = beginning_of(state, tools, Reckoned(begun.context_tokens, begun.room))._replace(
                compacts_at=begun.compacts_at, keep=record.knew.get("keep", 0)
            )
            whole = transcript.context(begun.run_id)
            context = fitted(whole, beginning)
            if hash_as_recorded(whole, begun) == begun.context_hash:
                context = msgspec.structs.replace(context, hash=begun.context_hash)
            return Start(beginning, context, (begun.used or 0, record.knew.get("open", 0)))
        case "StartNext", facts.RunQueued():
            knew = record.knew
            beginning = Beginning(
                None, None, None, knew.get("words"), 0, knew.get("compactsAt"), knew.get("keep", 0)
            )
            context = fitted(transcript.context(state.queue[0].queued.run_id), beginning)
            return Start(beginning, context, (knew.get("used", 0), knew.get("open", 0)))
        case "StartNext", facts.RunCompleted() as completed:
            beginning = Beginning(None, None, None, None, 0, None, record.knew.get("keep", 0))
            return Start(beginning, fitted(transcript.context(completed.run_id), beginning))
        case _:
            return None


def _enqueued(  # noqa: C901 - one case an event
    inputs: JsonMapping, append: Sequence[Recorded], carried: StreamAppend | None, state: Session
) -> commands.Enqueue | None:
    opening: facts.SessionOpened | None = None
    bound: facts.ThreadBound | None = None
    given: facts.TranscriptGiven | None = None
    route: facts.RouteChanged | None = None
    message: facts.Message | None = None
    patch: facts.SessionPatched | None = None
    queue: facts.RunQueued | None = None
    interrupts: str | None = None
    for one in append:
        match one.event:
            case facts.SessionOpened() as opening:
                pass
            case facts.ThreadBound() as bound:
                pass
            case facts.TranscriptGiven() as given:
                pass
            case facts.RouteChanged() as route:
                pass
            case facts.RunAborted(by=interrupts, gone=False, attempt=attempt) if attempt:
                pass
            case facts.MessageRecorded(message=message):
                pass
            case facts.SessionPatched() as patch:
                pass
            case facts.RunQueued(message=message) as queue:
                pass
            case _:
                pass
    if message is None:
        return None
    first = append[0]
    only_bound = None
    if inputs.get("onlyBound", False):
        only_bound = facts.Route(channel="", to="") if state.bound is None else state.bound.route
    return commands.Enqueue(
        budget=facts.Budget(root=first.correlation or "")
        if queue is None
        else budget_of(queue, first.correlation, first.time),
        message=message,
        queue=queue,
        opening=opening,
        route=route,
        patch=patch,
        session_id=inputs.get("sessionId"),
        bound=bound,
        given=given,
        only_bound=only_bound,
        carried=() if carried is None else (carried,),
        at_most=inputs.get("atMost"),
        interrupts=interrupts,
        renewal=msgspec.convert(inputs["renewal"], Renewal) if "renewal" in inputs else None,
        queueing=_queueing(inputs, queue),
        counted=msgspec.convert(inputs.get("counted", ()), tuple[Counted, ...]),
        causation=first.causation,
    )


def _queueing(inputs: JsonMapping, queue: facts.RunQueued | None) -> Queueing | None:
    """Return how a person's message waits; where nothing says it, one after another."""
    if "queueing" in inputs:
        return msgspec.convert(inputs["queueing"], Queueing)
    return FOLLOWUP if queue is not None and queue.caller == INBOUND else None


def _result(inputs: JsonMapping, append: Sequence[Recorded], log_id: str) -> Answered | Broke:
    match append[-1].event:
        case facts.RunFailed() as failed:
            too_long = inputs.get("tooLong", False)
            return Broke(code=failed.code, error=failed.error, traceback=failed.traceback, too_long=too_long)
        case facts.RunInterrupted(too_long=str() as error):
            return Broke(code="backend", error=error, too_long=True)
        case facts.RunCompleted() as completed:
            return _answered(completed, append, log_id)
        case facts.LateReplyDropped(reply=reply):
            return Answered(text=reply)
        case _:
            return Broke(code="interrupted", error="")


def _answered(completed: facts.RunCompleted, append: Sequence[Recorded], log_id: str) -> Answered:
    said = _messages_in(append)
    text, files = completed.reply, tuple[facts.FileBlock, ...]()
    if said and said[-1].id == reply_id(log_id, completed.run_id, completed.attempt):
        text, files, said = facts.text_of(said[-1]), facts.files_of(said[-1]), said[:-1]
    return Answered(
        text=text,
        usage=completed.usage,
        model=completed.model,
        messages=said or None,
        stop_reason=completed.stop_reason,
        notes=completed.notes,
        files=files,
    )


def _messages_in(append: Sequence[Recorded]) -> tuple[facts.Message, ...]:
    return tuple(message for one in append if (message := facts.message_in(one.event)) is not None)

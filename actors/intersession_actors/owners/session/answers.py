"""The consequences of an agent's answer: transcript messages, the reply, a delivery, and the message to its flow."""

from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_actors.outside.agents.result import Answered, Broke
from intersession_actors.outside.attachments.checks import blocks_without_contents
from intersession_actors.owners.session.commands import RunReturned, content_of
from intersession_actors.owners.session.state import Running, Session, is_current
from intersession_actors.owners.streams.commands import RunEnded
from intersession_actors.owners.streams.drafting import into_outbox
from intersession_actors.rules.policy.chain import counts_use
from intersession_actors.rules.prompt.silence import is_withheld, visible_text
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import Draft, Recorded, StreamAppend

MOST_REFUSALS: Final = 6
"""The most attempts of a run that may be refused as too long, each with at most half the input of the last (CTX-3)."""


def decide_returned(
    state: Session, returned: RunReturned, *, key: str, log_id: str, now_ms: int, retry_interrupted: int = 0
) -> tuple[list[facts.Event], tuple[StreamAppend, ...]]:
    """Return the events of an agent's result: the end of its run, and the delivery of its text."""
    run_id, attempt, result = returned.run_id, returned.attempt, returned.result
    if isinstance(result, Broke):
        if (
            result.code == "interrupted"
            and (state.held_open or attempt - _refused(state) - _waited(state) <= retry_interrupted)
            and is_current(state, run_id, attempt)
        ):
            return [facts.RunInterrupted(run_id=run_id, attempt=attempt)], ()
        if result.too_long and _refused(state) < MOST_REFUSALS and is_current(state, run_id, attempt):
            return [facts.RunInterrupted(run_id=run_id, attempt=attempt, too_long=result.error)], ()
        return decide_failure(
            state,
            run_id=run_id,
            attempt=attempt,
            code=result.code,
            error=result.error,
            traceback=result.traceback,
        ), ()
    if state.running is not None and state.running.covers is not None and is_current(state, run_id, attempt):
        return decide_summary(state, result, run_id=run_id, attempt=attempt, covers=state.running.covers), ()
    reply, messages = reply_messages(
        result, key=key, log_id=log_id, run_id=run_id, attempt=attempt, now_ms=now_ms
    )
    events = decide_answer(state, result, run_id=run_id, attempt=attempt, reply=reply, messages=messages)
    if state.running is None or not is_current(state, run_id, attempt):
        return events, ()
    last = messages[-1] if messages else None
    files = facts.files_of(last) if last is not None and last.role == "assistant" else ()
    return events, auto_reply(state.running, key=key, reply=reply, files=files, log_id=log_id, now_ms=now_ms)


def decide_summary(
    state: Session, answered: Answered, *, run_id: str, attempt: int, covers: facts.Covers
) -> list[facts.Event]:
    """Return the end of a compaction: its text stands for the messages that it covers (CTX-5). It is no message itself."""
    text = visible_text(answered.text)
    if text is None or not text.strip():
        error = "the agent gave no summary"
        return decide_failure(state, run_id=run_id, attempt=attempt, code="bad_reply", error=error)
    return [
        facts.RunCompleted(
            run_id=run_id,
            attempt=attempt,
            session_id=state.session_id,
            text=text,
            usage=answered.usage,
            model=answered.model,
            stop_reason=answered.stop_reason,
            notes=answered.notes,
            covers=covers,
        )
    ]


def decide_answer(
    state: Session,
    answered: Answered,
    *,
    run_id: str,
    attempt: int,
    reply: str | None,
    messages: tuple[facts.Message, ...],
) -> list[facts.Event]:
    """Return the end of an answered run. An attempt that has ended already only leaves a note."""
    if not is_current(state, run_id, attempt):
        return [facts.LateReplyDropped(run_id=run_id, attempt=attempt, reply=reply)]
    end = facts.RunCompleted(
        run_id=run_id,
        attempt=attempt,
        text=reply,
        usage=answered.usage,
        model=answered.model,
        stop_reason=answered.stop_reason,
        notes=answered.notes,
    )
    return with_messages(end, state.session_id, messages)


def with_messages(
    end: facts.RunCompleted, session_id: str, messages: Sequence[facts.Message]
) -> list[facts.Event]:
    """Return the end of an answered run behind its messages; the last message is in the end itself."""
    if not messages:
        return [end]
    *before, last = messages
    is_reply = end.text == facts.text_of(last)
    return [
        *(facts.MessageRecorded(session_id=session_id, message=message) for message in before),
        msgspec.structs.replace(
            end,
            session_id=session_id,
            message=last,
            message_is_reply=is_reply,
            text=None if is_reply else end.text,
        ),
    ]


def decide_failure(
    state: Session,
    *,
    run_id: str,
    attempt: int,
    code: facts.FailureCode,
    error: str,
    traceback: str | None = None,
) -> list[facts.Event]:
    """Return the end of a failed run; none if the attempt has ended already."""
    if not is_current(state, run_id, attempt):
        return []
    partial = state.running.said if state.running is not None else None
    # The code is the first word of what people and agents read (docs/errors.md).
    words = error if error.startswith(f"{code}:") else f"{code}: {error}"
    return [
        facts.RunFailed(
            run_id=run_id, attempt=attempt, code=code, error=words, partial=partial, traceback=traceback
        )
    ]


def _refused(state: Session) -> int:
    return 0 if state.running is None else state.running.waiting.refused


def _waited(state: Session) -> int:
    return 0 if state.running is None else state.running.waiting.waited


def reply_messages(
    answered: Answered, *, key: str, log_id: str, run_id: str, attempt: int, now_ms: int
) -> tuple[str | None, tuple[facts.Message, ...]]:
    """Return the run's reply (None is no text) and the messages to record for it.

    The transcript keeps what the agent said, `NO_REPLY` and skip words included; the reply is what is visible of it.
    Whatever role an agent gives its messages, they are its own output and no one else's (PROV-2).
    """
    said = answered.messages or ()
    messages = said and tuple(
        msgspec.structs.replace(
            message,
            id=message.id or ids.derive(log_id, "message", run_id, "out", attempt, number),
            timestamp=message.timestamp or now_ms,
            run_id=run_id,
            provenance=_own_output(message, key),
            content=message.content
            if isinstance(message.content, str)
            else blocks_without_contents(message.content),
        )
        for number, message in enumerate(said)
    )
    last = messages[-1] if messages else None
    if answered.files and last is not None and last.role == "assistant":
        blocks = (facts.TextBlock(text=last.content),) if isinstance(last.content, str) else last.content
        messages = (*messages[:-1], msgspec.structs.replace(last, content=(*blocks, *answered.files)))
    elif answered.files or (
        answered.text and not (messages and any(message.role == "assistant" for message in messages))
    ):
        text = answered.text or ""
        messages = (
            *messages,
            facts.Message(
                id=reply_id(log_id, run_id, attempt),
                role="assistant",
                content=(facts.TextBlock(text=text),)
                if not answered.files
                else content_of(text, answered.files),
                timestamp=now_ms,
                run_id=run_id,
                model=answered.model,
                usage=answered.usage,
                stop_reason=answered.stop_reason,
            ),
        )
    return visible_text(answered.text), messages


def reply_id(log_id: str, run_id: str, attempt: int) -> str:
    """Return the id of an attempt's text, if its agent gave none."""
    return ids.derive(log_id, "message", run_id, "reply", attempt)


def _own_output(message: facts.Message, key: str) -> facts.Provenance | None:
    """Say where a message of an agent's answer is from: the agent can't, and a person it certainly is not from.

    What it says as itself and what its tools gave need no word; in any other role it is fenced as what its own session wrote.
    """
    if message.role in {"assistant", "toolResult"}:
        return None
    return facts.Provenance(kind="inter_session", source_session_key=key)


def auto_reply(
    running: Running,
    *,
    key: str,
    reply: str | None,
    files: tuple[facts.FileBlock, ...] = (),
    log_id: str,
    now_ms: int,
) -> tuple[StreamAppend, ...]:
    """Return the delivery of a run's text and files to its route (INB-2); none without a route, or with neither."""
    waiting = running.waiting
    if waiting.queued.route is None or (reply is None and not files) or is_withheld(reply):
        return ()
    return _delivery(
        waiting.queued,
        waiting.budget,
        running.cause,
        reply or "",
        "auto_reply",
        files=files,
        key=key,
        log_id=log_id,
        now_ms=now_ms,
    )


def failure_notice(
    state: Session, events: Sequence[facts.Event], *, key: str, text: str, log_id: str, now_ms: int
) -> tuple[StreamAppend, ...]:
    """Return the delivery that tells a person that no answer comes, if `events` end the run on their message (INB-2).

    The flows of agents hear of a failed run themselves, so their runs have none.
    """
    running = state.running
    if running is None or not text.strip() or not has_asker(running):
        return ()
    if not any(isinstance(event, facts.RunFailed) for event in events):
        return ()
    return _delivery(
        running.waiting.queued,
        running.waiting.budget,
        running.cause,
        text,
        "failure_notice",
        key=key,
        log_id=log_id,
        now_ms=now_ms,
    )


def has_asker(running: Running) -> bool:
    """Whether a person waits for a run's answer at a route."""
    queued = running.waiting.queued
    return queued.route is not None and queued.step == "message" and queued.flow is None


def limit_notice(
    queued: facts.RunQueued, budget: facts.Budget, text: str, *, key: str, log_id: str, now_ms: int
) -> tuple[StreamAppend, ...]:
    """Return the delivery that tells a person that their budget is used up (LIMIT-2)."""
    if not text.strip():
        return ()
    return _delivery(queued, budget, None, text, "failure_notice", key=key, log_id=log_id, now_ms=now_ms)


def _delivery(
    queued: facts.RunQueued,
    budget: facts.Budget,
    cause: str | None,
    text: str,
    purpose: facts.Purpose,
    *,
    files: tuple[facts.FileBlock, ...] = (),
    key: str,
    log_id: str,
    now_ms: int,
) -> tuple[StreamAppend, ...]:
    if queued.route is None:
        return ()
    name = "reply" if purpose == "auto_reply" else purpose
    delivery_id = ids.derive(log_id, "delivery", queued.run_id, name)
    decided = facts.DeliveryDecided(
        delivery_id=delivery_id,
        session_key=key,
        route=queued.route,
        text=text,
        key=delivery_id,
        purpose=purpose,
        run_id=queued.run_id,
        files=files,
    )
    return (into_outbox(log_id, decided, budget=budget, time=now_ms, causation=cause),)


def leads_on(state: Session, events: Sequence[facts.Event]) -> bool:
    """Return whether the next step of an exchange can be recorded together with these events, which end one of its runs.

    Not where the chain's use of tokens or money is limited: what this run has used counts once it is recorded.
    """
    running = state.running
    return (
        running is not None
        and running.waiting.queued.exchange_id is not None
        and isinstance(events[-1], facts.RunCompleted | facts.RunFailed)
        and not counts_use(running.waiting.budget)
    )


def ended_of(before: Session, recorded: Recorded | Draft) -> RunEnded | None:
    """Return the message to the flow of an ended run, from the recorded or imminent events; None for a run outside of flows."""
    event = recorded.event
    if not isinstance(event, facts.RunEnd):
        return None
    running = before.running
    if running is not None and running.waiting.queued.run_id == event.run_id:
        queued, started, tool_result = running.waiting.queued, running.started_ms, running.last_tool_result
    else:
        waiting = next((item for item in before.queue if item.queued.run_id == event.run_id), None)
        if waiting is None:
            return None
        queued, started, tool_result = waiting.queued, None, waiting.last_tool_result
    if queued.flow is None:
        return None
    word = ended_word(queued.flow, recorded, started_ms=started, last_tool_result=tool_result)
    if word is None or before.bound is None:
        return word
    return msgspec.structs.replace(word, thread=before.bound.route)


def ended_again(stream: str, items: Sequence[Recorded]) -> RunEnded | None:
    """Return the same message from the log: `items` are a session's events from the run's queueing to its end."""
    last = items[-1].event if items else None
    run_id = last.run_id if isinstance(last, facts.RunEnd) else None
    started: int | None = None
    tool_result: str | None = None
    for item in items:
        match item.event:
            case facts.RunStarted() | facts.RunInterrupted() as event if event.run_id == run_id:
                started = item.time if isinstance(event, facts.RunStarted) else None
            case event:
                message = facts.message_in(event)
                if message is not None and message.run_id == run_id and message.role == "toolResult":
                    tool_result = facts.text_of(message) or tool_result
    return ended_word(stream, items[-1], started_ms=started, last_tool_result=tool_result) if items else None


def ended_word(
    stream: str, recorded: Recorded | Draft, *, started_ms: int | None, last_tool_result: str | None
) -> RunEnded | None:
    """Return the message to a flow about its run's end; None for an event that ends no run."""
    event = recorded.event
    if not isinstance(event, facts.RunEnd):
        return None
    completed = event if isinstance(event, facts.RunCompleted) else None
    return RunEnded(
        stream=stream,
        run_id=event.run_id,
        status=status_of(event),
        text=event.spoken,
        in_transcript=completed is None or completed.text is None,
        error=event.error if isinstance(event, facts.RunFailed) else None,
        usage=completed.usage if completed is not None else None,
        model=completed.model if completed is not None else None,
        last_tool_result=last_tool_result,
        started_ms=started_ms,
        ended_ms=recorded.time,
        cause=recorded.id,
        gone=_is_gone(event),
        by=event.by if isinstance(event, facts.RunAborted) else None,
    )


def _is_gone(event: facts.RunEnd) -> bool:
    match event:
        case facts.RunCompleted():
            return False
        case facts.RunFailed():
            return event.code == "target_gone"
        case facts.RunAborted():
            return event.gone


def status_of(event: facts.RunEnd) -> facts.RunStatus:
    """Return a run's end in the flow's terms."""
    match event:
        case facts.RunCompleted():
            return "ok"
        case facts.RunAborted():
            return "aborted"
        case facts.RunFailed(code="timeout"):
            return "timeout"
        case facts.RunFailed(code="interrupted"):
            return "interrupted"
        case facts.RunFailed():
            return "error"

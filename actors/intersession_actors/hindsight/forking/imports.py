"""Where an imported exchange or spawn can be continued: at a message that asked for an answer, by a run that a fork adds (FORK-10).

An import has what was said, and no runs of it (IMP-4). A fork is cut behind the message that asked, and is given the run that
would have been queued with it here. What was answered by the place is taken over, as what that run gave; from there the rules decide.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.hindsight.forking.edits import Replaced
from intersession_actors.outside.agents.recording import RecordedAttempt
from intersession_actors.owners.exchange import records as exchange_records
from intersession_actors.owners.exchange import steps as exchange_steps
from intersession_actors.owners.session.answers import with_messages
from intersession_actors.owners.spawn import records as spawn_records
from intersession_actors.owners.spawn import steps as spawn_steps
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy.chain import budget_of
from intersession_actors.rules.prompt.silence import visible_text
from intersession_events import facts
from intersession_events.basics.ids import session_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_stream
from intersession_projections.views.flows.rows import SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import LoggedTexts

_Asks = facts.ExchangeAccepted | facts.SpawnAccepted | facts.TurnRequested | facts.AnnounceRequested
_Answers = facts.FlowAnswered | facts.AnnounceDecided

_NEAR: Final = 16
"""A message stands this near to what asked for it, in most cases."""


class Step(NamedTuple):
    """A step of an imported flow: the event that asked for it, its message, and the run that answers it here.

    `said` are the messages of that session that belong to the answer, `answer` the flow's event that has it; None where the import
    shows none.
    """

    asked: Recorded
    message: Recorded
    queued: facts.RunQueued
    said: tuple[Recorded, ...]
    answer: Recorded | None

    @property
    def cut(self) -> int:
        """The position after which the run is queued: its message and its cause are there."""
        return max(self.asked.position, self.message.position)

    @property
    def ended(self) -> int | None:
        """The position of its answer; None if it has none."""
        return None if self.answer is None else self.answer.position


def is_imported(flow: Flow) -> bool:
    """Whether an import inferred a flow from transcripts (IMP-4)."""
    return not isinstance(flow, RunOutcome) and flow.inferred


def under_way(log: Log, flow: Flow, position: int) -> Step | None:
    """Return the last step of an imported flow up to a position; None if the flow is over by then, or has none."""
    if _closed_at(log, flow) <= position:
        return None
    steps = [step for step in _steps(log, flow) if step.asked.position <= position]
    return steps[-1] if steps else None


def replaced_in(
    log: Log, flow: Flow, edit: facts.ForkEdit, position: int, what: str
) -> tuple[Step, Replaced]:
    """Return the target of an edit in an imported flow: a step's answer, or its message.

    Raises:
        ToolRefused: this edit can't replace the event there; it says what would do.
    """
    for step in _steps(log, flow):
        if edit.kind == "message" and position in {step.asked.position, step.message.position}:
            return step, _asking(log, step)
        if edit.kind != "message" and step.answer is not None:
            answer = (*step.said, step.answer)
            if any(one.position == position for one in answer):
                return step, Replaced(answer[:1], step.queued.run_id, _key(step))
    there = "RUN@reply" if isinstance(flow, SpawnSummary) else "RUN@reply, RUN@turn:N or RUN@announce"
    what_for, instead = (
        ("a message that asks for an answer", "RUN@start, or use --reply at an answer")
        if edit.kind == "message"
        else ("the answer of a run", f"{there}, or use --message at RUN@start")
    )
    raise _refused(
        f"--{edit.kind}: it replaces {what_for}, and of {flow_id(flow)}, which was imported, the log has none at {what}; give {instead}"
    )


def answer_of(step: Step) -> list[facts.Event]:
    """Return the end of an imported run with its agent's messages: the events after its start.

    Messages lose the ids and the lines that they were imported with: they are said once more, in the fork.
    """
    run_id, answer = step.queued.run_id, step.answer
    if answer is None:
        return []
    messages = [
        msgspec.structs.replace(message, run_id=run_id)
        for one in step.said
        if (message := facts.message_in(one.event)) is not None
    ]
    match answer.event:
        case facts.FlowAnswered() as ended:
            status, text, error, usage = ended.status, ended.text, ended.error, ended.usage
        case facts.AnnounceDecided(text=text, why=why, usage=usage):
            status, error = ("error", None) if why == "run_failed" else ("ok", None)
        case _:
            return []
    texts = [facts.text_of(message) for message in messages if message.role == "assistant"]
    session_id = step.queued.session_id
    reply = visible_text(texts[-1]) if text is None and texts else text
    end: facts.Event
    match status:
        case "ok":
            completed = facts.RunCompleted(run_id=run_id, attempt=1, text=reply, usage=usage)
            return with_messages(completed, session_id, messages)
        case "aborted":
            end = facts.RunAborted(run_id=run_id, attempt=1, by="import")
        case "error" | "timeout" | "interrupted":
            code: facts.FailureCode = "backend" if status == "error" else status
            end = facts.RunFailed(
                run_id=run_id, attempt=1, code=code, error=f"{code}: {error or 'the import shows no more'}"
            )
    return [*(facts.MessageRecorded(session_id=session_id, message=message) for message in messages), end]


def attempts_of(log: Log, flow: Flow) -> Iterator[RecordedAttempt]:
    """Yield the agents' answers in an imported flow, step by step. Their inputs are unknown: no hash was recorded."""
    for step in _steps(log, flow):
        events = answer_of(step)
        if step.answer is None or not events:
            continue
        end, asked = events[-1], facts.message_in(step.message.event)
        assert isinstance(end, facts.RunEnd)  # noqa: S101 - an answer is the end of a run
        yield RecordedAttempt(
            run_id=step.queued.run_id,
            session_key=_key(step),
            step=step.queued.step,
            flow=step.queued.flow,
            turn=step.queued.turn,
            attempt=1,
            position=step.message.position,
            context_hash="",
            meaning="",
            given="" if asked is None else facts.text_of(asked),
            answered=tuple(
                # OpenClaw's notes beside a message are not part of an agent's answer.
                msgspec.structs.replace(message, id="", run_id=None, timestamp=0, extra=None)
                for one in events
                if (message := facts.message_in(one)) is not None
            )
            or None,
            reply=end.reply if isinstance(end, facts.RunCompleted) else None,
            end=end,
            ended_at=step.answer.position,
        )


def _asking(log: Log, step: Step) -> Replaced:
    """Return a message with the flow it begins, as if it had been sent here: the flow is the fork's own then."""
    asked, message = step.asked, step.message
    first = min(asked.position, message.position)
    # The session of a sub-agent begins between the two.
    opening = [
        one
        for one in log.stream(message.stream, to=message.version - 1, backwards=True, limit=8)
        if one.position > first and isinstance(one.event, facts.SessionOpened | facts.SessionImported)
    ]
    own = asked.event
    if isinstance(own, facts.FlowAccepted):
        own = msgspec.structs.replace(own, inferred=False, evidence=None)
    replace = msgspec.structs.replace
    queued = replace(step.queued, message=facts.message_in(message.event), answers="")
    events = (
        *reversed(opening),
        replace(message, event=queued),
        replace(asked, event=own),
    )
    return Replaced(tuple(sorted(events, key=lambda one: one.position)), step.queued.run_id, _key(step))


def _steps(log: Log, flow: Flow) -> Iterator[Step]:
    """Yield the steps of a flow whose message is in the log."""
    stream = flow_stream(flow)
    if stream is None:
        return
    events = list(parts_in(log.stream(stream)))
    for number, asked in enumerate(events):
        event = asked.event
        if not isinstance(event, _Asks):
            continue
        queued, key = _run_of(log, events[: number + 1], event)
        answer = next(
            (
                one
                for one in events[number:]
                if isinstance(one.event, _Answers) and one.event.run_id == event.run_id
            ),
            None,
        )
        message = _message(log, key, event.message_id, near=asked.position)
        if message is None:
            continue
        said = () if answer is None else tuple(_said(log, message, answer.position))
        session_id = facts.generation_of(message.event) or ""
        queued = msgspec.structs.replace(queued, session_id=session_id)
        yield Step(asked, message, queued, said, answer)


def _run_of(log: Log, events: Sequence[Recorded], asked: _Asks) -> tuple[facts.RunQueued, str]:
    """Return the run that the last of a flow's events asks for, as it would have been queued here, and its session's key."""
    correlation, started_ms = events[0].correlation, events[0].time
    if isinstance(asked, facts.SpawnAccepted):
        queued, key = spawn_steps.task_run(asked), asked.child
        budget = budget_of(asked, correlation, started_ms)
    elif isinstance(asked, facts.AnnounceRequested) and isinstance(events[0].event, facts.SpawnAccepted):
        # No import shows this one: a fork asked for it that is forked again.
        spawned = spawn_records.RULES.state_in(events)
        assert spawned is not None  # noqa: S101 - its first event is its beginning
        queued, key = spawn_steps.announce_run(spawned, asked, LoggedTexts(log)), asked.speaker
        budget = budget_of(spawned.accepted, correlation, started_ms)
    else:
        state = exchange_records.RULES.state_in(events)
        assert state is not None  # noqa: S101 - its first event is its beginning
        budget = state.budget
        match asked:
            case facts.ExchangeAccepted():
                queued, key = exchange_steps.primary_run(asked, 0), asked.target
            case facts.TurnRequested():
                queued, key = exchange_steps.turn_run(state, asked), asked.speaker
            case facts.AnnounceRequested():
                queued, key = exchange_steps.announce_run(state, asked, LoggedTexts(log)), asked.speaker
    return msgspec.structs.replace(queued, budget=budget), key


def _message(log: Log, key: str, message_id: str, *, near: int) -> Recorded | None:
    """Return the message of a session by its id; of several the one that stands nearest: an import's ids are short."""
    stream = session_stream(key)

    def among(events: Iterable[Recorded]) -> Recorded | None:
        found = [
            one
            for one in events
            if one.stream == stream
            and (message := facts.message_in(one.event)) is not None
            and message.id == message_id
        ]
        return min(found, key=lambda one: abs(one.position - near), default=None)

    around = log.all(after=max(near - _NEAR, 0), to=near + _NEAR)
    return among(around) or among(log.stream(stream))


def _said(log: Log, message: Recorded, to: int) -> Iterator[Recorded]:
    """Yield what a session's agent said and did behind a message, up to a position."""
    for one in log.stream(message.stream, after=message.version):
        if one.position > to:
            return
        if (said := facts.message_in(one.event)) is not None:
            if said.role not in {"assistant", "toolResult"}:
                return
            yield one


def _closed_at(log: Log, flow: Flow) -> int:
    stream = flow_stream(flow)
    events = () if stream is None else log.stream(stream)
    return next(
        (one.position for one in parts_in(events) if isinstance(one.event, facts.FlowClosed)), log.head()
    )


def _key(step: Step) -> str:
    return step.message.stream.partition(":")[2]


def _refused(error: str) -> ToolRefused:
    return ToolRefused("invalid_request", error)

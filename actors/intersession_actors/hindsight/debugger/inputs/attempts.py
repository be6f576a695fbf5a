"""An attempt by a name of its run, or of a place of it: what its agent was given, rebuilt from the log or from an import (LENS)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.hindsight.debugger.inputs.imported import ImportedSession
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.owners.session.folding import past_context
from intersession_actors.rules.disclosure.events import hidden_message
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.prompt.fitting import context_shown, summarised
from intersession_actors.rules.prompt.transcript import RunContext, hash_as_recorded
from intersession_events.basics import ids
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import (
    Message,
    MessageRecorded,
    RunEvent,
    RunInterrupted,
    RunStarted,
    is_imported,
    run_asked_in,
    run_named,
)
from intersession_events.facts.run import Step
from intersession_events.log.other_words import as_it_is
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.places.grammar import (
    AtEvent,
    AtPosition,
    Base,
    InRun,
    UnknownPlace,
    parse_place,
)
from intersession_projections.questions.places.runs_named import Flow, flow_stream
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt in the log: its start, and its input; `context` is None if that can't be rebuilt.

    Of an import, `start` is the message that was answered, or the answer, and `started` has what is known of it (LENS-3).
    """

    run_id: str
    key: str
    """The session."""
    step: Step
    start: Recorded
    started: RunStarted
    context: RunContext | None
    refused: int
    """How many attempts of the run were refused before as too long."""
    transcript: Sequence[Message]
    """A long one is read from the log each time that it is gone through, or a part of it is taken."""
    problem: str | None
    hides: bool
    """Whether the caller reads it without its secrets."""
    is_imported: bool = False

    @property
    def behind(self) -> Sequence[Message]:
        """The message to answer, and what earlier attempts did."""
        return () if self.context is None else (self.context.message, *self.context.partial)

    @property
    def readable(self) -> Sequence[Message]:
        """The transcript as the caller may read it. If nothing must be hidden, unshown messages are not read."""
        return tuple(map(self.read, self.transcript)) if self.hides else self.transcript

    def turn(self, transcript: Sequence[Message]) -> Turn:
        """Return the agent's turn, without tools and recorder."""
        context = self.context
        if context is None:
            raise ToolRefused("invalid_request", f"run: {self.problem}")
        read = self.read
        asked, partial = context.message, context.partial
        if self.is_imported and partial:
            # A first attempt is not shown what others had done: there it is a part of the conversation.
            transcript = (*transcript, *map(read, (asked, *partial[:-1])))
            asked, partial = partial[-1], ()
        return Turn(
            agent_id=SessionKey.recorded(self.key).agent_id,
            session_key=self.key,
            step=self.step,
            asked=read(asked),
            run_id=self.run_id,
            transcript=transcript,
            context=context_shown(context.system_context, self.started.fit),
            whole_context=context.system_context,
            context_tokens=self.started.context_tokens,
            fit=self.started.fit,
            summary=None if context.summary is None else context.summary.text,
            refused=self.refused,
            attempt=self.started.attempt,
            partial=tuple(map(read, partial)),
        )

    def read(self, message: Message) -> Message:
        """Return a message as the caller may read it."""
        return hidden_message(message) if self.hides else message


class _Answered(NamedTuple):
    """An imported message, by the name of its run; without one, by its position."""

    run_id: str
    step: Step
    at: Recorded


def attempt_named(view: View, name: str, attempt: int | None, *, field: str) -> Attempt:
    """Return an attempt of the run that a name or a place means; without a number the last one.

    Raises:
        ToolRefused: there is no such run within reach, it did not start, or not so often.
    """
    found = _named(view, name, field=field)
    key = found.session_key if isinstance(found, RunOutcome) else found.at.stream.partition(":")[2]
    if not view.is_seen(key):
        raise ToolRefused("not_visible", f"{field}: its session is not within reach")
    return (
        _of_run(view, found, attempt, field=field)
        if isinstance(found, RunOutcome)
        else _of_import(view, found, key, attempt)
    )


def _of_import(view: View, found: _Answered, key: str, attempt: int | None) -> Attempt:
    if attempt not in {None, 1}:
        raise invalid("attempt", f"run {found.run_id} was imported, and has attempt 1 alone")
    stored = as_it_is(view.log) if view.hides else view.log
    given = ImportedSession(stored, found.at.stream).input(found.at)
    context = given.context
    summary = None if context is None else context.summary
    return Attempt(
        run_id=found.run_id,
        key=key,
        step=found.step,
        start=found.at,
        started=RunStarted(
            run_id=found.run_id,
            attempt=1,
            context_hash="",
            model=given.model,
            tools=None,
            fit=None if summary is None else summarised(summary),
        ),
        context=context,
        refused=0,
        transcript=() if context is None else context.transcript,
        problem=given.problem,
        hides=view.is_stranger(key),
        is_imported=True,
    )


def _of_run(view: View, run: RunOutcome, attempt: int | None, *, field: str) -> Attempt:
    stream = ids.session_stream(run.session_key)
    events = view.log.stream(stream, after=run.first_version - 1, to=run.last_version)
    own = [
        recorded
        for recorded in events
        if isinstance(recorded.event, RunEvent) and recorded.event.run_id == run.run_id
    ]
    starts = [(recorded, event) for recorded in own if isinstance(event := recorded.event, RunStarted)]
    if not starts:
        raise invalid(field, f"run {run.run_id} has not started: nothing was given to its agent")
    found = next((start for start in starts if start[1].attempt == attempt), None if attempt else starts[-1])
    if found is None:
        raise invalid("attempt", f"run {run.run_id} has attempts 1 to {starts[-1][1].attempt}")
    context, problem = _rebuilt(view, found[0], found[1])
    return Attempt(
        run_id=run.run_id,
        key=run.session_key,
        step=run.step,
        start=found[0],
        started=found[1],
        context=context,
        refused=sum(
            isinstance(recorded.event, RunInterrupted)
            and recorded.event.too_long is not None
            and recorded.version < found[0].version
            for recorded in own
        ),
        transcript=() if context is None else context.transcript,
        problem=problem,
        hides=view.is_stranger(run.session_key),
    )


def _rebuilt(view: View, start: Recorded, started: RunStarted) -> tuple[RunContext | None, str | None]:
    """Return an attempt's context, and what is wrong with it."""
    key = start.stream.partition(":")[2]
    stored = as_it_is(view.log) if view.hides else view.log
    context = past_context(stored, key, started.run_id, start.version - 1)
    if context is not None and hash_as_recorded(context, started) == started.context_hash:
        return context, None
    if context is None:
        return None, "the log does not have its message any more"
    return (
        context,
        "the log does not give what was recorded: words were erased or changed since",
    )


def _named(view: View, name: str, *, field: str) -> RunOutcome | _Answered:
    """Return the run that a name or a place means; of what was imported, the message that it answers, or that is it."""
    base = _place_in(name, field)
    if isinstance(base, AtPosition | AtEvent) and not view.is_run(name):
        at = _at(view, name, field)
        if isinstance(at, _Answered):
            return at
        base, name = None, at
    if not isinstance(base, InRun):
        found = view.run(name, field=field)
        return found if isinstance(found, RunOutcome) else _imported(view, found, field, run_id=name.strip())
    flow = view.flow(base.run, field=field)
    if isinstance(flow, RunOutcome):
        return flow
    stream = flow.stream
    asked = _asked_at(view, stream, base)
    if asked is None:
        named = ", ".join(f"@{mark}" for mark in _asked_in(view, stream))
        raise invalid(field, f"{name[:64]!a}: no agent was asked for that; agents were asked for {named}")
    return view.reader.runs.get(asked) or _imported(view, flow, field, run_id=asked)


def _place_in(name: str, field: str) -> Base | None:
    try:
        return parse_place(name, field=field).base
    except UnknownPlace as error:
        if "@" in name:
            raise ToolRefused("invalid_request", str(error)) from None
        return None


def _at(view: View, name: str, field: str) -> str | _Answered:
    """Return the name of the run of an event, or the imported message that it has."""
    position = view.place(name, field=field).position
    recorded = next(view.known(view.log.at([position])), None)
    if recorded is not None and is_imported(recorded.event):
        return _Answered(f"#{position}", "message", recorded)
    run_id = None if recorded is None else run_named(recorded.event)
    if run_id is None:
        raise invalid(field, f"#{position} is no event of a run, and no imported message that has its words")
    return run_id


def _imported(view: View, flow: Flow, field: str, *, run_id: str) -> _Answered:
    """Return the message of an imported exchange or spawn that a run of it answers: its first, where the name is not a run's."""
    events = view.log.stream(flow_stream(flow) or "")
    asked = [(one.position, found) for one in events if (found := run_asked_in(one.event)) is not None]
    position, run = next((each for each in asked if each[1].run_id == run_id), asked[0])
    there = [
        one
        for one in view.log.stream(ids.session_stream(run.asked))
        if is_imported(one.event)
        and isinstance(one.event, MessageRecorded)
        and one.event.message.id == run.message_id
    ]
    if not there:
        raise invalid(field, f"no message is recorded that run {run.run_id} of {run.asked} answers")
    nearest = min(there, key=lambda one: abs(one.position - position))
    return _Answered(run.run_id, _STEPS.get(run.place, "reply"), nearest)


_STEPS: Final[Mapping[str, Step]] = {"announce": "announce", "result": "announce"}


def _asked_in(view: View, stream: str) -> Iterator[str]:
    """Yield the places of an exchange or a spawn for which an agent was asked."""
    for recorded in view.log.stream(stream):
        asked = run_asked_in(recorded.event)
        if asked is not None and asked.place != "result":
            yield asked.place


def _asked_at(view: View, stream: str, base: InRun) -> str | None:
    """Return the run that an exchange or a spawn asked for at a place of it."""
    asked: str | None = None
    for recorded in view.log.stream(stream):
        event = run_asked_in(recorded.event)
        if event is not None and _is_at(event.place, base):
            asked = event.run_id
    return asked


def _is_at(place: str, base: InRun) -> bool:
    match base.mark:
        case "turn":
            return place == f"turn:{base.turn}"
        case "start" | "reply":
            return place == "reply"
        case "announce":
            return place == "announce"
        case "end":
            return place not in {"reply", "result"}
        case _:
            return False

"""The input of an agent that another system had run, as far as its record says: what its session had been told (LENS-3)."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.prompt.fitting import Summary
from intersession_actors.rules.prompt.transcript import RunContext, context_hash
from intersession_events.basics.ids import session_stream
from intersession_events.facts import (
    LineImported,
    Message,
    MessageRecorded,
    SessionOpened,
    generation_of,
    message_in,
)
from intersession_events.facts.reasons import counted
from intersession_events.log.log import ReadsEvents
from intersession_events.log.recorded import Recorded

NOT_KNOWN: Final = (
    "imported: what had been said up to there is as the source kept it. The system's text, the tools, the settings and the "
    "deadline were not kept, so this is not byte for byte what the model was given"
)


class ImportedInput(NamedTuple):
    """`context` is None where nothing had been said before; `problem` says what an import can't know."""

    context: RunContext | None
    model: str | None
    problem: str


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that change what an agent is given, of a line that holds no message, or of a message of a graph."""

    parent_id: str | None = None
    removed: tuple[str, ...] | None = None
    given: tuple[str, ...] | None = None
    summary: str | None = None
    first_kept_entry_id: str | None = None
    langgraph: "_Graph | None" = None


class _Graph(msgspec.Struct, frozen=True):
    checkpoint: str | None = None


_DECODE: Final = msgspec.json.Decoder(_Line).decode
_NOTHING: Final = _Line()


def imported_input(log: ReadsEvents, at: Recorded) -> ImportedInput:
    """Return what an agent had when it gave the imported answer at `at`; of any other message, what it had with it."""
    told = _Session(log, at)
    said, missing = told.said()
    problem = f"{NOT_KNOWN}. {missing}" if missing else NOT_KNOWN
    number = next((each for each in reversed(range(len(said))) if said[each].role == "user"), len(said) - 1)
    if number < 0:
        return ImportedInput(None, told.model, f"{problem}. Nothing had been said before")
    transcript, message, partial = said[:number], said[number], tuple(said[number + 1 :])
    summary = told.summary
    if summary is not None and summary.messages > number:
        summary = msgspec.structs.replace(summary, messages=number)
    context = RunContext(
        message=message,
        transcript=transcript,
        partial=partial,
        system_context="",
        hash=context_hash(transcript, message, partial, ""),
        version=at.version,
        summary=summary,
    )
    return ImportedInput(context, told.model, problem)


class _Session:
    """A session's record up to a message: its messages in their order, and the lines that took some out or put some before."""

    summary: Summary | None = None

    def __init__(self, log: ReadsEvents, at: Recorded) -> None:
        self._log = log
        self._at = at
        self._all = log.stream(at.stream)
        asked = next(event for one in self._all if one.version == at.version and (event := _imported(one)))
        self._line = _line(asked)
        until = at.version - 1 if asked.message.role == "assistant" else at.version
        answers = (
            each.message
            for one in self._all
            if one.version >= at.version and (each := _imported(one)) is not None
        )
        self.model = next((one.model for one in answers if one.role == "assistant"), None)
        """The model of the answer."""
        self._own = [
            one.event
            for one in self._all
            if one.version <= until and generation_of(one.event) == asked.session_id
        ]

    def said(self) -> tuple[list[Message], str]:
        """Return what the agent was given, and in words what of it is not at hand."""
        said = [message for event in self._own if (message := message_in(event)) is not None]
        if (graph := self._line.langgraph) is not None:
            return self._of_graph(said, graph.checkpoint)
        for event in self._own:
            if isinstance(event, LineImported) and event.kind == "compaction":
                self._compacted(said, event.entry_id or "", _line(event))
        return said, ""

    def _compacted(self, said: Sequence[Message], entry: str, line: _Line) -> None:
        kept = [number for number, one in enumerate(said) if one.id == line.first_kept_entry_id]
        if kept and line.summary:
            self.summary = Summary(run_id=entry, messages=kept[0], tokens=0, text=line.summary)

    def _of_graph(self, said: list[Message], checkpoint: str | None) -> tuple[list[Message], str]:
        """Leave out what earlier steps of the message's own branch took out of the state; put before it what its thread gave."""
        lines = {
            one.event.entry_id: _line(one.event)
            for one in self._all
            if isinstance(one.event, LineImported) and one.event.kind == "checkpoint"
        }
        # What the step of the message itself took out was there for it.
        step = lines.pop(checkpoint, _NOTHING)
        removed, given = set[str](), set(step.given or ())
        while (step := lines.pop(step.parent_id, _NOTHING)) is not _NOTHING:
            removed.update(step.removed or ())
            given.update(step.given or ())
        own = {_own_id(one): one for one in said if one.id not in removed}
        if not given:
            return [*own.values()], ""
        there = {
            name: own.pop(name, one)
            for one in self._of_thread()
            if (name := _own_id(one)) in given or name in own
        }
        missing = len(given - there.keys())
        lost = f"{counted(missing, 'message')} that its thread gave it stand in a branch that was given up"
        return [*there.values(), *own.values()], lost if missing else ""

    def _of_thread(self) -> Iterator[Message]:
        opened = next((one.event for one in self._all if isinstance(one.event, SessionOpened)), None)
        if opened is not None and opened.spawned_by is not None:
            for one in self._log.stream(session_stream(opened.spawned_by)):
                if one.position < self._at.position and (event := _imported(one)) is not None:
                    yield event.message


def _imported(recorded: Recorded) -> MessageRecorded | None:
    event = recorded.event
    return event if isinstance(event, MessageRecorded) and event.source is not None else None


def _own_id(message: Message) -> str:
    """Return the id that a graph gave a message, without the checkpoint in which it was changed."""
    return message.id.partition("@")[0]


def _line(event: MessageRecorded | LineImported) -> _Line:
    """Return a line's fields; of one that was erased, or has other values under these names, none."""
    try:
        return _NOTHING if event.source is None else _DECODE(event.source)
    except msgspec.DecodeError:
        return _NOTHING

"""The input of an agent that another system had run, as far as its record says: what its session had been told (LENS-3)."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.prompt.fitting import Summary
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.basics.ids import session_stream
from intersession_events.facts import (
    Event,
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
    """`context` is None where nothing had been said before, and has no hash; `problem` says what an import can't know."""

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


class _Step(NamedTuple):
    """A checkpoint of a graph: what was taken out of its state up to there, and what its thread had given it."""

    parent: str | None = None
    removed: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()


_DECODE: Final = msgspec.json.Decoder(_Line).decode
_NOTHING: Final = _Line()
_BEGUN: Final = _Step()


class _Generation:
    """The messages of one session id, and its compactions, each by its version."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.messages: list[Message] = []
        self.numbers: dict[str, int] = {}
        """Of each message by its id."""
        self.compactions: list[tuple[int, Summary]] = []

    def take(self, version: int, event: Event) -> None:
        message = message_in(event)
        if message is not None:
            self.numbers.setdefault(message.id, len(self.messages))
            self.versions.append(version)
            self.messages.append(message)
        elif isinstance(event, LineImported) and event.kind == "compaction":
            line = _line(event)
            kept = self.numbers.get(line.first_kept_entry_id or "")
            if kept is not None and line.summary:
                summary = Summary(run_id=event.entry_id or "", messages=kept, tokens=0, text=line.summary)
                self.compactions.append((version, summary))


class ImportedSession:
    """A session's record: its messages in their order, and the lines that took some out or put some before. It is read once."""

    def __init__(self, log: ReadsEvents, stream: str) -> None:
        self._log = log
        self._messages: dict[int, tuple[Recorded, MessageRecorded]] = {}
        self._generations = defaultdict[str, _Generation](_Generation)
        self._checkpoints: dict[str | None, _Line] = {}
        self._steps: dict[str | None, _Step] = {}
        self._thread = ""
        for one in log.stream(stream):
            event = one.event
            if (said := _imported(one)) is not None:
                self._messages[one.version] = one, said
            if isinstance(event, SessionOpened):
                self._thread = self._thread or event.spawned_by or ""
            elif isinstance(event, LineImported) and event.kind == "checkpoint":
                self._checkpoints[event.entry_id] = _line(event)
            session_id = generation_of(event)
            if session_id is not None:
                self._generations[session_id].take(one.version, event)

    @property
    def answers(self) -> list[Recorded]:
        """The imported answers, the first one first."""
        return [one for one, event in self._messages.values() if event.message.role == "assistant"]

    @property
    def messages(self) -> Iterator[Message]:
        """All messages that any answer may have been given: its own, and its thread's."""
        for generation in self._generations.values():
            yield from generation.messages
        yield from (one for _, one in self._of_thread)

    def input(self, at: Recorded) -> ImportedInput:
        """Return what an agent had when it gave the imported answer at `at`; of any other message, what it had with it."""
        _, asked = self._messages[at.version]
        own = self._generations[asked.session_id]
        until = at.version - 1 if asked.message.role == "assistant" else at.version
        said = own.messages[: bisect_right(own.versions, until)]
        summary = next((one for version, one in reversed(own.compactions) if version <= until), None)
        problem, graph = NOT_KNOWN, _line(asked).langgraph
        if graph is not None:
            summary = None
            said, missing = self._of_graph(said, graph.checkpoint, at.position)
            if missing:
                lost = f"{counted(missing, 'message')} that its thread gave it stand in a branch that was given up"
                problem = f"{problem}. {lost}"
        number = next(
            (each for each in reversed(range(len(said))) if said[each].role == "user"), len(said) - 1
        )
        if number < 0:
            return ImportedInput(None, self._model(at), f"{problem}. Nothing had been said before")
        if summary is not None and summary.messages > number:
            summary = msgspec.structs.replace(summary, messages=number)
        context = RunContext(
            message=said[number],
            transcript=said[:number],
            partial=tuple(said[number + 1 :]),
            system_context="",
            hash="",
            version=at.version,
            summary=summary,
        )
        return ImportedInput(context, self._model(at), problem)

    def _model(self, at: Recorded) -> str | None:
        """Return the model of the answer."""
        _, asked = self._messages[at.version]
        if asked.message.role == "assistant":
            return asked.message.model
        behind = (one.message for version, (_, one) in self._messages.items() if version > at.version)
        return next((one.model for one in behind if one.role == "assistant"), None)

    def _of_graph(
        self, said: list[Message], checkpoint: str | None, position: int
    ) -> tuple[list[Message], int]:
        """Leave out what earlier steps of the message's own branch took out of the state; put before it what its thread gave.

        The number is of messages that its thread gave it and that are not at hand.
        """
        step = self._step(checkpoint)
        # What the step of the message itself took out was there for it.
        removed = self._step(step.parent).removed
        own = {_own_id(one): one for one in said if one.id not in removed}
        if not step.given:
            return [*own.values()], 0
        there = {
            name: own.pop(name, one)
            for place, one in self._of_thread
            if place < position and ((name := _own_id(one)) in step.given or name in own)
        }
        return [*there.values(), *own.values()], len(step.given - there.keys())

    def _step(self, checkpoint: str | None) -> _Step:
        """Return the step of a checkpoint, which goes on from that of its parent."""
        path: list[tuple[str | None, _Line]] = []
        name = checkpoint
        while (line := self._checkpoints.pop(name, None)) is not None:
            path.append((name, line))
            name = line.parent_id
        for name, line in reversed(path):
            before = self._steps.get(line.parent_id, _BEGUN)
            self._steps[name] = _Step(
                parent=line.parent_id,
                removed=before.removed.union(line.removed or ()),
                given=before.given.union(line.given or ()),
            )
        return self._steps.get(checkpoint, _BEGUN)

    @cached_property
    def _of_thread(self) -> list[tuple[int, Message]]:
        events = self._log.stream(session_stream(self._thread)) if self._thread else ()
        return [(one.position, event.message) for one in events if (event := _imported(one)) is not None]


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

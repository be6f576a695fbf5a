"""What is known of a system from outside and from its log: what clients, agents and channels saw, and the events.

Every `ok` carries a position of the log, so that nobody has to search for an order that fits: they are sorted.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeVar

from intersession_actors.rules.errors import Known, Question
from intersession_events.facts import (
    Message,
    RunAborted,
    RunCompleted,
    RunEnd,
    RunEvent,
    RunFailed,
    RunQueued,
    RunStarted,
    generation_of,
    message_in,
)
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.views.run_outcomes.replies import Replies

E = TypeVar("E")

SLACK_S: Final = 20.0
"""How much later than it was decided something may be committed, before its time is said to be too short."""
LATE_S: Final = 300.0
"""How much later than it is due something may be, where a store was away or somebody was busy."""
WHITE_SPACE: Final = " \t\r\n"


def said(text: str | None) -> str | None:
    """Return a text as somebody says it, None where that is nothing (LOOP-6): the protocol's words, not the code's."""
    return None if text is None or text.strip(WHITE_SPACE) in {"", "NO_REPLY"} else text


def is_word(text: str | None, word: str) -> bool:
    """Say whether a text is a word that keeps silent, and nothing else (LOOP-2, ANN-1)."""
    return text is not None and text.strip(WHITE_SPACE) == word


@dataclass(frozen=True, kw_only=True)
class Op:
    """One call of a client. `began` and `position` are the log's head when it was made and when its answer came.

    `ok` was accepted, `fail` was refused for good, `info` may have been done or not: nobody knows. A read's position is
    that of its answer, and `seen` the ids of the messages in it. `call` names what is asked for, so that two with the
    same name are one call and its retry.
    """

    client: str
    kind: Literal["write", "read", "wait"]
    outcome: Literal["ok", "fail", "info"]
    began: int = 0
    position: int = 0
    call: str | None = None
    text: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One call of an agent: the log's head then, and what it was given (None: nobody looked).

    `given` are the ids of the transcript's messages, `partial` is how many the attempts before had recorded.
    """

    run_id: str
    attempt: int
    position: int | None = None
    given: tuple[str, ...] | None = None
    partial: int | None = None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A text that a channel showed its people. `said`: it said so in time to a process that lived on."""

    key: str
    text: str
    said: bool = True


class Held(NamedTuple):
    """What the world held when something was decided: how far the log had come, which agents were not there, what the clocks said.

    `seconds` is of the clock that nobody sets, and `asked` of the same clock when the store was last asked for the append. `begun`
    is how far the log had come when this process began, `begun_ms` what the wall clock said then, and `was_set` says that somebody
    set it since. `tools` are those that the session has, None where it is none.
    """

    head: int
    absent: frozenset[str]
    now_ms: int
    seconds: float = 0.0
    asked: float = 0.0
    begun: int = 0
    begun_ms: int = 0
    was_set: bool = False
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All of it; None is not known.

    `called` are the keys that channels were called with, `aborts` the sessions in which somebody asked for an abort, `passed`
    says for positions when they were committed, in seconds of a clock that nobody sets. `decided` says for runs which position
    the log had come to when their first start was decided. `answers` are the texts that agents gave, by run and attempt, where
    somebody listened. `held` is what the world held at decisions, by stream, version and decision record. `judged` is what doors judged, each with the log's head then. `attempts` is how often a run may be tried, `windows` what of its model each agent may use, in tokens, where that is limited. `until` is when all was over, by the clock of `passed`.
    With `ended` nothing may be open.
    """

    events: Sequence[Recorded]
    ops: Sequence[Op] = ()
    asked: Sequence[Asked] | None = None
    called: Sequence[str] | None = None
    shown: Sequence[Shown] = ()
    aborts: Collection[str] | None = None
    passed: Mapping[int, float] = field(default_factory=dict[int, float])
    decided: Mapping[str, int] = field(default_factory=dict[str, int])
    answers: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    held: Mapping[tuple[str, int, str], Held] = field(default_factory=dict[tuple[str, int, str], Held])
    judged: Sequence[tuple[int, Question, Known]] | None = None
    attempts: int = 2
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    until: float = 0.0
    ended: bool = False

    def of(self, kind: type[E]) -> list[tuple[Recorded, E]]:
        """Return the events of a kind, in order, each with what the log says of it."""
        return [(item, item.event) for item in self._by_kind[kind] if isinstance(item.event, kind)]

    @cached_property
    def _parts(self) -> list[Recorded]:
        """All events, each with what follows in it right behind it, with the texts of the runs that it names."""
        return [*parts_in(map(Replies(self.events).with_texts, self.events))]

    @cached_property
    def _by_kind(self) -> Mapping[type[object], list[Recorded]]:
        found: defaultdict[type[object], list[Recorded]] = defaultdict(list)
        for item in self._parts:
            found[type(item.event)].append(item)
        return found

    @cached_property
    def streams(self) -> Mapping[str, list[Recorded]]:
        """The events of each stream, each with what follows in it right behind it."""
        found: defaultdict[str, list[Recorded]] = defaultdict(list)
        for item in self._parts:
            found[item.stream].append(item)
        return found

    def flows(self, prefix: str) -> list[list[Recorded]]:
        """Return the streams whose names begin with a prefix."""
        return [items for name, items in self.streams.items() if name.startswith(prefix)]

    @cached_property
    def runs(self) -> Mapping[str, list[Recorded]]:
        """The events of each run."""
        found: defaultdict[str, list[Recorded]] = defaultdict(list)
        for item in self.events:
            if isinstance(item.event, RunEvent):
                found[item.event.run_id].append(item)
        return found

    @cached_property
    def queued(self) -> Mapping[str, tuple[Recorded, RunQueued]]:
        """Each run, as it was queued first."""
        return {event.run_id: (item, event) for item, event in reversed(self.of(RunQueued))}

    @cached_property
    def ends(self) -> Mapping[str, tuple[Recorded, RunEnd]]:
        """How each run ended first."""
        found: dict[str, tuple[Recorded, RunEnd]] = {}
        for item in self.events:
            if isinstance(item.event, RunEnd):
                found.setdefault(item.event.run_id, (item, item.event))
        return found

    @cached_property
    def replies(self) -> Mapping[str, RunCompleted]:
        """The answers of runs."""
        return {run_id: end for run_id, (_, end) in self.ends.items() if isinstance(end, RunCompleted)}

    @cached_property
    def messages(self) -> Mapping[str, list[tuple[Recorded, Message]]]:
        """The messages by their ids: one each, if nothing is wrong."""
        found: defaultdict[str, list[tuple[Recorded, Message]]] = defaultdict(list)
        for item, message in self.said:
            found[message.id].append((item, message))
        return found

    @cached_property
    def said(self) -> Sequence[tuple[Recorded, Message]]:
        """All messages, whichever events brought them."""
        return [(item, message) for item in self.events if (message := message_in(item.event)) is not None]

    def seconds_between(self, earlier: Recorded, later: Recorded) -> float | None:
        """Return how long after another event one was committed; None where that was in other processes, or nobody looked."""
        moments = self.passed.get(earlier.position), self.passed.get(later.position)
        if earlier.epoch != later.epoch or moments[0] is None or moments[1] is None:
            return None
        return moments[1] - moments[0]

    def seconds_since(self, item: Recorded) -> float | None:
        """Return how long ago an event was committed when all was over; None where another process followed, or nobody looked."""
        moment = self.passed.get(item.position)
        is_last = item.epoch == self.events[-1].epoch
        return self.until - moment if self.until and moment is not None and is_last else None

    @cached_property
    def transcripts(self) -> Mapping[str, "Transcript"]:
        """What was said in each generation of a session, as it was taken."""
        found: defaultdict[str, Transcript] = defaultdict(Transcript)
        waiting: dict[str, tuple[str, str]] = {}
        for item in self.events:
            message, generation = message_in(item.event), generation_of(item.event)
            if message is not None and generation is not None:
                found[generation].arrive(item.position, message.id)
            match item.event:
                case RunQueued(run_id=run_id, session_id=session_id, message_id=message_id):
                    found[session_id].wait(message_id)
                    waiting[run_id] = session_id, message_id
                case RunStarted(run_id=run_id, attempt=1) if run_id in waiting:
                    session_id, message_id = waiting.pop(run_id)
                    found[session_id].take(item.position, message_id)
                case RunCompleted(run_id=run_id) | RunFailed(run_id=run_id) | RunAborted(run_id=run_id) if (
                    run_id in waiting
                ):
                    session_id, message_id = waiting.pop(run_id)
                    found[session_id].take(item.position, message_id)
                case _:
                    pass
        return found


class Transcript:
    """The messages of a session's generation, each with the position at which it was taken; and those that waited, from when to when."""

    def __init__(self) -> None:
        self._taken: list[tuple[int, str]] = []
        self._waited: dict[str, tuple[int, int | None]] = {}

    def arrive(self, position: int, message_id: str) -> None:
        """Note a message: it is taken at once, unless it is found to wait."""
        self._taken.append((position, message_id))

    def wait(self, message_id: str) -> None:
        """Note that a message waits for its run."""
        for index in range(len(self._taken) - 1, -1, -1):
            position, known = self._taken[index]
            if known == message_id:
                del self._taken[index]
                self._waited[message_id] = (position, None)
                return

    def take(self, position: int, message_id: str) -> None:
        """Note that the run of a message that waited has begun."""
        if message_id in self._waited:
            self._waited[message_id] = (self._waited[message_id][0], position)
            self._taken.append((position, message_id))

    def taken(self, position: int) -> list[str]:
        """Return what had been taken at a position."""
        return [message_id for at, message_id in self._taken if at <= position]

    def waiting(self, position: int) -> list[str]:
        """Return what waited at a position, in order of arrival."""
        return [
            message_id
            for message_id, (since, until) in self._waited.items()
            if since <= position and (until is None or until > position)
        ]

    @property
    def ids(self) -> list[str]:
        """All messages, those that wait last."""
        return [message_id for _, message_id in self._taken] + [
            message_id for message_id, (_, until) in self._waited.items() if until is None
        ]

"""The inputs and actions of agents, read from a log's sessions: for an agent that repeats them (`recorded.py`)."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeAlias

import msgspec

from intersession_actors.rules.prompt.meaning import Meanings, text_meaning
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.ids import SESSIONS
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

Ended: TypeAlias = "facts.RunEnd | facts.RunInterrupted | None"
"""How an attempt ended; None: the log does not have its end."""


class RecordedAttempt(msgspec.Struct, kw_only=True):
    """One attempt of a run: its place, its agent's input and actions, and how it ended.

    `position` is that of its start. `done` are the messages that were recorded while it went on, in their order,
    `answered` those that its agent gave with its answer, as it gave them, and `reply` the text of the answer, skip words and
    all; None where it has none.
    """

    run_id: str
    session_key: str
    step: facts.Step
    flow: str | None
    turn: int | None
    attempt: int
    position: int
    context_hash: str
    meaning: str
    given: str
    """The end of what it was given, for people: the message that it answered."""
    context: RunContext | None = None
    """All of what it was given; None where nobody knows, as of an import."""
    done: tuple[facts.Message, ...] = ()
    done_at: tuple[int, ...] = ()
    """The positions of the same."""
    answered: tuple[facts.Message, ...] | None = None
    reply: str | None = None
    end: Ended = None
    ended_at: int = 0
    """The position of its end; 0 while it has none."""

    @property
    def place(self) -> "Spot":
        """Its place in its session, independent of ids."""
        return spot(self.session_key, self.step, self.turn, self.attempt)


Spot: TypeAlias = "tuple[str, facts.Step, int | None, int]"


def spot(session_key: str, step: facts.Step, turn: int | None, attempt: int) -> Spot:
    """Return an attempt's place in a run, by session, step, turn and attempt."""
    return text_meaning(session_key), step, turn, attempt


class _Attempts:
    """The attempts of the sessions of one name, in the order of their starts."""

    def __init__(self, attempts: Iterable[RecordedAttempt]) -> None:
        self.by_run: dict[tuple[str, int], RecordedAttempt] = {}
        self.by_hash: dict[str, list[RecordedAttempt]] = {}
        self.by_meaning: dict[str, list[RecordedAttempt]] = {}
        self.by_spot: dict[Spot, list[RecordedAttempt]] = {}
        for attempt in sorted(attempts, key=lambda one: one.position):
            self.by_run[attempt.run_id, attempt.attempt] = attempt
            self.by_hash.setdefault(attempt.context_hash, []).append(attempt)
            self.by_meaning.setdefault(attempt.meaning, []).append(attempt)
            self.by_spot.setdefault(attempt.place, []).append(attempt)


class Recording:
    """The attempts of a log, found by their agents' inputs or by their places. Safe for several threads.

    A session is read when somebody first asks for it, from its beginning: what was recorded elsewhere costs nothing.
    """

    def __init__(
        self, reading: Callable[[], AbstractContextManager[Log]], more: Iterable[RecordedAttempt] = ()
    ) -> None:
        """Read from a log that is opened for each session. `more` are attempts that are not in its sessions."""
        self._reading = reading
        self._more = tuple(more)
        self._streams: dict[str, list[str]] | None = None
        self._told: dict[str, _Attempts] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, log: Log) -> "Recording":
        """Read from a log that stays open."""
        return cls(lambda: nullcontext(log))

    def with_also(self, more: Iterable[RecordedAttempt]) -> "Recording":
        """Return it with further attempts that are not in its log's sessions."""
        return Recording(self._reading, (*self._more, *more))

    def run(self, session_key: str, run_id: str, attempt: int) -> RecordedAttempt | None:
        """Return an attempt of a session by its run's id.

        Raises:
            CorruptEvent: a row of the session can't be read. So do the other questions.
        """
        return self._of(session_key).by_run.get((run_id, attempt))

    def with_context(self, session_key: str, context_hash: str) -> tuple[RecordedAttempt, ...]:
        """Return the attempts of a session with exactly this input."""
        return tuple(self._of(session_key).by_hash.get(context_hash, ()))

    def with_meaning(self, session_key: str, meaning: str) -> tuple[RecordedAttempt, ...]:
        """Return the attempts of a session with the same input except ids and times."""
        return tuple(self._of(session_key).by_meaning.get(meaning, ()))

    def at(self, session_key: str, place: Spot) -> tuple[RecordedAttempt, ...]:
        """Return the attempts in one place: one for each flow that came there."""
        return tuple(self._of(session_key).by_spot.get(place, ()))

    def _of(self, session_key: str) -> _Attempts:
        """Return the attempts of all sessions whose keys are the same but for ids."""
        name = text_meaning(session_key)
        with self._lock:
            if name not in self._told:
                with self._reading() as log:
                    self._told[name] = _Attempts(self._read(log, name))
            return self._told[name]

    def _read(self, log: Log, name: str) -> Iterator[RecordedAttempt]:
        if self._streams is None:
            self._streams = {}
            for stream in log.streams(SESSIONS):
                self._streams.setdefault(text_meaning(stream.removeprefix(SESSIONS)), []).append(stream)
        for stream in self._streams.get(name, ()):
            yield from _attempts(log.stream(stream), stream, log.log_ids)
        yield from (one for one in self._more if text_meaning(one.session_key) == name)


class _PlacedMessage(NamedTuple):
    message: facts.Message
    time: int
    position: int


def _attempts(events: Iterable[Recorded], stream: str, log_ids: Sequence[str]) -> Iterator[RecordedAttempt]:
    """Fold a session's stream, and return each attempt once it is over."""
    key = stream.removeprefix(SESSIONS)
    fold, meanings = TranscriptFold(), Meanings()
    queued: dict[str, facts.RunQueued] = {}
    under_way: RecordedAttempt | None = None
    said: list[_PlacedMessage] = []
    for recorded in events:
        event, message = recorded.event, facts.message_in(recorded.event)
        is_own = under_way is not None and message is not None and message.run_id == under_way.run_id
        if message is not None and is_own and message.role != "user":
            said.append(_PlacedMessage(message, recorded.time, recorded.position))
        match event:
            case facts.RunQueued():
                queued[event.run_id] = event
            case facts.RunStarted():
                under_way, said = (
                    _started(fold, meanings, key, queued.get(event.run_id), (recorded, event)),
                    [],
                )
            case _ if (
                isinstance(event, facts.RunEnd | facts.RunInterrupted)
                and under_way is not None
                and event.run_id == under_way.run_id
            ):
                yield _ended(under_way, said, event, recorded.position, log_ids)
                under_way = None
            case _:
                pass
        fold.apply(recorded)
    if under_way is not None:
        yield _ended(under_way, said, None, 0, log_ids)


def _started(
    fold: TranscriptFold,
    meanings: Meanings,
    key: str,
    queued: facts.RunQueued | None,
    started: tuple[Recorded, facts.RunStarted],
) -> RecordedAttempt | None:
    recorded, event = started
    if queued is None:
        return None
    try:
        context = fold.context(event.run_id)
    except LookupError:
        return None  # imported, or erased: nobody knows what it was given
    return RecordedAttempt(
        run_id=event.run_id,
        session_key=key,
        step=queued.step,
        flow=queued.flow,
        turn=queued.turn,
        attempt=event.attempt,
        position=recorded.position,
        context_hash=event.context_hash,
        meaning=meanings.of(context.transcript, context.message, context.partial, context.system_context),
        given=facts.text_of(context.message),
        context=context,
    )


def _ended(
    attempt: RecordedAttempt,
    said: list[_PlacedMessage],
    end: Ended,
    position: int,
    log_ids: Sequence[str],
) -> RecordedAttempt:
    """Separate the messages recorded on the way from those of the answer, which come after the last result of a tool."""
    behind = len(said)
    while isinstance(end, facts.RunCompleted) and behind:
        if _is_of_a_call(said[behind - 1].message, attempt, log_ids):
            break
        behind -= 1
    attempt.done = tuple(one.message for one in said[:behind])
    attempt.done_at = tuple(one.position for one in said[:behind])
    attempt.end, attempt.ended_at = end, position
    if isinstance(end, facts.RunCompleted):
        _take_answer(attempt, said[behind:], end, log_ids)
    return attempt


def _take_answer(
    attempt: RecordedAttempt,
    said: list[_PlacedMessage],
    end: facts.RunCompleted,
    log_ids: Sequence[str],
) -> None:
    texts = [facts.text_of(one.message) for one in said if one.message.role == "assistant"]
    attempt.reply = texts[-1] if texts else end.reply
    of_text = [ids.derive(log_id, "message", attempt.run_id, "reply", attempt.attempt) for log_id in log_ids]
    if said and said[-1].message.id in of_text:
        said = said[:-1]  # what it gave as a text was recorded as one message with it
    if said:
        attempt.answered = tuple(
            _as_given(one.message, one.time, number, attempt, log_ids) for number, one in enumerate(said)
        )


def _as_given(
    message: facts.Message, time: int, number: int, attempt: RecordedAttempt, log_ids: Sequence[str]
) -> facts.Message:
    """Return a message as the agent gave it: without the id and the time that it was given here (`session/answers.py`)."""
    derived = [
        ids.derive(log_id, "message", attempt.run_id, "out", attempt.attempt, number) for log_id in log_ids
    ]
    return msgspec.structs.replace(
        message,
        id="" if message.id in derived else message.id,
        timestamp=0 if message.timestamp == time else message.timestamp,
        run_id=None,
        provenance=None,
    )


def _is_of_a_call(message: facts.Message, attempt: RecordedAttempt, log_ids: Sequence[str]) -> bool:
    """Whether a message was recorded when a tool was called, or gave something: its id says so (`tools/recorder.py`).

    An agent may also bring the words of its tools with its answer.
    """
    what = [f"result:{message.tool_call_id}"]
    if not isinstance(message.content, str):
        what += [f"call:{block.id}" for block in message.content if isinstance(block, facts.ToolCallBlock)]
    return any(
        ids.derive(log_id, "message", attempt.run_id, attempt.attempt, one) == message.id
        for log_id in log_ids
        for one in what
    )

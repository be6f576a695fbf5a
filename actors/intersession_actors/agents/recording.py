"""What agents were given and did, read from the sessions of a log: for an agent that does it again (`recorded.py`)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from intersession_actors.agents.meaning import Meanings, text_meaning
from intersession_actors.prompt import TranscriptFold
from intersession_events import facts, ids
from intersession_events.log import Log, Recorded

Ended: TypeAlias = "facts.RunEnd | facts.RunInterrupted | None"
"""How an attempt ended; None: the log does not have its end."""

_SESSIONS: Final = "session:"


class RecordedAttempt(msgspec.Struct, kw_only=True):
    """One attempt of a run: where it stands, what its agent was given, what it did, and how that ended.

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
    done: tuple[facts.Message, ...] = ()
    answered: tuple[facts.Message, ...] | None = None
    reply: str | None = None
    end: Ended = None
    ended_at: int = 0
    """The position of its end; 0 while it has none."""

    @property
    def place(self) -> "Spot":
        """Where it stands in its session, whatever the ids are."""
        return spot(self.session_key, self.step, self.turn, self.attempt)


Spot: TypeAlias = "tuple[str, facts.Step, int | None, int]"


def spot(session_key: str, step: facts.Step, turn: int | None, attempt: int) -> Spot:
    """Return where an attempt stands in a run, by session, step, turn and attempt."""
    return text_meaning(session_key), step, turn, attempt


class Recording:
    """The attempts of a log, in the order of their starts, found by what their agents were given or by where they stand."""

    def __init__(self, attempts: Iterable[RecordedAttempt]) -> None:
        self.attempts = tuple(sorted(attempts, key=lambda attempt: attempt.position))
        self._by_run = {(attempt.run_id, attempt.attempt): attempt for attempt in self.attempts}
        self._by_hash: dict[tuple[str, str], list[RecordedAttempt]] = {}
        self._by_meaning: dict[tuple[str, str], list[RecordedAttempt]] = {}
        self._by_spot: dict[Spot, list[RecordedAttempt]] = {}
        for attempt in self.attempts:
            session = text_meaning(attempt.session_key)
            self._by_hash.setdefault((session, attempt.context_hash), []).append(attempt)
            self._by_meaning.setdefault((session, attempt.meaning), []).append(attempt)
            self._by_spot.setdefault(attempt.place, []).append(attempt)

    @classmethod
    def of(cls, log: Log, *, sessions: Iterable[str] | None = None) -> "Recording":
        """Read the attempts of some sessions of a log, by key; of all without them.

        Raises:
            CorruptEvent: a row can't be read.
        """
        streams = (
            [stream for stream in log.streams(_SESSIONS) if stream.startswith(_SESSIONS)]
            if sessions is None
            else [ids.session_stream(key) for key in sessions]
        )
        return cls(
            attempt for stream in streams for attempt in _attempts(log.stream(stream), stream, log.log_ids)
        )

    def run(self, run_id: str, attempt: int) -> RecordedAttempt | None:
        """Return an attempt by its run's id."""
        return self._by_run.get((run_id, attempt))

    def with_context(self, session_key: str, context_hash: str) -> tuple[RecordedAttempt, ...]:
        """Return the attempts of a session that were given exactly this."""
        return tuple(self._by_hash.get((text_meaning(session_key), context_hash), ()))

    def with_meaning(self, session_key: str, meaning: str) -> tuple[RecordedAttempt, ...]:
        """Return the attempts of a session that were given the same, but for ids and times."""
        return tuple(self._by_meaning.get((text_meaning(session_key), meaning), ()))

    def at(self, place: Spot) -> tuple[RecordedAttempt, ...]:
        """Return the attempts that stand in one place: one for each flow that came there."""
        return tuple(self._by_spot.get(place, ()))


def _attempts(events: Iterable[Recorded], stream: str, log_ids: Sequence[str]) -> Iterator[RecordedAttempt]:
    """Fold a session's stream, and return each attempt once it is over."""
    key = stream.removeprefix(_SESSIONS)
    fold, meanings = TranscriptFold(), Meanings()
    queued: dict[str, facts.RunQueued] = {}
    under_way: RecordedAttempt | None = None
    said: list[tuple[facts.Message, int]] = []
    for recorded in events:
        event = recorded.event
        match event:
            case facts.RunQueued():
                queued[event.run_id] = event
            case facts.RunStarted():
                under_way, said = (
                    _started(fold, meanings, key, queued.get(event.run_id), (recorded, event)),
                    [],
                )
            case facts.MessageRecorded(message=message) if (
                under_way is not None and message.run_id == under_way.run_id and message.role != "user"
            ):
                said.append((message, recorded.time))
            case facts.RunCompleted() | facts.RunFailed() | facts.RunAborted() | facts.RunInterrupted() if (
                under_way is not None and event.run_id == under_way.run_id
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
    )


def _ended(
    attempt: RecordedAttempt,
    said: list[tuple[facts.Message, int]],
    end: Ended,
    position: int,
    log_ids: Sequence[str],
) -> RecordedAttempt:
    """Tell what was recorded on the way from what came with the answer: that stands behind the last word of a tool."""
    behind = len(said)
    while isinstance(end, facts.RunCompleted) and behind:
        if _is_of_a_call(said[behind - 1][0], attempt, log_ids):
            break
        behind -= 1
    attempt.done = tuple(message for message, _ in said[:behind])
    attempt.end, attempt.ended_at = end, position
    if isinstance(end, facts.RunCompleted):
        _take_answer(attempt, said[behind:], end, log_ids)
    return attempt


def _take_answer(
    attempt: RecordedAttempt,
    said: list[tuple[facts.Message, int]],
    end: facts.RunCompleted,
    log_ids: Sequence[str],
) -> None:
    texts = [facts.text_of(message) for message, _ in said if message.role == "assistant"]
    attempt.reply = texts[-1] if texts else end.reply
    of_text = [ids.derive(log_id, "message", attempt.run_id, "reply", attempt.attempt) for log_id in log_ids]
    if said and said[-1][0].id in of_text:
        said = said[:-1]  # what it gave as a text was recorded as one message with it
    if said:
        attempt.answered = tuple(
            _as_given(message, time, number, attempt, log_ids) for number, (message, time) in enumerate(said)
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

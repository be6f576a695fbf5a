"""An agent that answers from a recording: with the recorded answer to the same input (FORK-7). It reports where that ends.

It sends and spawns again, so that their effects are those of the log it is in. What the agent did with tools of its own is not
done again: their calls and results are put on record as they were. So are tools of the session that only read, unless the
match is `exact`: what they gave depends on what others did at that moment.
"""

import threading
from collections.abc import Callable, Container, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from intersession_actors.outside.agents.recording import RecordedAttempt, Recording, spot
from intersession_actors.outside.agents.result import Broke
from intersession_actors.outside.agents.turn import Reply, Turn
from intersession_actors.rules.prompt.meaning import (
    Meanings,
    Part,
    TurnInput,
    brief,
    given_then,
    prompts_differing,
    results_differing,
    tool_meaning,
)
from intersession_actors.rules.prompt.transcript import (
    context_hash,
    first_context_hash,
    fitted_hash,
)
from intersession_events import facts
from intersession_events.basics.errors import Picklable
from intersession_events.basics.plain_json import JsonValue, is_object
from intersession_events.facts import Message, TextBlock, ToolCallBlock, text_of

Match: TypeAlias = Literal["exact", "meaning", "place"]
"""By what a recorded answer is found: the context hash; the same but for ids and times; or where it stands (`loose`)."""

_ACTING: Final = frozenset({"sessions_send", "sessions_spawn"})
_ERASED_CALL: Final = "nothing: what {} was called with was erased from the log, so it can't be called again"
_NO_THREADS: Final = "no_threads"
"""What a spawn is refused with where the channel opens no thread: its word comes from outside, as an agent's does."""
_READING: Final = frozenset({"sessions_list", "sessions_history", "sessions_search", "agents_list"})


Divergence: TypeAlias = facts.RecordingLeft
"""Where a recording stops being valid, and what differs there: as a fork records it."""


class Diverged(Picklable, LookupError):
    """A recorded agent has no answer: `divergence` says where."""

    def __init__(self, divergence: Divergence) -> None:
        differs = f"; what differs: {', '.join(divergence.differs)}" if divergence.differs else ""
        super().__init__(
            f"{divergence.kind}: the recording has no answer for {divergence.session_key}, {divergence.step}{differs}"
        )
        self.divergence = divergence


OnDivergence: TypeAlias = Callable[[Turn, Divergence], object]
"""Answers a turn that the recording does not answer, as an agent does; what it raises fails the run."""


OnPassed: TypeAlias = Callable[[Divergence], None]
"""Is told of a tool that gave something else, where the agent goes on with what it had said all the same."""


class RecordedCall(NamedTuple):
    """A recorded send or spawn: the run that it began, None if it was refused, and the position of its result."""

    run_id: str | None
    position: int


Waits: TypeAlias = Callable[[RecordedAttempt, RecordedCall | None], None]
"""Blocks until an attempt may answer, or until it may make a call."""


def raising(turn: Turn, divergence: Divergence) -> object:
    """Fail the run.

    Raises:
        Diverged: always.
    """
    del turn
    raise Diverged(divergence)


def _at_once(attempt: RecordedAttempt, call: RecordedCall | None) -> None:
    del attempt, call


def _unmarked(divergence: Divergence) -> None:
    del divergence


class RecordedAgent:
    """Answers each turn with its recorded answer. Calls may come from several threads.

    An attempt is used once, and none that had ended at the position `after`. One that goes on in the middle, since it has recorded
    something already (`Turn.partial`), goes on from there. Where it stands by its `place` alone, a tool that gives something else
    than then ends nothing: `passed` is told of it.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        match: Match = "exact",
        otherwise: OnDivergence = raising,
        passed: OnPassed = _unmarked,
        waits: Waits = _at_once,
        after: int = 0,
    ) -> None:
        self._recording = recording
        self._match = match
        self._otherwise = otherwise
        self._passed = passed
        self._waits = waits
        self._meanings = Meanings()
        self._after = after
        self._lock = threading.Lock()
        self._used: set[tuple[str, int]] = set()

    def __call__(self, turn: Turn) -> object:
        """Answer one turn."""
        found = self._found(turn)
        if isinstance(found, Divergence):
            return self._otherwise(turn, found)
        diverged = self._done_again(turn, found)
        if diverged is not None:
            return self._otherwise(turn, diverged)
        self._waits(found, None)
        return _result(found)

    # --- which attempt it was

    def _found(self, turn: Turn) -> RecordedAttempt | Divergence:
        with self._lock:
            candidates = self._candidates(turn)
            found = next((one for one in candidates if not self._is_used(one)), None)
            if found is not None and found.end is not None:
                self._used.add((found.run_id, found.attempt))
                return found
            there = found or next((one for one in self._in_place(turn) if not self._is_used(one)), None)
        if there is None:
            return _divergence(turn, "missing", now=turn.message)
        if found is not None:
            return _divergence(
                turn, "open", recorded=there.given, now=turn.message, parts=_parts(turn, there)
            )
        return _divergence(turn, "context", recorded=there.reply, now=turn.message, parts=_parts(turn, there))

    def _candidates(self, turn: Turn) -> tuple[RecordedAttempt, ...]:
        """Return the attempts that may be this one, the best first."""
        goes_on = self._going_on(turn)
        if goes_on is not None:
            return (goes_on,)
        if self._match == "place":
            return self._in_place(turn)
        whole = context_hash(turn.transcript, turn.asked, tuple(turn.partial), turn.system_context)
        exact = fitted_hash(whole, turn.fit, turn.summary)
        found = self._recording.with_context(turn.session_key, exact) or self._as_first_recorded(turn)
        if found or self._match == "exact":
            return found
        meaning = self._meanings.of(turn.transcript, turn.asked, turn.partial, turn.system_context)
        return tuple(
            one
            for one in self._recording.with_meaning(turn.session_key, meaning)
            if (one.step, one.turn) == (turn.step, _turn_of(turn))
        )

    def _as_first_recorded(self, turn: Turn) -> tuple[RecordedAttempt, ...]:
        """Return the attempts of the first logs that were given the same."""
        whole = first_context_hash(turn.transcript, turn.asked, tuple(turn.partial), turn.system_context)
        exact = fitted_hash(whole, turn.fit, turn.summary, words=True)
        return self._recording.with_context(turn.session_key, exact)

    def _going_on(self, turn: Turn) -> RecordedAttempt | None:
        """Return the attempt itself, where the log was cut in the middle of it."""
        itself = self._recording.run(turn.session_key, turn.run_id, turn.attempt)
        if itself is None or (itself.context_hash and not turn.partial):
            return None
        is_cut = itself.position <= self._after < (itself.ended_at or self._after + 1)
        # An import says not what its agents were given; where it is cut within a run, that is what it has up to there.
        return itself if is_cut or (turn.attempt == 1 and itself.context_hash) else None

    def _in_place(self, turn: Turn) -> tuple[RecordedAttempt, ...]:
        itself = self._recording.run(turn.session_key, turn.run_id, turn.attempt)
        if itself is not None:
            return (itself,)
        place = spot(turn.session_key, turn.step, _turn_of(turn), turn.attempt)
        return self._recording.at(turn.session_key, place)

    def _is_used(self, attempt: RecordedAttempt) -> bool:
        return 0 < attempt.ended_at <= self._after or (attempt.run_id, attempt.attempt) in self._used

    # --- what it did

    def _done_again(self, turn: Turn, found: RecordedAttempt) -> Divergence | None:
        """Repeat the attempt's recorded actions before its answer; return where a tool gave another result."""
        there = self._on_record(turn, found)
        results = {message.tool_call_id: message for message in found.done if message.role == "toolResult"}
        told_at = {
            message.tool_call_id: at
            for message, at in zip(found.done, found.done_at, strict=True)
            if message.role == "toolResult"
        }
        left_open = _left_open(turn, turn.partial[: len(turn.partial) - there])
        as_it_was: set[str] = set()
        for number, message in enumerate(found.done):
            blocks: tuple[ToolCallBlock, ...]
            if message.role == "toolResult":
                carried_on = left_open.pop(message.tool_call_id or "", None)
                blocks = () if carried_on is None else (carried_on,)
            else:
                blocks = _calls_in(message)
            for block in blocks:
                if not self._is_called(turn, block, results.get(block.id)):
                    as_it_was.add(block.id)
                    continue
                if self._match == "place" and block.arguments == facts.ERASED_OBJECT:
                    self._passed(_not_called(turn, block, results.get(block.id)))
                    as_it_was.add(block.id)
                    continue
                if (at := told_at.get(block.id)) is not None:
                    self._waits(found, RecordedCall(_run_begun(results[block.id]), at))
                diverged = self._compared_again(turn, block, results.get(block.id))
                if diverged is None:
                    continue
                if self._match != "place":
                    return diverged
                self._passed(diverged)
            if number >= there:
                _put_on_record(turn, message, as_it_was)
        return None

    def _compared_again(self, turn: Turn, block: ToolCallBlock, result: Message | None) -> Divergence | None:
        """Call a tool again; return that it gave something else than then."""
        if block.arguments == facts.ERASED_OBJECT:
            return _not_called(turn, block, result)
        return _compared(turn, block.name, result, self._called(turn, block, result))

    def _on_record(self, turn: Turn, found: RecordedAttempt) -> int:
        """Return how much of the attempt's record exists here: the log was forked in the middle of it."""
        if (turn.run_id, turn.attempt) != (found.run_id, found.attempt):
            return 0
        earlier = (
            self._recording.run(turn.session_key, turn.run_id, attempt) for attempt in range(1, turn.attempt)
        )
        return len(turn.partial) - sum(len(attempt.done) for attempt in earlier if attempt is not None)

    def _is_called(self, turn: Turn, block: ToolCallBlock, result: Message | None) -> bool:
        """Whether a tool is called again. A call of the session's that is not counts all the same."""
        if block.name not in _ACTING | _READING:
            return False
        if block.name in _READING:
            is_called = self._match == "exact"
        else:
            is_called = result is None or _code_of(text_of(result)) != _NO_THREADS
        if not is_called:
            _pass_over(turn, block)
        return is_called

    def _called(self, turn: Turn, block: ToolCallBlock, result: Message | None) -> JsonValue:
        """Call a tool again. Then it waited for so long as an agent took; a recorded one takes no time, or that of its machine.

        A wait that ran out over a hold ends as it does now: it is held here as well, or that is what differs.
        """
        arguments = _arguments(block.arguments)
        told = None if result is None else _arguments(text_of(result))
        if self._match == "exact" or told is None or "held" in told:
            return turn.tools.call(block.name, arguments)
        return turn.tools.call_as_then(block.name, arguments, ran_out=told.get("status") == "timeout")


def _left_open(turn: Turn, before: Sequence[Message]) -> dict[str, ToolCallBlock]:
    """Skip the calls of earlier attempts, and return those without a recorded result, by id.

    The attempt goes on behind them: what it calls in the same words is another call.
    """
    answered = {message.tool_call_id for message in before}
    left_open: dict[str, ToolCallBlock] = {}
    for message in before:
        for block in _calls_in(message):
            if block.id not in answered:
                left_open[block.id] = block
            elif block.name in _ACTING | _READING:
                _pass_over(turn, block)
    return left_open


def _pass_over(turn: Turn, block: ToolCallBlock) -> None:
    turn.tools.pass_over(block.name, _arguments(block.arguments))


def _run_begun(result: Message) -> str | None:
    told = _arguments(text_of(result))
    run_id = None if told is None else told.get("runId")
    return run_id if isinstance(run_id, str) else None


def _code_of(result: str) -> JsonValue:
    value = _arguments(result)
    return None if value is None else value.get("code")


def _calls_in(message: Message) -> tuple[ToolCallBlock, ...]:
    if isinstance(message.content, str):
        return ()
    return tuple(block for block in message.content if isinstance(block, ToolCallBlock))


def _put_on_record(turn: Turn, message: Message, as_it_was: Container[str]) -> None:
    """Record the parts of a message that are copied as they were: calls, results, and text or thinking beside calls."""
    recorder = turn.recorder
    if message.role == "toolResult":
        call_id = message.tool_call_id or ""
        if call_id in as_it_was:
            recorder.tool_result(call_id, message.tool_name or "", text_of(message), bool(message.is_error))
        return
    if isinstance(message.content, str):
        if message.content:
            recorder.said((TextBlock(text=message.content),))
        return
    copied = [block for block in _calls_in(message) if block.id in as_it_was]
    if copied:
        recorder.tool_calls(copied)
    blocks = tuple(block for block in message.content if not isinstance(block, ToolCallBlock))
    if blocks:
        recorder.said(blocks)


def _not_called(turn: Turn, block: ToolCallBlock, result: Message | None) -> Divergence:
    """Return that a tool can't be called again, since its arguments were erased."""
    recorded = None if result is None else text_of(result)
    return _divergence(turn, "tool", recorded=recorded, now=_ERASED_CALL.format(block.name))


def _parts(turn: Turn, there: RecordedAttempt) -> tuple[Part, ...]:
    """Return what differs between what a recorded attempt was given and what a turn is given."""
    if there.context is None:
        return ()
    system_context = turn.system_context
    return prompts_differing(
        given_then(there.context), TurnInput(turn.transcript, turn.asked, turn.partial, system_context)
    )


def _compared(turn: Turn, tool: str, recorded: Message | None, now: JsonValue) -> Divergence | None:
    """Return that a tool gave something else than then; nothing is known of one whose result was not recorded."""
    if recorded is None:
        return None
    said = msgspec.json.encode(now).decode()
    if tool_meaning(said) == tool_meaning(text_of(recorded)):
        return None
    then = text_of(recorded)
    return _divergence(turn, "tool", recorded=then, now=said, parts=results_differing(tool, then, said))


def _arguments(source: str) -> dict[str, JsonValue] | None:
    try:
        value: JsonValue = msgspec.json.decode(source)
    except ValueError:
        return None
    return value if is_object(value) else None


def _turn_of(turn: Turn) -> int | None:
    """Return the turn of the loop that is asked, as the message says that asks it; None outside of a loop."""
    origin = turn.asked.provenance
    return None if origin is None else origin.turn


def _divergence(
    turn: Turn,
    kind: facts.DivergenceKind,
    *,
    recorded: str | None = None,
    now: str | None = None,
    parts: Sequence[Part] = (),
) -> Divergence:
    return Divergence(
        session_key=turn.session_key,
        run_id=turn.run_id,
        step=turn.step,
        turn=_turn_of(turn),
        attempt=turn.attempt,
        kind=kind,
        recorded=brief(recorded),
        now=brief(now),
        differs=tuple(part.name for part in parts),
        differs_then=tuple(part.then for part in parts),
        differs_now=tuple(part.now for part in parts),
    )


def _result(found: RecordedAttempt) -> object:
    """Return the agent's result."""
    end = found.end
    match end:
        case facts.RunCompleted():
            return Reply(
                found.reply,
                usage=end.usage,
                model=end.model,
                messages=found.answered,
                stop_reason=end.stop_reason,
            )
        case facts.RunFailed(code=code, error=error, traceback=trace):
            return Broke(code=code, error=error, traceback=trace)
        case facts.RunAborted(by=by):
            return Broke(code="interrupted", error=f"interrupted: it was aborted by {by} then")
        case facts.RunInterrupted(too_long=str() as error):
            return Broke(code="backend", error=error, too_long=True)
        case facts.RunInterrupted():
            return Broke(code="interrupted", error="interrupted: it was cut off then")
        case None:
            raise LookupError(f"the end of run {found.run_id} was not recorded")

"""Recognises calls that an attempt repeats: made in an interrupted attempt, or before a fork was cut (SEND-13).

The agent is asked again from the beginning, so it does again what it did. The content and the number of the repetition identify a
call, in whatever order calls come. Its id is of its place in the attempt that made it, and has nothing of its words (ERASE-4): so the
record is looked through. What came of a call is in the log, under the id that it had there, and its result where that was recorded as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.service.asking import digest_of
from intersession_actors.calls.service.callers import CallingRun
from intersession_actors.calls.service.pending import Result
from intersession_actors.outside.attachments.checks import without_contents
from intersession_actors.owners.chains.cause import Times
from intersession_actors.rules.gate.answers import fit_block
from intersession_actors.rules.gate.values import flaw_of, json_or_text
from intersession_events.basics import ids
from intersession_events.basics.patterns import later
from intersession_events.basics.plain_json import is_object
from intersession_events.facts import Message, ToolCallBlock, text_of

_OURS: Final = later(r"call_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:_\d+)?")
"""The id of a session tool's call. Those of the first logs have no number."""


class MadeCall(NamedTuple):
    """A recorded call: its id, the runs that it may have asked for, each with its log, and whether its result is recorded.

    `answer` is that, unless it was too long to be recorded whole.
    """

    call_id: str
    may_have_asked_for: tuple[tuple[str, str], ...]
    is_answered: bool
    answer: Result | None


def as_recorded(name: object, arguments: object) -> ToolCallBlock:
    """Return a call as it is recorded, but for its id. Far too many arguments are never copied: their call is refused when they are read."""
    flaw = flaw_of(arguments) if is_object(arguments) else None
    if flaw is not None and flaw.code == "too_large":
        arguments = {"omitted": True, "error": f"{flaw.field}: {flaw.what}"}
    elif flaw is None and name == "sessions_spawn":  # a file counts with what is recorded of it (ATT-4)
        arguments = without_contents(arguments)
    named = name if isinstance(name, str) else ascii(name)
    block = fit_block(ToolCallBlock(id="", name=named, arguments=source_of(arguments)))
    assert isinstance(block, ToolCallBlock)  # noqa: S101 - a call stays one
    return block


def source_of(value: object) -> str:
    """Return JSON source text for the record; what can't be JSON is refused elsewhere."""
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:  # nor can it be printed
        return '{"omitted":true,"error":"nested too deep"}'
    except (TypeError, ValueError):
        return msgspec.json.encode(ascii(value)).decode()


def words_of(name: object, arguments: object) -> str:
    """Return the digest of a call's content."""
    return words_in(as_recorded(name, arguments))


def words_in(block: ToolCallBlock) -> str:
    """Return the digest of a recorded call's content. It is for comparing alone: no id is made of it (ERASE-4)."""
    return digest_of([block.name, json_or_text(block.arguments)])


def call_ids(log_id: str, run_id: str, attempt: int) -> str:
    """Return the beginning of the ids of an attempt's calls; behind it is the number of the call."""
    return f"call_{ids.derive(log_id, 'call', run_id, attempt)}_"


def asks_for(log_id: str, call_id: str, run_id: str, words: str, time: int) -> str:
    """Return the id in a log of the run that a call asks for, if it has no key. In the first logs it was made of the call's words."""
    is_numbered = call_id.count("_") > 1
    return ids.derive(log_id, "run", *((call_id,) if is_numbered else (run_id, words, time)))


def asked_anew(
    log_id: str, sources: Sequence[str], run_id: str, said: Iterable[Message], asked_for: str
) -> str | None:
    """Return the id here of the run that a source's call asked for, if the call is repeated; None if there was none.

    `said` is what the calling run had recorded.
    """
    for (words, time), block in _numbered(calls_in(said)).items():
        made = block.id, run_id, words, time
        if any(asks_for(source, *made) == asked_for for source in sources):
            return asks_for(log_id, *made)
    return None


class CallsBefore:
    """The recorded calls of a run when an attempt began. `done` is the run's whole record.

    `log_ids` are the log's and those of the logs that it was forked from.
    """

    def __init__(self, log_ids: Sequence[str], run: CallingRun, done: Sequence[Message]) -> None:
        self._log_ids = log_ids
        self._run = run
        self._done = done

    @cached_property
    def own(self) -> str:
        """The beginning of the ids of the attempt's calls; behind it is the number of the call."""
        return call_ids(self._log_ids[0], self._run.run_id, self._run.attempt)

    def found(self, call_id: str, words: str, time: int) -> MadeCall | None:
        """Return the recorded call that is being repeated: the one with this id, else the n-th with this content of the attempts before."""
        block = self._calls.get(call_id) or self._earlier.get((words, time)) if self._done else None
        if block is None:
            return None
        made = block.id, self._run.run_id, words, time
        given = self._results.get(block.id)
        answer = None if given is None else json_or_text(given)
        return MadeCall(
            block.id,
            tuple((log_id, asks_for(log_id, *made)) for log_id in self._log_ids),
            given is not None,
            answer if is_object(answer) else None,
        )

    @cached_property
    def _calls(self) -> dict[str, ToolCallBlock]:
        return {block.id: block for block in calls_in(self._done)}

    @cached_property
    def _earlier(self) -> dict[tuple[str, int], ToolCallBlock]:
        # A call of this attempt is here where another process began it, for a worker: it is known by its id alone.
        return _numbered(block for block in self._calls.values() if not block.id.startswith(self.own))

    @cached_property
    def _results(self) -> dict[str, str]:
        return {one.tool_call_id: text_of(one) for one in reversed(self._done) if one.tool_call_id}


def _numbered(calls: Iterable[ToolCallBlock]) -> dict[tuple[str, int], ToolCallBlock]:
    """Return the calls of session tools by their content, and the number of its repetition."""
    times = Times()
    ours = (block for block in calls if _OURS.fullmatch(block.id))
    return {(words, times.next(words)): block for block in ours for words in (words_in(block),)}


def calls_in(messages: Iterable[Message]) -> Iterator[ToolCallBlock]:
    """Yield the tool calls in messages."""
    for message in messages:
        if not isinstance(message.content, str):
            yield from (block for block in message.content if isinstance(block, ToolCallBlock))

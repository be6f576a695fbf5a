"""Recognises calls that an attempt repeats: made in an interrupted attempt, or before a fork was cut (SEND-13).

The agent is asked again from the beginning, so it does again what it did. The number of the repetition identifies a call
with the same content, in whatever order calls come: its id derives of the run, the words and that number. What came of a call is in
the log, under the id that it had there, and its result where that was recorded as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from intersession_actors.calls.service.asking import digest_of
from intersession_actors.calls.service.callers import CallingRun
from intersession_actors.calls.service.pending import Result
from intersession_actors.outside.attachments.checks import without_contents
from intersession_actors.owners.chains.cause import Times
from intersession_actors.rules.gate.values import flaw_of, json_or_text
from intersession_events.basics import ids
from intersession_events.basics.plain_json import is_object
from intersession_events.facts import Message, ToolCallBlock, text_of


class MadeCall(NamedTuple):
    """A recorded call: the log in which it was made, its id, the id of its run, and whether its result is recorded.

    `answer` is that, unless it was too long to be recorded whole.
    """

    log_id: str
    call_id: str
    asks_for: str
    is_answered: bool
    answer: Result | None


class CallIds(NamedTuple):
    """The ids derived for a call in a log: its own, and that of its run if it has no key."""

    log_id: str
    call_id: str
    asks_for: str


def words_of(name: object, arguments: object) -> str:
    """Return the digest of a call's content. A file counts with what is recorded of it (ATT-4)."""
    flaw = flaw_of(arguments) if is_object(arguments) else None
    if flaw is not None:  # it is refused, and what is far too large is not read for that
        return digest_of([ascii(name), flaw.field, flaw.what])
    try:
        return digest_of([name, without_contents(arguments) if name == "sessions_spawn" else arguments])
    except (TypeError, ValueError, RecursionError):
        return digest_of([ascii(name), ascii(arguments)])


def ids_of(log_id: str, run_id: str, words: str, time: int) -> CallIds:
    """Return the ids of a run's n-th call with the same content, whichever attempt makes it."""
    call_id = f"call_{ids.derive(log_id, 'call', run_id, words, time)}"
    return CallIds(log_id, call_id, ids.derive(log_id, "run", run_id, words, time))


def asked_anew(
    log_id: str, sources: Sequence[str], run_id: str, said: Iterable[Message], asked_for: str
) -> str | None:
    """Return the id here of the run that a source's call asked for, if the call is repeated; None if there was none.

    `said` is what the calling run had recorded.
    """
    times = Times()
    for block in calls_in(said):
        words = words_of(block.name, json_or_text(block.arguments))
        time = times.next(words)
        if any(ids_of(source, run_id, words, time).asks_for == asked_for for source in sources):
            return ids_of(log_id, run_id, words, time).asks_for
    return None


class CallsBefore:
    """The recorded calls of a run when an attempt began. `done` is the run's whole record.

    `log_ids` are the log's and those of the logs that it was forked from.
    """

    def __init__(self, log_ids: Sequence[str], run: CallingRun, done: Sequence[Message]) -> None:
        self._log_ids = log_ids
        self._run = run
        self._done = done

    def found(self, words: str, time: int) -> MadeCall | None:
        """Return the recorded call that is being repeated, if it is the same: the n-th with this content."""
        if not self._done:
            return None
        for log_id in self._log_ids:
            derived = ids_of(log_id, self._run.run_id, words, time)
            if derived.call_id in self._calls:
                return self._made(derived)
        return None

    def _made(self, made: CallIds) -> MadeCall:
        given = self._results.get(made.call_id)
        answer = None if given is None else json_or_text(given)
        return MadeCall(*made, given is not None, answer if is_object(answer) else None)

    @cached_property
    def _calls(self) -> dict[str, ToolCallBlock]:
        return {block.id: block for block in calls_in(self._done)}

    @cached_property
    def _results(self) -> dict[str, str]:
        return {one.tool_call_id: text_of(one) for one in reversed(self._done) if one.tool_call_id}


def calls_in(messages: Iterable[Message]) -> Iterator[ToolCallBlock]:
    """Yield the tool calls in messages."""
    for message in messages:
        if not isinstance(message.content, str):
            yield from (block for block in message.content if isinstance(block, ToolCallBlock))

"""Finds what an attempt had called when its log was forked in the middle of it, so that a call made again is not made twice (FORK-4).

The attempt goes on in the fork, and its agent does again what it did. What came of a call is in the log, under the ids of the log
in which it was made, and its result where that was recorded as well.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from intersession_actors.attachments import blocks_without_contents
from intersession_actors.gate import fit_block, json_or_text
from intersession_actors.service import CallingRun, Result
from intersession_events import ids
from intersession_events.facts import Message, ToolCallBlock, text_of
from intersession_events.plain_json import is_object


class MadeCall(NamedTuple):
    """A call that was recorded before: the log in which it was made, its id, and whether what it gave is on record.

    `answer` is that, unless it was too long to be recorded whole.
    """

    log_id: str
    call_id: str
    is_answered: bool
    answer: Result | None


def call_id_of(log_id: str, run: CallingRun, ordinal: int) -> str:
    """Return the id of the call of this number in an attempt."""
    return f"call_{ids.derive(log_id, 'call', run.run_id, run.attempt, ordinal)}"


def made_before(
    ids_there: Mapping[str, str], done: Sequence[Message], *, name: str, arguments: str
) -> MadeCall | None:
    """Return the call that is made again, if it was the same one: of the same tool, with the same arguments (JSON).

    `ids_there` are the ids that it would have had in the logs that this one was forked from, by log. `done` is what the run had
    recorded.
    """
    for log_id, call_id in ids_there.items():
        call = ToolCallBlock(id=call_id, name=name, arguments=arguments)
        if any(_is_same(block, call) for message in done for block in _calls_in(message)):
            given = next((text_of(message) for message in done if message.tool_call_id == call_id), None)
            answer = None if given is None else json_or_text(given)
            return MadeCall(log_id, call_id, given is not None, answer if is_object(answer) else None)
    return None


def _calls_in(message: Message) -> tuple[ToolCallBlock, ...]:
    blocks = () if isinstance(message.content, str) else message.content
    return tuple(block for block in blocks if isinstance(block, ToolCallBlock))


def _is_same(recorded: ToolCallBlock, made: ToolCallBlock) -> bool:
    if recorded.id != made.id or recorded.name != made.name:
        return False
    (block,) = blocks_without_contents((made,))
    fitted = fit_block(block)
    return isinstance(fitted, ToolCallBlock) and json_or_text(recorded.arguments) == json_or_text(
        fitted.arguments
    )

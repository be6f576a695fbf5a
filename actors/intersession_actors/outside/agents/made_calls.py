"""The calls of earlier attempts, for an agent whose own tools must not act twice (SEND-13)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from intersession_actors.rules.gate.answers import fit_block
from intersession_actors.rules.gate.values import json_or_text
from intersession_events.basics.plain_json import JsonValue
from intersession_events.facts import Message, ToolCallBlock, text_of


class MadeCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that an earlier attempt had recorded.

    `arguments` and `result` are as they were recorded: long ones were cut. `ordinal` counts calls with the same content, from 1
    on. `has_ended`: its result is known. If not, the attempt was cut off while the tool was at work or just before
    or behind that: whether it has acted is for the tool to say, which knows the call by `call_id`.
    """

    call_id: str
    name: str
    arguments: JsonValue
    ordinal: int
    has_ended: bool = False
    result: str | None = None
    is_error: bool = False


class _Before(NamedTuple):
    """The calls of before by their ids, and by their words those that have not been made again."""

    made: Mapping[str, MadeCall]
    again: Mapping[bytes, Iterator[str]]


class OwnCalls:
    """An attempt's calls of its agent's own tools: each repeats an earlier one, or is new. From any thread."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self._read: dict[None, _Before] = {}

    def made(self, partial: Sequence[Message]) -> Mapping[str, MadeCall]:
        """Return the earlier calls by their ids, in the order in which they were recorded."""
        return self._before(partial).made

    def again(self, partial: Sequence[Message], call: ToolCallBlock) -> str | None:
        """Return the id of the earlier call that is being repeated: the next one with the same content, or the one with the given id."""
        made, again = self._before(partial)
        if not made:
            return None
        block = fit_block(call)
        assert isinstance(block, ToolCallBlock)  # noqa: S101 - a call stays one
        words = _words(block.name, json_or_text(block.arguments))
        if not call.id:
            return next(again.get(words, iter(())), None)
        known = made.get(block.id)
        is_same = known is not None and _words(known.name, known.arguments) == words
        return block.id if is_same else None

    def _before(self, partial: Sequence[Message]) -> _Before:
        before = self._read.get(None)
        # Of two threads that read at once, both have what the first one read: else each would repeat the same calls.
        return self._read.setdefault(None, _before_in(partial)) if before is None else before


def _before_in(partial: Sequence[Message]) -> _Before:
    made = _made_in(partial) if partial else {}
    of_words: dict[bytes, list[str]] = {}
    for one in made.values():
        of_words.setdefault(_words(one.name, one.arguments), []).append(one.call_id)
    return _Before(made, {words: iter(call_ids) for words, call_ids in of_words.items()})


def _made_in(partial: Sequence[Message]) -> dict[str, MadeCall]:
    results = {message.tool_call_id: message for message in reversed(partial) if message.tool_call_id}
    ordinals: dict[bytes, int] = {}
    made: dict[str, MadeCall] = {}
    for message in partial:
        blocks = () if isinstance(message.content, str) else message.content
        for block in blocks:
            if isinstance(block, ToolCallBlock) and block.id not in made:
                arguments = json_or_text(block.arguments)
                words = _words(block.name, arguments)
                ordinals[words] = ordinals.get(words, 0) + 1
                result = results.get(block.id)
                made[block.id] = MadeCall(
                    call_id=block.id,
                    name=block.name,
                    arguments=arguments,
                    ordinal=ordinals[words],
                    has_ended=result is not None,
                    result=None if result is None else text_of(result),
                    is_error=result is not None and bool(result.is_error),
                )
    return made


def _words(name: str, arguments: JsonValue) -> bytes:
    return msgspec.json.encode([name, arguments], order="sorted")

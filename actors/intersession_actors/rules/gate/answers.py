"""Checks the answers of agents and models, blocks, messages and usage, before they are recorded."""

import math
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from intersession_actors.rules.gate.limits import REPLY_DEPTH, TOOL_RESULT, USAGE, WORD
from intersession_actors.rules.gate.texts import arguments_of, cut_text, id_of, is_object_text, word_of
from intersession_actors.rules.gate.values import is_storable
from intersession_events import facts

_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: a later time can't be shown."""

T = TypeVar("T")


class Fitted(NamedTuple, Generic[T]):
    """A recordable value, and its differences from the given one, in words."""

    value: T
    notes: tuple[str, ...]


def fit_usage(given: facts.Usage) -> Fitted[facts.Usage]:
    """Return a usage with whole numbers: an invalid or negative one counts as 0, one that is too large as the limit.

    A guard over what a chain of messages costs adds them up, so that none may take away from the sum (LOOP-5).
    """
    notes: list[str] = []
    numbers: dict[str, int] = {}
    for field in msgspec.structs.fields(facts.Usage):
        found: object = getattr(given, field.name)  # a host may have put anything there
        if found is None:
            continue
        number = _whole(found)
        if number is None:
            notes.append(f"usage.{field.encode_name} was no number, counted as 0")
            numbers[field.name] = 0
        elif number < 0:
            notes.append(f"usage.{field.encode_name} was below 0, counted as 0")
            numbers[field.name] = 0
        elif number > USAGE.most:
            notes.append(f"usage.{field.encode_name} was too large, counted as {USAGE.most}")
            numbers[field.name] = USAGE.most
        else:
            numbers[field.name] = number
    return Fitted(facts.Usage(**numbers), tuple(notes))


def _whole(given: object) -> int | None:
    """Return a number as a whole one; None if it is invalid, as `nan` and `"3"` are."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return int(given) if isinstance(given, int) or math.isfinite(given) else None


def fit_word(field: str, given: str | None) -> Fitted[str | None]:
    """Return a model's name or a stop reason as one short line."""
    if given is None:
        return Fitted(None, ())
    word = word_of(given)
    notes = () if word == given else (f"{field} was no line of at most {WORD.most} characters, cut to one",)
    return Fitted(word, notes)


def fit_block(block: facts.Block) -> facts.Block:
    """Return a block that an agent records during its run: long texts are cut, unrecordable characters spelled out."""
    match block:
        case facts.TextBlock(text=text):
            return facts.TextBlock(text=cut_text(text), extra=_extra(block.extra))
        case facts.ThinkingBlock(thinking=thinking, thinking_signature=signature):
            whole = signature is None or (len(signature) <= TOOL_RESULT.most and is_storable(signature))
            return facts.ThinkingBlock(
                thinking=cut_text(thinking),
                thinking_signature=signature if whole else None,
                extra=_extra(block.extra),
            )
        case facts.ToolCallBlock():
            return facts.ToolCallBlock(
                id=id_of(block.id),
                name=word_of(block.name),
                arguments=arguments_of(block.arguments),
                extra=_extra(block.extra),
            )
        case facts.FileBlock():
            return block  # as it was recorded
        case facts.ImageBlock() | facts.OtherBlock():
            texts = [text for text in msgspec.structs.astuple(block) if text is not None]
            if (
                sum(map(len, texts)) <= TOOL_RESULT.most
                and all(map(is_storable, texts))
                and not flaw_of_block(block)
            ):
                return block
            return facts.TextBlock(text="[a block that can't be recorded was left out]")


def _extra(source: str | None) -> str | None:
    fits = source is not None and len(source) <= TOOL_RESULT.most and is_object_text(source)
    return source if fits else None


def fit_message(message: facts.Message) -> Fitted[facts.Message]:
    """Return a message that comes with a reply, with recordable id, usage and names."""
    notes: list[str] = []
    changes: dict[str, object] = {}
    if message.usage is not None:
        changes["usage"], more = fit_usage(message.usage)
        notes += more
    for field, given in (("model", message.model), ("stopReason", message.stop_reason)):
        changes["model" if field == "model" else "stop_reason"], more = fit_word(field, given)
        notes += more
    if len(message.id) > WORD.most or not message.id.isprintable():
        changes["id"] = ""
        notes.append("the id of a message was invalid, given another")
    if message.tool_call_id is not None:
        changes["tool_call_id"] = id_of(message.tool_call_id)
    if message.tool_name is not None:
        changes["tool_name"] = word_of(message.tool_name)
    return Fitted(msgspec.structs.replace(message, **changes), tuple(notes))


def fit_time(given: int) -> Fitted[int]:
    """Return the time of a message that comes with a reply, in ms; 0 is the time of recording."""
    fits = 0 <= given <= _LAST_MS
    return Fitted(given if fits else 0, () if fits else ("the time of a message was invalid, taken as now",))


def flaw_of_message(message: facts.Message) -> str | None:
    """Return what makes a message unreadable, or None."""
    if not _is_object_or_none(message.extra):
        return f"extra is no JSON object of at most {REPLY_DEPTH.most} levels"
    for block in message.content if not isinstance(message.content, str) else ():
        flaw = flaw_of_block(block)
        if flaw is not None:
            return flaw
    return None


def flaw_of_block(block: facts.Block) -> str | None:
    """Return what makes a block unreadable, or None."""
    if isinstance(block, facts.FileBlock):
        return None
    source = block.json if isinstance(block, facts.OtherBlock) else block.extra
    if isinstance(block, facts.OtherBlock) and not is_object_text(source):
        return f"a block is no JSON object of at most {REPLY_DEPTH.most} levels"
    if not _is_object_or_none(source):
        return f"extra of a block is no JSON object of at most {REPLY_DEPTH.most} levels"
    return None


def _is_object_or_none(source: str | None) -> bool:
    return source is None or is_object_text(source)

"""What is left of an event when its words are erased: who, when, what kind of thing and how it ended, but nothing that was said.

An event without its words is still one of its kind, so a reader of events needs to know nothing of erasure.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple, cast, get_args, get_type_hints

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts.access import AccessRecorded
from intersession_events.facts.base import ERASED, ERASED_OBJECT, Digest, Remark, Said, Source
from intersession_events.facts.log import ForkEdit
from intersession_events.facts.message import (
    Block,
    FileBlock,
    ImageBlock,
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    text_of,
)
from intersession_events.facts.parts import Deciding, Part, parts_of, with_parts
from intersession_events.facts.registry import TOPICS, Event, decode, encode
from intersession_events.facts.run import Instructions, message_in
from intersession_events.facts.session import LineImported

__all__ = [
    "fields_of_words",
    "has_words",
    "held_by",
    "left_of_payload",
    "may_say",
    "standing",
    "unsaid",
    "words",
]


class Holding(NamedTuple):
    """The fields of an event that hold what somebody said."""

    said: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """`Said`, `Remark`, or `Instructions`."""
    sources: tuple[str, ...] = ()
    message: bool = False
    """Whether it can bring a message."""
    given: tuple[str, ...] = ()
    """Messages of another session."""
    edits: tuple[str, ...] = ()
    """Edits of a fork, some of which have a text."""
    files: tuple[str, ...] = ()
    """Files that go with a text."""
    digests: tuple[str, ...] = ()
    """Digests of texts."""


@cache
def held_by(kind: type[Event]) -> Holding:
    """Return what events of a kind hold of what somebody said, as their fields say."""
    kinds = {name: _kinds(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}

    def held(*wanted: object) -> tuple[str, ...]:
        return tuple(name for name, found in kinds.items() if not found.isdisjoint(wanted))

    return Holding(
        held(Said),
        held(Said, Remark, Instructions),
        held(Source),
        bool(held(Message)),
        held(tuple[Message, ...]),
        held(ForkEdit),
        held(FileBlock),
        held(Digest),
    )


def _kinds(hint: object) -> set[object]:
    """Return a type, and those that it is made of."""
    return {hint}.union(*map(_kinds, get_args(hint)))


_SAYING: Final = frozenset({"reply", "message", "inject"})
"""The edits of a fork whose value is what somebody says there."""

_Said = str | tuple[str, ...] | Instructions | None


def unsaid(event: Event) -> Event:
    """Return an event with `[erased]` for its words; the same one, if it has none. What was no text stays none."""
    if isinstance(event, Deciding) and event.then is not None:
        event = with_parts(event, lambda part: cast("Part", unsaid(part)))
    held, left = held_by(type(event)), dict[str, object](event.left_of_sources())
    for name in held.texts:
        if said := getattr(event, name):
            left[name] = _of(said)
    if (message := message_in(event)) is not None:
        left["message"] = _of_message(message)
    left |= {
        name: tuple(map(_of_message, getattr(event, name))) for name in held.given if getattr(event, name)
    }
    if held.edits:
        left |= {name: _of_edits(getattr(event, name)) for name in held.edits}
    left |= {name: () for name in held.files if getattr(event, name)}
    left |= {name: (ERASED,) for name in held.digests if getattr(event, name)}
    return msgspec.structs.replace(event, **left) if left else event


def has_words(topic: str) -> bool:
    """Return whether events of a stored name can have words; no other is ever erased."""
    kind = TOPICS.get(topic)
    return kind is not None and any(held_by(kind))


def left_of_payload(topic: str, payload: bytes) -> bytes | None:
    """Return what is left of a payload without its words; None for an event of a kind that has none.

    Raises:
        CorruptEvent: the payload can't be read.
        UnknownTopic: this version does not know the topic.
    """
    if not has_words(topic):
        return None
    event = decode(topic, payload)
    left = unsaid(event)
    return payload if left is event else encode(left)


def standing(topic: str, payload: bytes) -> Event:
    """Return the event that stands in the place of an erased one: it has no words, and its payload says nothing else.

    Raises:
        CorruptEvent: it has words, is not written as we write it, or is of a kind that is never erased.
        UnknownTopic: this version does not know the topic.
    """
    if not has_words(topic):
        raise CorruptEvent(f"the payload was erased, and {topic} has no words that could be")
    # What is left of an erased event was made anew by whoever erased it.
    event = decode(topic, payload)
    if encode(unsaid(event)) != payload:
        raise CorruptEvent("the payload was erased, and what stands there is more than is left without words")
    return event


def may_say(event: Event) -> bool:
    """Return whether events of this kind can have words that are found: this one may have none, or none any more."""
    held = held_by(type(event))
    return bool(held.texts or held.message or held.edits) or isinstance(event, LineImported)


def fields_of_words(kind: type[Event]) -> tuple[str, ...] | None:
    """Return the fields, as they are stored, that hold the words of events of a kind; none, if it has no words.

    None stands for words that are further in: of a message, of the edits of a fork, or of what follows in the event.
    """
    held = held_by(kind)
    if held.message or held.edits or issubclass(kind, Deciding):
        return None
    names = held.sources if kind is LineImported else held.texts
    return tuple(field.encode_name for field in msgspec.structs.fields(kind) if field.name in names)


def words(event: Event) -> Iterator[str]:
    """Yield the words of an event, text by text, as they would be erased."""
    if (message := message_in(event)) is not None:
        yield from _words_of(message)
    for name in held_by(type(event)).given:
        for one in cast("tuple[Message, ...]", getattr(event, name)):
            yield from _words_of(one)
    match event:
        case LineImported():
            yield event.source
        case AccessRecorded():
            yield event.filters
        case _:
            for part in parts_of(event):
                yield from _texts(part)


def _words_of(message: Message) -> Iterator[str]:
    yield text_of(message)
    for block in message.content if isinstance(message.content, tuple) else ():
        match block:
            case ThinkingBlock():
                yield block.thinking
            case ToolCallBlock():
                yield block.arguments
            case _:
                pass


def _texts(event: Event) -> Iterator[str]:
    held = held_by(type(event))
    for name in held.texts:
        said: _Said = getattr(event, name)
        said = said.texts if isinstance(said, Instructions) else said
        yield from (said,) if isinstance(said, str) else said or ()
    for name in held.edits:
        yield from (edit.value for edit in _edits(getattr(event, name)) if edit.kind in _SAYING)


def _of(said: _Said) -> _Said:
    if isinstance(said, str):
        return ERASED if said else said
    if isinstance(said, Instructions):
        texts = {name: ERASED for name in said.TEXTS if isinstance(text := getattr(said, name), str) and text}
        return msgspec.structs.replace(said, **texts) if texts else said
    return said if said is None else (ERASED,) * len(said)


def _edits(edits: ForkEdit | tuple[ForkEdit, ...]) -> tuple[ForkEdit, ...]:
    return (edits,) if isinstance(edits, ForkEdit) else edits


def _of_edits(edits: ForkEdit | tuple[ForkEdit, ...]) -> ForkEdit | tuple[ForkEdit, ...]:
    left = tuple(
        msgspec.structs.replace(edit, value=_of(edit.value)) if edit.kind in _SAYING else edit
        for edit in _edits(edits)
    )
    return left[0] if isinstance(edits, ForkEdit) else left


def _of_message(message: Message) -> Message:
    content = message.content
    return msgspec.structs.replace(
        message,
        content=cast("str", _of(content)) if isinstance(content, str) else tuple(map(_of_block, content)),
        provenance=None
        if message.provenance is None
        else msgspec.structs.replace(message.provenance, sender_name=None),
        extra=None,
    )


def _of_block(block: Block) -> Block:
    match block:
        case TextBlock():
            return TextBlock(text=ERASED)
        case ThinkingBlock():
            return ThinkingBlock(thinking=ERASED)
        case ToolCallBlock():
            return ToolCallBlock(id=block.id, name=block.name, arguments=ERASED_OBJECT)
        case ImageBlock() | FileBlock() | OtherBlock():
            return TextBlock(text=ERASED)

"""What is left of an event when its words are erased: who, when, what kind of thing and how it ended, but nothing that was said.

An event without its words is still one of its kind, so whoever reads events needs to know nothing of erasure.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast, get_args

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts.access import AccessRecorded
from intersession_events.facts.delivery import (
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryPartDone,
    DeliveryUnknown,
)
from intersession_events.facts.exchange import ExchangeAccepted, ExchangeReleased, TurnEnded
from intersession_events.facts.log import ForkedFrom, ForkEdit, ForkEdited, NotePinned, RecordingLeft
from intersession_events.facts.message import (
    Block,
    ImageBlock,
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    text_of,
)
from intersession_events.facts.parts import (
    AnnounceDecided,
    Deciding,
    ExchangeClosed,
    ExchangeHeld,
    LoopEnded,
    Part,
    SpawnClosed,
    parts_of,
    with_parts,
)
from intersession_events.facts.registry import Event, decode, encode, topics_of
from intersession_events.facts.run import (
    Instructions,
    LateReplyDropped,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    Saying,
    message_in,
)
from intersession_events.facts.session import LineImported, MessageRecorded, SessionImported
from intersession_events.facts.spawn import ChildEnded, SpawnAccepted

ERASED: Final = "[erased]"
"""What is read where there were words."""

_JSON: Final = f'"{ERASED}"'
_OBJECT: Final = f'{{"text":{_JSON}}}'
ERASED_ARGUMENTS: Final = _OBJECT
"""What is read where a tool was given something."""

WORDS: Final[Mapping[type[Event], tuple[str, ...]]] = {
    RunQueued: ("system_context", "instructions"),
    RunInterrupted: ("too_long",),
    RunCompleted: ("text", "notes"),
    RunFailed: ("error", "partial", "traceback"),
    RunAborted: ("partial",),
    LateReplyDropped: ("reply",),
    ExchangeAccepted: ("message", "evidence"),
    TurnEnded: ("text", "error"),
    LoopEnded: ("note",),
    AnnounceDecided: ("text", "stats"),
    ExchangeClosed: ("note",),
    ExchangeHeld: ("text", "note", "next_note"),
    ExchangeReleased: ("text",),
    SpawnAccepted: ("task", "evidence"),
    ChildEnded: ("text", "error", "last_tool_result"),
    SpawnClosed: ("note",),
    NotePinned: ("text",),
    RecordingLeft: ("recorded", "now", "differs_then", "differs_now"),
    DeliveryDecided: ("text",),
    DeliveryFailed: ("error", "traceback"),
    DeliveryUnknown: ("error",),
}
"""The fields that hold what a person, an agent, a channel or an error said, as text or as `Instructions`; an event may have a message
beside them."""
SOURCES: Final[Mapping[type[Event], str]] = {
    MessageRecorded: "source",
    LineImported: "source",
    SessionImported: "entry",
    AccessRecorded: "filters",
    DeliveryPartDone: "receipt",
    DeliveryDone: "receipt",
}
"""The field that holds the source text of JSON, in which words may stand."""


_SAYING: Final = frozenset({"reply", "message", "inject"})
"""The edits of a fork whose value is what somebody says there."""


def unsaid(event: Event) -> Event:
    """Return an event with `[erased]` for its words; the same one, if it has none. What was no text stays none."""
    if isinstance(event, Deciding) and event.then is not None:
        event = with_parts(event, lambda part: cast("Part", unsaid(part)))
    left: dict[str, object] = {}
    for name in WORDS.get(type(event), ()):
        if said := getattr(event, name):
            left[name] = _of(said)
    if isinstance(event, RunQueued | RunCompleted) and event.message is not None:
        left["message"] = _of_message(event.message)
    if left:
        return msgspec.structs.replace(event, **left)
    return event if type(event) in WORDS else _of_other(event)


def _of_other(event: Event) -> Event:
    match event:
        case MessageRecorded():
            return msgspec.structs.replace(event, message=_of_message(event.message), source=None)
        case LineImported():
            return msgspec.structs.replace(event, source=_line(event))
        case SessionImported():
            return msgspec.structs.replace(event, entry="{}")
        case AccessRecorded():
            return msgspec.structs.replace(event, filters=_OBJECT if event.filters != "{}" else "{}")
        case DeliveryDone() | DeliveryPartDone():
            return msgspec.structs.replace(event, receipt=None if event.receipt is None else _JSON)
        case ForkEdited():
            return msgspec.structs.replace(event, edit=_of_edit(event.edit))
        case ForkedFrom():
            return msgspec.structs.replace(event, edits=tuple(map(_of_edit, event.edits)))
        case _:
            return event


_SAYS: Final = frozenset({*WORDS, *get_args(Saying), LineImported, ForkEdited, ForkedFrom})
_WITH_WORDS: Final = topics_of(*WORDS, *SOURCES, *get_args(Saying), ForkEdited, ForkedFrom)
"""The stored names of events that can have words; no other is ever erased."""


def has_words(topic: str) -> bool:
    """Return whether events of a stored name can have words."""
    return topic in _WITH_WORDS


def left_of_payload(topic: str, payload: bytes) -> bytes | None:
    """Return what is left of a payload without its words; None for an event of a kind that has none.

    Raises:
        CorruptEvent: the payload can't be read.
        UnknownTopic: this version does not know the topic.
    """
    if topic not in _WITH_WORDS:
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
    if topic not in _WITH_WORDS:
        raise CorruptEvent(f"the payload was erased, and {topic} has no words that could be")
    # What is left of an erased event was made anew by who erased it.
    event = decode(topic, payload)
    if encode(unsaid(event)) != payload:
        raise CorruptEvent("the payload was erased, and what stands there is more than is left without words")
    return event


def may_say(event: Event) -> bool:
    """Return whether events of this kind can have words that are found: this one may have none, or none any more."""
    return type(event) in _SAYS


def fields_of_words(kind: type[Event]) -> tuple[str, ...] | None:
    """Return the fields, as they are stored, that hold the words of events of a kind; none, if it has no words.

    None stands for words that are further in: of a message, of the edits of a fork, or of what follows in the event.
    """
    if issubclass(kind, Saying | ForkEdited | ForkedFrom | Deciding):
        return None
    names = ("source",) if kind is LineImported else WORDS.get(kind, ())
    return tuple(field.encode_name for field in msgspec.structs.fields(kind) if field.name in names)


def words(event: Event) -> Iterator[str]:
    """Yield the words of an event, text by text, as they would be erased."""
    if (message := message_in(event)) is not None:
        yield text_of(message)
        for block in message.content if isinstance(message.content, tuple) else ():
            match block:
                case ThinkingBlock():
                    yield block.thinking
                case ToolCallBlock():
                    yield block.arguments
                case _:
                    pass
    match event:
        case LineImported():
            yield event.source
        case AccessRecorded():
            yield event.filters
        case ForkEdited():
            yield from _edited((event.edit,))
        case ForkedFrom():
            yield from _edited(event.edits)
        case _:
            yield from _plain(event)


def _plain(event: Event) -> Iterator[str]:
    for part in parts_of(event):
        for name in WORDS.get(type(part), ()):
            said: _Said = getattr(part, name)
            said = said.texts if isinstance(said, Instructions) else said
            yield from (said,) if isinstance(said, str) else said or ()


_Said = str | tuple[str, ...] | Instructions | None


def _of(said: _Said) -> _Said:
    if isinstance(said, str):
        return ERASED if said else said
    if isinstance(said, Instructions):
        texts = {name: ERASED for name in said.TEXTS if isinstance(text := getattr(said, name), str) and text}
        return msgspec.structs.replace(said, **texts) if texts else said
    return said if said is None else (ERASED,) * len(said)


def _of_edit(edit: ForkEdit) -> ForkEdit:
    return msgspec.structs.replace(edit, value=_of(edit.value)) if edit.kind in _SAYING else edit


def _edited(edits: Iterable[ForkEdit]) -> Iterator[str]:
    return (edit.value for edit in edits if edit.kind in _SAYING)


def _line(event: LineImported) -> str:
    """Return a line that is of the same kind, at the same place among the others."""
    line = {"type": event.kind, "id": event.entry_id, "parentId": event.parent_id, "text": ERASED}
    return msgspec.json.encode({name: value for name, value in line.items() if value is not None}).decode()


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
            return ToolCallBlock(id=block.id, name=block.name, arguments=_OBJECT)
        case ImageBlock() | OtherBlock():
            return TextBlock(text=ERASED)

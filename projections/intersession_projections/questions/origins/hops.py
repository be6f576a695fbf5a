"""Hops of a text: each place where it was sent or arrived, and the place it came from. Pure."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from intersession_events import facts
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonValue, is_list, is_object
from intersession_events.facts.message_words import writer_of
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Row
from intersession_projections.basics.speakers import as_read, is_openclaws, speaker

Via = Literal["person", "agent", "sessions_send", "sessions_spawn", "subagents", "tool", "delivery", "system"]
"""How words came to where they are: a person or an agent said them, another session sent or handed them over, a tool gave
them, a text took them to a channel, or they stand in a message of the system's."""

Says = Callable[[str], bool]
"""Whether a text has the words."""

Reads = Callable[[str], str]
"""How a text is read by the caller: as it is, or without its secrets. One may be a secret by the name that it stands under, so
the source of JSON is read before what is in it."""

SESSION: Final = "session:"
_LIST: Final = "sessions_list"
"""Each row of its answer names its session as `key`, all else that names one as `sessionKey`."""


class Hop(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A text at one of the places where it was sent or arrived.

    `session_key` is the session they are in, of a delivery the one that sent it; `who` said it and `to` got it: session keys,
    people, tools, routes. `cause` is the position of the hop that they came from; None where they are nobody's that is known:
    there they were said for the first time, or anew. `text` is all that was said. `source` is the session that they are said
    to come from. `edited_by` wrote them in the place of a text that was held: they are no words of `who`'s, and come from
    nowhere (LIVE-1).
    """

    position: int
    event_id: str
    time_ms: int
    session_key: str
    who: str
    to: str | None
    via: Via
    text: str
    cause: int | None
    run_id: str | None = None
    source: str | None = None
    edited_by: str | None = None


def said_in(row: Row) -> str:
    """Return the text in a stored row, unproven; nothing for an unreadable one."""
    _, _, _, topic, state = row
    payload = payload_in(state)
    try:
        event = None if payload is None else facts.decode(topic, payload)
    except LogError:
        return ""
    if isinstance(event, facts.DeliveryDecided):
        return event.text
    message = None if event is None else as_read(event)
    return "" if message is None else text_in(message, str)


def key_of(recorded: Recorded) -> str:
    """Return the key of the session whose stream an event is in."""
    return recorded.stream.removeprefix(SESSION)


def hop_of(recorded: Recorded, says: Says, reads: Reads) -> Hop | None:
    """Return an event as a hop; None for an event without a text.

    `source` is as the event names it: an answer of a tool shows a session to who asked, so it may be `main`.
    """
    event = recorded.event
    if isinstance(event, facts.DeliveryDecided):
        return _hop(recorded, event.session_key)(
            who=event.session_key,
            to=event.route.text,
            via="delivery",
            text=reads(event.text),
            run_id=event.run_id,
            source=event.session_key,
        )
    message = as_read(event)
    return None if message is None else _of_message(recorded, message, says, reads)


def linked(hops: Iterable[Hop]) -> Iterator[Hop]:
    """Yield hops in log order, each with the one that its text came from: the last earlier one there."""
    last: dict[str, int] = {}
    for hop in hops:
        cause = None
        if hop.via != "person" and hop.edited_by is None:
            cause = last.get(hop.source or hop.session_key, last.get(hop.session_key))
        yield replace(hop, cause=cause)
        if hop.via != "delivery":
            last[hop.session_key] = hop.position


def leading_to(hops: Iterable[Hop], positions: frozenset[int]) -> list[Hop]:
    """Return the hops at some positions, and those that their texts came from."""
    every = {hop.position: hop for hop in hops}
    kept: set[int] = set()
    for position in positions & every.keys():
        at: int | None = position
        while at is not None and at not in kept:
            kept.add(at)
            at = every[at].cause
    return [every[position] for position in sorted(kept)]


def _of_message(recorded: Recorded, message: facts.Message, says: Says, reads: Reads) -> Hop:
    key = key_of(recorded)
    hop = partial(_hop(recorded, key), text=text_in(message, reads), run_id=message.run_id)
    match message.role:
        case "assistant":
            return hop(who=key, to=None, via="agent", edited_by=writer_of(message))
        case "toolResult":
            source = _named_around(_value(facts.text_of(message)), says, by=message.tool_name)
            return hop(who=message.tool_name or "a tool", to=key, via="tool", source=source)
        case "user" | "system":
            origin = message.provenance
            said = hop(who=speaker(message), to=key, via=_via(message))
            if origin is None:
                return said
            return replace(said, source=origin.source_session_key, edited_by=origin.edited_by)


def text_in(message: facts.Message, reads: Reads) -> str:
    """Return all texts of a message as the caller reads them, with the arguments and results of tools."""
    if message.role == "toolResult":
        return strings_in(facts.text_of(message), reads)
    text = reads(facts.text_of(message))
    return "\n".join(part for part in (text, *_called_with(message, reads)) if part)


def strings_in(source: str, reads: Reads) -> str:
    """Return all strings of some JSON as the caller reads them; another text as it stands."""
    text = reads(source)
    value = _value(text)
    return text if value is None else "\n".join(_strings(value))


def _via(message: facts.Message) -> Via:
    origin = message.provenance
    if is_openclaws(message):
        return "system"
    if origin is None:
        return "person" if message.role == "user" else "system"
    match origin.kind:
        case "external_user":
            return "person"
        case "internal_system":
            return "system"
        case "inter_session":
            return origin.source_tool or "sessions_send"


def _hop(recorded: Recorded, session_key: str) -> partial[Hop]:
    """Return what makes a hop in the place of an event."""
    at, event_id, time_ms = recorded.position, recorded.id, recorded.time
    return partial(Hop, position=at, event_id=event_id, time_ms=time_ms, session_key=session_key, cause=None)


def _named_around(value: JsonValue, says: Says, *, by: str | None) -> str | None:
    """Return the session that an answer of a tool names nearest around the words; where they are in no text of it, the one of all of it."""
    whole = _named_in(value, by)
    left = [(value, whole)]
    while left:
        value, named = left.pop()
        if isinstance(value, str):
            if named is not None and says(value):
                return named
        elif is_object(value):
            named = _named_in(value, by) or named
            left.extend((part, named) for part in reversed(value.values()))
        elif is_list(value):
            left.extend((part, named) for part in reversed(value))
    return whole


def _named_in(value: JsonValue, by: str | None) -> str | None:
    named = value.get("sessionKey", value.get("key") if by == _LIST else None) if is_object(value) else None
    return named if isinstance(named, str) else None


def _called_with(message: facts.Message, reads: Reads) -> Iterator[str]:
    """Yield the texts in an agent's tool calls: what it sends, it has said."""
    for block in () if isinstance(message.content, str) else message.content:
        if isinstance(block, facts.ToolCallBlock):
            source = reads(block.arguments)
            value = _value(source)
            yield from _strings(value) if value is not None else (source,)


def _value(source: str) -> JsonValue:
    """Return the object or the list that a text is the source of; None for any other text."""
    if not source.startswith(("{", "[")):
        return None
    try:
        value: JsonValue = msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value


def _strings(value: JsonValue) -> Iterator[str]:
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif is_object(value):
            left.extend(reversed(value.values()))
        elif is_list(value):
            left.extend(reversed(value))

"""Reads a message object of a transcript into a `Message` that can be turned back into the same object (HIST-3).

What `Message` has no field for, or can't hold (floats, unknown fields, values of other types), goes into `extra` as
its source text. The conversion proves itself: what would come back is compared with the source, field by field.
"""

from typing import Final, Literal, cast, get_args

import msgspec

from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject, is_list, is_object
from intersession_events.transcripts.openclaw.reading.foreign_json import (
    a_count,
    a_time,
    at,
    read_object,
    text_of,
)

_MILLION: Final = 1_000_000
_ROLES: Final = get_args(facts.Role)
_KINDS: Final = get_args(facts.ProvenanceKind)
_TOOLS: Final = get_args(facts.SourceTool)


def to_message(source: bytes, *, entry_id: str, time: int) -> facts.Message | None:
    """Return the message, or None if the object is not a message of a conversation (its role, or its content).

    `time` stands in for a timestamp the object lacks.

    Raises:
        Unreadable: the object can't be read.
    """
    values, raws = read_object(source)
    role = _role(values.get("role"))
    content = _content(values.get("content"), raws.get("content"))
    if role is None or content is None:
        return None
    usage = values.get("usage")
    message = facts.Message(
        id=entry_id,
        role=role,
        content=content,
        timestamp=a_time(values.get("timestamp")) or time,
        provenance=_provenance(values.get("provenance")),
        run_id=_text(values.get("runId")),
        model=_text(values.get("model")),
        usage=_usage(usage) if is_object(usage) else None,
        stop_reason=_text(values.get("stopReason")),
        tool_call_id=_text(values.get("toolCallId")),
        tool_name=_text(values.get("toolName")),
        is_error=_truth(values.get("isError")),
    )
    back = facts.raw_message(message)
    # An id of the object's own stays in the line's source: the entry's is the one that pages and trees go by.
    differing = [
        name for name in values if name != "id" and (name not in back or not same(back[name], values[name]))
    ]
    return msgspec.structs.replace(message, extra=_object(differing, raws))


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal: 1, 1.0 and true differ, the order of an object's fields does not matter."""
    if is_object(left) and is_object(right):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def _content(value: object, raw: msgspec.Raw | None) -> str | tuple[facts.Block, ...] | None:
    if isinstance(value, str):
        return value
    if not is_list(value) or raw is None or not all(map(is_object, value)):
        return None
    sources = msgspec.json.decode(raw, type=list[msgspec.Raw])
    return tuple(_block(block, source) for block, source in zip(value, sources, strict=True))


def _block(values: JsonObject, source: msgspec.Raw) -> facts.Block:
    raws = msgspec.json.decode(source, type=dict[str, msgspec.Raw])
    block: facts.Block
    match values:
        case {"type": "text", "text": str(text)}:
            block = facts.TextBlock(text=text)
        case {"type": "thinking", "thinking": str(thinking)}:
            block = facts.ThinkingBlock(
                thinking=thinking, thinking_signature=_text(values.get("thinkingSignature"))
            )
        case {"type": "toolCall", "id": str(call_id), "name": str(name), "arguments": _}:
            block = facts.ToolCallBlock(id=call_id, name=name, arguments=text_of(raws["arguments"]))
        case {"type": "image", "data": str(data)}:
            block = facts.ImageBlock(data=data, mime_type=_text(values.get("mimeType")))
        case _:
            return facts.OtherBlock(json=text_of(source))
    back = facts.raw_block(block)
    differing = [name for name in values if name not in back or not same(back[name], values[name])]
    if not differing:
        return block
    return msgspec.structs.replace(block, extra=_object(differing, raws))


def _object(names: list[str], raws: dict[str, msgspec.Raw]) -> str | None:
    """Return the source text of an object with some of the fields of another."""
    if not names:
        return None
    fields = (f"{msgspec.json.encode(name).decode()}:{text_of(raws[name])}" for name in names)
    return "{" + ",".join(fields) + "}"


def _provenance(value: object) -> facts.Provenance | None:
    kind = at(value, "kind")
    if kind not in _KINDS:
        return None
    tool = at(value, "sourceTool")
    return facts.Provenance(
        kind=kind,
        source_session_key=_text(at(value, "sourceSessionKey")),
        source_channel=_text(at(value, "sourceChannel")),
        source_tool=tool if tool in _TOOLS else None,
        exchange_id=_text(at(value, "exchangeId")),
        turn=a_count(at(value, "turn")),
        hops=a_count(at(value, "hops")),
        sender=_text(at(value, "sender")),
        sender_name=_text(at(value, "senderName")),
    )


def _usage(value: object) -> facts.Usage:
    cost = at(value, "cost", "total")
    micros: int | None = None
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost * _MILLION <= facts.LARGEST:
        micros = round(cost * _MILLION)
    return facts.Usage(
        input=a_count(at(value, "input")) or 0,
        output=a_count(at(value, "output")) or 0,
        cache_read=a_count(at(value, "cacheRead")) or 0,
        cache_write=a_count(at(value, "cacheWrite")) or 0,
        total_tokens=a_count(at(value, "totalTokens")) or 0,
        cost_micros=micros,
    )


def _role(value: object) -> facts.Role | None:
    return cast("facts.Role", value) if value in _ROLES else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _truth(value: object) -> Literal[True, False] | None:
    return value if isinstance(value, bool) else None

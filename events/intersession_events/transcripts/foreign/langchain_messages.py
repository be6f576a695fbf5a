"""Brings messages of LangChain into the raw form of a transcript's messages (HIST-3)."""

from typing import Final

from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object, present
from intersession_events.transcripts.foreign.lines import encoded, picture_of
from intersession_events.transcripts.openclaw.reading.foreign_json import a_count, a_list, a_text, at

_ROLES: Final = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "tool": "toolResult",
    "function": "toolResult",
    "system": "system",
    "developer": "system",
}
_CALLS: Final = frozenset(["tool_use", "tool_call", "function_call"])
"""Blocks that repeat what stands in `tool_calls`."""


def kind_of(message: JsonObject) -> str:
    """Return the kind of a message in the words of LangChain: `human`, `ai`, `tool` and others."""
    kind = str(message.get("type") or message.get("role") or "")
    if kind == "chat":
        kind = str(message.get("role") or "")
    return kind.removesuffix("MessageChunk").removesuffix("Message").lower()


def raw_of(message: JsonObject) -> JsonObject | None:
    """Return a message in the raw form of HIST-3; None where its role is no part of a conversation."""
    role = _ROLES.get(kind_of(message))
    if role is None:
        return None
    about = message.get("response_metadata")
    calls = [_call(number, call) for number, call in enumerate(a_list(message.get("tool_calls")))]
    content = _content(message.get("content"), has_calls=bool(calls))
    raw: JsonObject = {"role": role, "content": [*_blocks(content), *calls] if calls else content}
    if role == "toolResult":
        raw["toolCallId"] = a_text(message.get("tool_call_id"))
        raw["toolName"] = a_text(message.get("name"))
        raw["isError"] = message.get("status") == "error"
    if role == "assistant":
        raw["model"] = a_text(at(about, "model_name")) or a_text(at(about, "model"))
        raw["stopReason"] = a_text(at(about, "finish_reason")) or a_text(at(about, "stop_reason"))
        raw["usage"] = _usage(message.get("usage_metadata"), about)
    return present(raw)


def _usage(told: JsonValue, about: JsonValue) -> JsonObject | None:
    if not is_object(told):
        return None
    cost = at(about, "token_usage", "cost")
    return present(
        {
            "input": a_count(told.get("input_tokens")),
            "output": a_count(told.get("output_tokens")),
            "totalTokens": a_count(told.get("total_tokens")),
            "cacheRead": a_count(at(told, "input_token_details", "cache_read")),
            "cacheWrite": a_count(at(told, "input_token_details", "cache_creation")),
            "cost": {"total": cost} if isinstance(cost, int | float) else None,
        }
    )


def _call(number: int, call: JsonValue) -> JsonObject:
    arguments = at(call, "args")
    return {
        "type": "toolCall",
        "id": a_text(at(call, "id")) or f"call_{number}",
        "name": a_text(at(call, "name")) or "unknown",
        "arguments": arguments if is_object(arguments) else {},
    }


def _content(content: JsonValue, *, has_calls: bool) -> str | list[JsonObject]:
    if isinstance(content, str):
        return content
    if not is_list(content):
        return "" if content is None else encoded(content).decode()
    return [_block(block) for block in content if not (has_calls and at(block, "type") in _CALLS)]


def _blocks(content: str | list[JsonObject]) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _block(block: JsonValue) -> JsonObject:
    if not is_object(block):
        return {"type": "text", "text": block if isinstance(block, str) else encoded(block).decode()}
    match block:
        case {"type": "image_url", "image_url": address}:
            return picture_of(at(address, "url") or address) or block
        case {"type": "image", "base64": str(data)} | {
            "type": "image",
            "source_type": "base64",
            "data": str(data),
        }:
            return {"type": "image", "data": data, "mimeType": a_text(block.get("mime_type"))}
        case {"type": "reasoning", "reasoning": str(text)}:
            return {"type": "thinking", "thinking": text}
        case {"type": "thinking", "thinking": str(text)}:
            return present(
                {"type": "thinking", "thinking": text, "thinkingSignature": a_text(block.get("signature"))}
            )
        case _:
            return block

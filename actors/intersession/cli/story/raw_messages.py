"""Prints the messages of a transcript in their raw form, for `history` and `sessions`: who, when, what, which tools."""

import json

from intersession.cli.shell import Screen, moment, one_line, safe
from intersession_events.plain_json import JsonMapping, is_object
from intersession_projections.wording import BY_METHOD, OPENCLAW, begins_as_openclaws, counted, person

_INTERNAL = "the system"
_LINES = 5
_CHARACTERS = 400


def show_message(screen: Screen, message: JsonMapping, *, indent: int = 0, briefly: bool = False) -> None:
    """Show one message: a line on who and when, then its words. `briefly` shows how the answer of a tool begins."""
    said_at = screen.styled(f"  {_when(message)}", "dim")
    screen.line(" " * indent, screen.styled(speaker(message), "bold cyan"), said_at)
    for text, style in parts(message):
        cut = _beginning(text) if briefly and message.get("role") == "toolResult" else text
        screen.indented(screen.styled(cut, style), indent + 4)
        if cut != text:
            left = counted(len(text) - len(cut), "more character")
            screen.indented(safe(f"… {left} (--json has all)", "dim"), indent + 4)


def _beginning(text: str) -> str:
    """Return the first lines of a text; all of it, where that is little more."""
    cut = "\n".join(text.split("\n")[:_LINES])[:_CHARACTERS]
    return text if len(text) - len(cut) <= _CHARACTERS // 4 else cut


def speaker(message: JsonMapping) -> str:
    """Return who says it, in words."""
    role, origin = message.get("role"), message.get("provenance")
    if role == "assistant":
        # What no run of it made was put there (`chat.inject`); logs of before do not say by whom.
        is_injected = is_object(origin) and origin.get("kind") == "internal_system"
        return f"agent, in the words of {_writer(origin)}" if is_injected and is_object(origin) else "agent"
    if role == "toolResult":
        return f"tool {message.get('toolName') or ''}".rstrip()
    if role == "user" and _is_openclaws(message, origin):
        return OPENCLAW
    if not is_object(origin):
        return str(role)
    match origin.get("kind"):
        case "external_user":
            who, channel = person(origin.get("sender"), origin.get("senderName")), origin.get("sourceChannel")
            if origin.get("sender") is None and channel == BY_METHOD:
                return BY_METHOD
            if origin.get("sender") is None and channel is not None:
                return f"{who} ({channel}; the log does not say who)"
            return who if channel is None else f"{who} ({channel})"
        case "inter_session":
            key, is_ours = origin.get("sourceSessionKey"), "exchangeId" in origin or "hops" in origin
            if key is None and is_ours and "sourceTool" in origin:
                return BY_METHOD
            return f"session {key or '?'}"
        case _:
            return _INTERNAL


def _is_openclaws(message: JsonMapping, origin: object) -> bool:
    """Whether it is of an import, where only its beginning tells that OpenClaw itself said it."""
    as_sent = is_object(origin) and origin.get("sourceTool") == "sessions_send" and "exchangeId" not in origin
    (text, _), *_ = parts(message)
    return (origin is None or as_sent) and begins_as_openclaws(text)


def _writer(origin: JsonMapping) -> str:
    return str(origin.get("editedBy") or origin.get("sourceChannel") or BY_METHOD)


def parts(message: JsonMapping) -> list[tuple[str, str]]:
    """Return the texts of a message, each with the style it is shown in."""
    content = message.get("content")
    if isinstance(content, str):
        return [(content, "")]
    shown = [_part(block) for block in content or () if is_object(block)]
    return shown or [("(nothing)", "dim")]


def call_text(name: str, arguments: object) -> str:
    """Return a tool call as one line."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return one_line(f"calls {name} {text}")


def _part(block: JsonMapping) -> tuple[str, str]:
    match block.get("type"):
        case "text":
            return str(block.get("text", "")), ""
        case "thinking":
            return f"(thinks) {block.get('thinking', '')}", "dim italic"
        case "toolCall":
            return call_text(str(block.get("name", "")), block.get("arguments", {})), "yellow"
        case _:
            return f"({block.get('type')})", "dim"


def _when(message: JsonMapping) -> str:
    time = message.get("timestamp")
    return moment(time) if isinstance(time, int) else ""

"""Messages and failed attempts of a session as beats, wherever they are told."""

from collections.abc import Iterator

from intersession.cli.story.beat import Told
from intersession.cli.story.reasons import FAILURES
from intersession_events.facts import (
    LateReplyDropped,
    Message,
    RunAborted,
    RunFailed,
    RunInterrupted,
    TextBlock,
    ToolCallBlock,
    text_of,
)

THE_SYSTEM = "the system"
A_PERSON = "a person"


def message_told(message: Message, key: str) -> Iterator[Told]:
    """Yield what a message of a session says: its words, then the tools it calls."""
    match message.role:
        case "assistant":
            yield from _of_agent(message, key)
        case "toolResult":
            yield Told("tool", f"gets from {message.tool_name or 'a tool'}", who=key, text=text_of(message))
        case "user" | "system":
            yield Told("said", _how(message), who=speaker(message), to=key, text=text_of(message))


def speaker(message: Message) -> str:
    """Return who said what an agent was asked: a session's key, or words for a person or the system."""
    origin = message.provenance
    if origin is None:
        return THE_SYSTEM if message.role == "system" else A_PERSON
    match origin.kind:
        case "external_user":
            return A_PERSON if origin.source_channel is None else f"{A_PERSON} on {origin.source_channel}"
        case "inter_session":
            return origin.source_session_key or "a session"
        case "internal_system":
            return THE_SYSTEM


def attempt_told(event: RunInterrupted | RunFailed | RunAborted | LateReplyDropped, key: str) -> Told:
    """Return what became of an attempt that did not answer."""
    match event:
        case RunInterrupted():
            return Told("note", f"was cut off in attempt {event.attempt}; the run starts again", who=key)
        case RunFailed():
            return Told("note", f"{FAILURES[event.code]}: {event.error}", who=key, text=event.partial)
        case RunAborted():
            return Told("note", f"was aborted by {event.by}", who=key, text=event.partial)
        case LateReplyDropped():
            return Told("note", "answered too late; nobody uses it", who=key, text=event.reply)


def _of_agent(message: Message, key: str) -> Iterator[Told]:
    if isinstance(message.content, str):
        yield Told("said", "says", who=key, text=message.content)
        return
    text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
    if text:
        yield Told("said", "says", who=key, text=text)
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            yield Told("tool", f"calls {block.name}", who=key, text=block.arguments)


def _how(message: Message) -> str:
    origin = message.provenance
    if origin is None or origin.kind != "inter_session":
        return "says"
    if origin.source_tool == "sessions_spawn":
        return "hands over" if origin.turn is None else "says"
    return f"asks for turn {origin.turn}" if origin.turn else "asks"

"""What the messages of a session say, and who says it: a person, another session, the system, or somebody by a method."""

from collections.abc import Iterator, Sequence
from typing import Final

from intersession_events.facts.message import (
    FileBlock,
    Message,
    Provenance,
    ToolCallBlock,
    calls_of,
    files_of,
    text_of,
)
from intersession_events.facts.words import NO_TEXT, Frame, Words

__all__ = ["BY_METHOD", "is_by_method", "person", "with_files", "words_of_message", "writer_of"]

BY_METHOD: Final = "operator"
"""The channel of what was said by a method (`chat.send`, `agent`), as provenance has it, and what whoever says so is called."""

A_PERSON: Final = "a person"
A_SESSION: Final = "a session"
THE_SYSTEM: Final = "the system"
_SPEAKERS: Final = {"internal_system": THE_SYSTEM, "inter_session": A_SESSION}


def words_of_message(message: Message, key: str | None) -> Iterator[Words]:
    """Yield what a message of a session says: its text, then each tool that it calls."""
    text = with_files(text_of(message), files_of(message))
    match message.role:
        case "assistant" if isinstance(message.content, str):
            yield Words(key, None, text or NO_TEXT, _says(message), text, "said")
        case "assistant":
            if text:
                yield Words(key, None, text, _says(message), text, "said")
            for block in message.content:
                if isinstance(block, ToolCallBlock):
                    call = f"{block.name}({block.arguments})"
                    yield Words(key, None, call, f"calls {block.name}", block.arguments, "tool")
        case "toolResult":
            tool = message.tool_name or "a tool"
            yield Words(tool, key, text, f"gets from {tool}", text, "tool")
        case "user" | "system":
            yield Words(_asker(message), key, text, _asks(message), text, "said")


def with_files(text: str, files: Sequence[FileBlock]) -> str:
    """Return a text with a line for each file that goes with it."""
    return "\n".join((*([text] if text else []), *(f"[file: {file.brief}]" for file in files)))


def brief_of_message(message: Message, key: str | None) -> Words:
    """Return a message in brief: its text, and each tool that it calls."""
    said = list(words_of_message(message, key))
    who, to = (said[0].who, said[0].to) if said else (key, None)
    return Words(who, to, "\n".join(words.brief for words in said) if said else NO_TEXT)


def step_of_message(message: Message, at: Frame) -> str:
    """Return what a message is, without a word of anybody's."""
    who = at.agent
    match message.role:
        case "user":
            return f"a message for {who}"
        case "assistant":
            return f"{who} calls a tool" if calls_of(message) else f"{who} says something"
        case "toolResult":
            return f"a tool answers {who}"
        case "system":
            return f"{who} is told something by the system"


def writer_of(message: Message) -> str | None:
    """Return who wrote what an agent is said to have said (`chat.inject`); None for its own words."""
    origin = message.provenance
    if message.role != "assistant" or origin is None or origin.kind != "internal_system":
        return None
    return origin.edited_by or origin.source_channel


def is_by_method(origin: Provenance) -> bool:
    """Whether something was said by a method or a tool, for no session and in no channel: by the operator, or by a credential."""
    if origin.kind == "inter_session":
        is_ours = origin.exchange_id is not None or origin.hops is not None
        return origin.source_session_key is None and origin.source_tool is not None and is_ours
    return (origin.kind, origin.source_channel, origin.sender) == ("external_user", BY_METHOD, None)


def person(sender: str | None, sender_name: str | None) -> str:
    """Return a person as stories call them: name and id; `a person` where the log does not say who spoke."""
    if sender is None:
        return A_PERSON
    return sender if sender_name in {None, sender} else f"{sender_name} ({sender})"


def _asker(message: Message) -> str | None:
    """Return the requester, as a step shows it: None where the message has no record of it."""
    origin = message.provenance
    if origin is None:
        return None
    if is_by_method(origin):
        return BY_METHOD
    if origin.kind == "external_user":
        return person(origin.sender, origin.sender_name)
    return origin.source_session_key or _SPEAKERS[origin.kind]


def _asks(message: Message) -> str:
    origin = message.provenance
    if origin is None or origin.kind != "inter_session":
        return "says"
    if origin.source_tool == "sessions_spawn":
        return "hands over" if origin.turn is None else "says"
    asks = f"asks for turn {origin.turn}" if origin.turn else "asks"
    return asks if origin.edited_by is None else f"{asks}, in the words of {origin.edited_by}"


def _says(message: Message) -> str:
    writer = writer_of(message)
    return "says" if writer is None else f"says, in the words of {writer}"

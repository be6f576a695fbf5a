"""Who said a message, as an import and our own log show it."""

import re
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.facts.message_words import A_PERSON, A_SESSION, THE_SYSTEM, is_by_method, person
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp

OPENCLAW: Final = "OpenClaw"
"""What it is called where such words are told."""

_ITS_OWN: Final = re.compile(
    r"OpenClaw runtime context \(internal\):"  # a sub-agent is done
    r"|\[Subagent Context\] You are running as a subagent"  # a task is handed to one
    r"|Agent-to-agent announce step\."
    r"|\[cron:\S"
    r"|Task: [^\n]* \| Job ID: \S+ \| Received: "  # a hook was called
)


def is_openclaws(message: facts.Message) -> bool:
    """Whether the words of an imported message are OpenClaw's own: known by how they begin, for nothing else tells.

    Every message of our own says where it came from, so nobody's words here are taken for such.
    """
    origin = message.provenance
    as_sent = origin is not None and origin.kind == "inter_session" and origin.source_tool == "sessions_send"
    if message.role != "user" or not (origin is None or (as_sent and origin.exchange_id is None)):
        return False
    return begins_as_openclaws(facts.text_of(message))


def begins_as_openclaws(text: str) -> bool:
    """Whether a text of an import begins as OpenClaw's own words do."""
    return _ITS_OWN.match(strip_stamp(text)) is not None


def as_read(event: facts.Event) -> facts.Message | None:
    """Return the message that an event brings as it is read: that of an import without its stamp. None where it brings none."""
    message = facts.message_in(event)
    is_stamped = message is not None and facts.is_imported(event) and message.role == "user"
    return without_stamp(message) if message is not None and is_stamped else message


def without_stamp(message: facts.Message) -> facts.Message:
    """Take the stamp `[Sat 2026-11-21 04:05 UTC] ` off an imported user message; the log keeps it (IMP-3)."""
    if isinstance(message.content, str):
        return msgspec.structs.replace(message, content=strip_stamp(message.content))
    for index, block in enumerate(message.content):
        if isinstance(block, facts.TextBlock):
            cut = msgspec.structs.replace(block, text=strip_stamp(block.text))
            return msgspec.structs.replace(
                message, content=(*message.content[:index], cut, *message.content[index + 1 :])
            )
    return message


def called(origin: facts.Provenance) -> set[str]:
    """Return all that a person is called where they are shown: `ada`, `Ada (ada)`, `telegram:ada`, `Ada (ada) on telegram`.

    Nothing for one that the log does not name.
    """
    if origin.sender is None:
        return set() if origin.sender_name is None else {origin.sender_name}
    whole, channel = person(origin.sender, origin.sender_name), origin.source_channel
    names = {origin.sender, origin.sender_name or origin.sender, whole}
    if channel is not None:
        names |= {f"{channel}:{origin.sender}", *(f"{name} on {channel}" for name in (*names,))}
    return names


def speaker(message: facts.Message) -> str:
    """Return the requester of an agent's message: a session's key, or words for a person, the system, or OpenClaw in an import."""
    return OPENCLAW if is_openclaws(message) else recorded_speaker(message)


def recorded_speaker(message: facts.Message) -> str:
    """Return the same, as far as the message's own provenance says."""
    origin = message.provenance
    if origin is None:
        return THE_SYSTEM if message.role == "system" else A_PERSON
    if is_by_method(origin):
        return facts.BY_METHOD
    match origin.kind:
        case "external_user":
            who = person(origin.sender, origin.sender_name)
            return who if origin.source_channel is None else f"{who} on {origin.source_channel}"
        case "inter_session":
            return origin.source_session_key or A_SESSION
        case "internal_system":
            return THE_SYSTEM

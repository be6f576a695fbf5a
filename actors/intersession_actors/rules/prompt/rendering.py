"""A transcript as one text for a model: each message with its sender, fenced unless a person typed it (PROV-3).

Two transcripts with different `Seen`s never render alike: the tests read each rendering back. Not shown, and so not
carried: ids and times of messages, thinking, usage, models, stop reasons, where a person's message came from, blocks of
unknown kinds, and the bytes of pictures. Who of several people spoke is shown where several can: see `senders_shown`.

A person's message stands as it is behind its role and its length, and in a fence where its sender is shown; every other
message stands in a fence. Both
are read by length, so that no text can begin, end or imitate a message.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_actors.rules.prompt.fencing import fence, fence_id
from intersession_events import facts

_BETWEEN: Final = "\n\n"


class Call(msgspec.Struct, frozen=True):
    """A tool call. `arguments` is compact JSON, or a model's invalid text."""

    id: str
    name: str
    arguments: str


class Picture(msgspec.Struct, frozen=True):
    """A picture, by its type and the SHA-256 of its base64."""

    mime: str
    sha256: str


class SeenFile(msgspec.Struct, frozen=True):
    """A file by its name, its type and its size in bytes, and why it is not shown itself."""

    name: str
    mime: str
    bytes: int
    left_out: str = msgspec.field(name="leftOut")


@facts.ready
class Seen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a message in a rendering. The names are those of a fence's header."""

    role: facts.Role
    text: str = ""
    kind: facts.ProvenanceKind | None = None
    source: str | None = msgspec.field(default=None, name="from")
    channel: str | None = None
    via: str | None = None
    tool_call_id: str | None = msgspec.field(default=None, name="toolCallId")
    tool: str | None = None
    is_error: bool | None = msgspec.field(default=None, name="isError")
    sender: str | None = None
    sender_name: str | None = msgspec.field(default=None, name="senderName")
    calls: tuple[Call, ...] = ()
    pictures: tuple[Picture, ...] = ()
    files: tuple[SeenFile, ...] = ()


def senders_shown(messages: Sequence[facts.Message], *, in_group: bool) -> bool:
    """Whether an agent is told which person wrote: in groups and channels, and if several people did (PROV-2)."""
    if in_group:
        return True
    people = {_sender(message) for message in messages} - {None}
    return len(people) > 1


def _sender(message: facts.Message) -> tuple[str | None, str] | None:
    said_by = message.provenance
    if said_by is None or said_by.kind != "external_user" or said_by.sender is None:
        return None
    return said_by.source_channel, said_by.sender


def seen(message: facts.Message, *, with_sender: bool = False) -> Seen:
    """Return the parts of a message for a rendering; `with_sender` also the person who wrote it."""
    content = message.content
    provenance = message.provenance
    told = None if provenance is None or provenance.kind == "external_user" else provenance
    person = provenance if with_sender and told is None else None
    return Seen(
        role=message.role,
        text=content if isinstance(content, str) else facts.text_of(message),
        kind=None if provenance is None else provenance.kind,
        source=None if told is None else told.source_session_key,
        channel=None if told is None else told.source_channel,
        via=None if told is None else told.source_tool,
        tool_call_id=message.tool_call_id,
        tool=message.tool_name,
        is_error=message.is_error,
        sender=None if person is None else person.sender,
        sender_name=None if person is None else person.sender_name,
        # Most messages are a plain text, and a long transcript is shown anew in each turn.
        calls=() if isinstance(content, str) else _calls(content),
        pictures=() if isinstance(content, str) else _pictures(content),
        files=() if isinstance(content, str) else _files(content),
    )


def _calls(blocks: Sequence[facts.Block]) -> tuple[Call, ...]:
    return tuple(
        Call(block.id, block.name, _compact(block.arguments))
        for block in blocks
        if isinstance(block, facts.ToolCallBlock)
    )


def _pictures(blocks: Sequence[facts.Block]) -> tuple[Picture, ...]:
    return tuple(picture_of(block) for block in blocks if isinstance(block, facts.ImageBlock))


def _files(blocks: Sequence[facts.Block]) -> tuple[SeenFile, ...]:
    return tuple(
        SeenFile(block.name, block.mime_type, block.size, _why_left_out(block))
        for block in blocks
        if isinstance(block, facts.FileBlock)
    )


def _why_left_out(block: facts.FileBlock) -> str:
    if block.is_picture:
        return "the picture is not shown to you"
    return (
        "its text is not shown to you" if block.mime_type.startswith("text/") else "its content is not text"
    )


def picture_of(block: facts.ImageBlock) -> Picture:
    """Return a picture's identity."""
    digest = hashlib.sha256(block.data.encode()).hexdigest()
    return Picture(block.mime_type or "application/octet-stream", digest)


def render(messages: Sequence[facts.Message], *, run_id: str, senders: bool = False) -> str:
    """Return the messages as one text, for a model that takes a prompt; with `senders`, with the people who wrote."""
    return _BETWEEN.join(_rendered(message, run_id, senders) for message in messages)


def fenced(shown: Seen, identity: str) -> str:
    """Return a message in its fence; the header has all its known fields."""
    header = msgspec.to_builtins(shown)
    header.pop("text", None)
    return fence("message", identity, header, shown.text)


def message_fence(run_id: str, message: facts.Message) -> str:
    """Return the id of a message's fence in a run."""
    return fence_id(run_id, "message", message.id, facts.text_of(message))


def _rendered(message: facts.Message, run_id: str, senders: bool) -> str:
    shown = seen(message, with_sender=senders)
    if shown == Seen(role="user", kind="external_user", text=shown.text):
        return f"user ({len(shown.text)} characters):\n{shown.text}"
    return fenced(shown, message_fence(run_id, message))


def _compact(source: str) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(source)).decode()
    except (ValueError, RecursionError):
        return source

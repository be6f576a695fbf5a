"""A transcript message in its raw form: role, blocks, provenance, and whatever an import brought along.

JSON that is not ours (tool arguments, unknown fields, imported lines) is kept as a string of its source text,
because only the source text hashes the same for ever.
"""

from typing import Literal

import msgspec

from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.facts.base import Fact, Whole, ready

__all__ = [
    "Block",
    "FileBlock",
    "ImageBlock",
    "Message",
    "OtherBlock",
    "Provenance",
    "ProvenanceKind",
    "Role",
    "SourceTool",
    "TextBlock",
    "ThinkingBlock",
    "ToolCallBlock",
    "Usage",
    "calls_of",
    "check_unknown",
    "files_of",
    "raw_block",
    "raw_message",
    "text_of",
]

Role = Literal["user", "assistant", "toolResult", "system"]
ProvenanceKind = Literal["external_user", "inter_session", "internal_system"]
SourceTool = Literal["sessions_send", "sessions_spawn", "subagents"]


class Provenance(Fact, frozen=True, kw_only=True):
    """Where a message came from (PROV-2). Set by the system alone; no caller can send one.

    `sender` is who spoke, as the channel knows them (`inbound`'s own word), `sender_name` what they are called there.
    A person's message without a `sender` is the operator's, or was imported.
    `edited_by` is who wrote the text instead of the session that it is from: while it was held (LIVE-1), or by `chat.inject`.
    """

    kind: ProvenanceKind
    source_session_key: str | None = None
    source_channel: str | None = None
    source_tool: SourceTool | None = None
    exchange_id: str | None = None
    turn: Whole | None = None
    hops: Whole | None = None
    sender: str | None = None
    sender_name: str | None = None
    edited_by: str | None = None


class Usage(Fact, frozen=True, kw_only=True):
    """What a run cost: tokens, and money in micro-units of the account's currency."""

    input: Whole = 0
    output: Whole = 0
    cache_read: Whole = 0
    cache_write: Whole = 0
    total_tokens: Whole = 0
    cost_micros: Whole | None = None

    @property
    def tokens(self) -> int:
        """All tokens of a run: the total its backend gave, else the sum of the parts."""
        return self.total_tokens or self.input + self.output + self.cache_read + self.cache_write


class TextBlock(Fact, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Visible text."""

    text: str
    extra: str | None = None


class ThinkingBlock(Fact, frozen=True, kw_only=True, tag_field="type", tag="thinking"):
    """A model's thinking, with the signature its provider gave it."""

    thinking: str
    thinking_signature: str | None = None
    extra: str | None = None


class ToolCallBlock(Fact, frozen=True, kw_only=True, tag_field="type", tag="toolCall"):
    """A call of a tool. `arguments` is the source text of a JSON object."""

    id: str
    name: str
    arguments: str = "{}"
    extra: str | None = None


class ImageBlock(Fact, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image, base64."""

    data: str
    mime_type: str | None = None
    extra: str | None = None


class FileBlock(Fact, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file of the message, whose content lies in the log's file store under its SHA-256 (FILE-1). `size` is in bytes.

    `mime_type` is what the content is, as far as its bytes say; `claimed` is the type that the sender gave it, where
    that is another one.
    """

    sha256: str
    size: Whole
    name: str
    mime_type: str
    claimed: str | None = None

    @property
    def is_picture(self) -> bool:
        """Whether it is a picture, of whatever kind."""
        return self.mime_type.startswith("image/")

    @property
    def brief(self) -> str:
        """Name, type and size in words."""
        return f"{self.name} ({self.mime_type}, {self.size} bytes)"


class OtherBlock(Fact, frozen=True, kw_only=True, tag_field="type", tag="other"):
    """A block of a kind this version does not know, kept as its source text (a JSON object)."""

    json: str


Block = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock | FileBlock | OtherBlock
Content = str | tuple[Block, ...]


@ready
class Message(Fact, frozen=True, kw_only=True):
    """One message of a transcript (HIST-3). `timestamp` is in milliseconds.

    `extra` is the source text of a JSON object of fields that this version does not know; they come back
    beside the known ones.
    """

    id: str
    role: Role
    content: Content
    timestamp: Whole
    provenance: Provenance | None = None
    run_id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool | None = None
    extra: str | None = None


def text_of(message: Message) -> str:
    """Return the visible text of a message: its string, or its text blocks joined by newlines."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join([block.text for block in message.content if isinstance(block, TextBlock)])


def files_of(message: Message) -> tuple[FileBlock, ...]:
    """Return the files of a message, in its order."""
    if isinstance(message.content, str):
        return ()
    return tuple(block for block in message.content if isinstance(block, FileBlock))


def calls_of(message: Message) -> tuple[str, ...]:
    """Return the ids of the calls of tools in a message."""
    if isinstance(message.content, str):
        return ()
    return tuple(block.id for block in message.content if isinstance(block, ToolCallBlock))


def raw_block(block: Block) -> JsonObject:
    """Return a block as the JSON object a reader gets, unknown fields back in their places."""
    match block:
        case OtherBlock():
            value: JsonObject = msgspec.json.decode(block.json)
            return value
        case ToolCallBlock():
            raw: JsonObject = {
                "type": "toolCall",
                "id": block.id,
                "name": block.name,
                "arguments": _json_or_text(block.arguments),
            }
        case FileBlock():
            file: JsonObject = msgspec.to_builtins(block)
            return file
        case TextBlock() | ThinkingBlock() | ImageBlock():
            raw = msgspec.to_builtins(block)
            raw.pop("extra", None)
    if block.extra is not None:
        raw.update(msgspec.json.decode(block.extra))
    return raw


def raw_message(message: Message) -> JsonObject:
    """Return a message in the raw transcript form of HIST-3, unknown fields back in their places."""
    raw: JsonObject = {"id": message.id, "role": message.role}
    if isinstance(message.content, str):
        raw["content"] = message.content
    else:
        raw["content"] = [raw_block(block) for block in message.content]
    known = msgspec.to_builtins(message)
    raw.update((name, known[name]) for name in known if name not in {"id", "role", "content", "extra"})
    if message.extra is not None:
        raw.update(msgspec.json.decode(message.extra))
    return raw


def check_unknown(message: Message) -> None:
    """Check what a message that is made here carries beside its known fields, and its blocks beside theirs.

    An import keeps a known field there whose value no field can hold. Nobody else may: it would be read in the field's place.

    Raises:
        ValueError: it is no JSON object, or has a field that is known.
    """
    blocks = () if isinstance(message.content, str) else message.content
    for part in (message, *blocks):
        if isinstance(part, OtherBlock):
            if not isinstance(msgspec.json.decode(part.json), dict):
                raise ValueError("a block of an unknown kind is no JSON object")  # noqa: TRY004 - its text, not its type
        elif not isinstance(part, FileBlock) and part.extra is not None:
            names = msgspec.json.decode(part.extra, type=dict[str, msgspec.Raw])
            known = sorted(names.keys() & {*part.__struct_encode_fields__, "type"})
            if known:
                raise ValueError(f"extra: {known[0]!r} has a field of its own")


def _json_or_text(source: str) -> JsonValue:
    """Tool arguments are usually an object; a model may also have produced text that is no JSON at all."""
    try:
        return msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return source

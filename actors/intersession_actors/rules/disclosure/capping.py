"""Messages as a tool call shows them: small, and without secrets for strangers (HIST-4, HIST-5). Pure.

Long strings are cut and say so, signatures of thinking and bytes of pictures are left out, and the whole is at most
80 KiB: the oldest messages go first. Secrets are hidden before (`redaction.py`): half a secret is not recognised.
"""

import re
from collections.abc import Sequence
from typing import Final, overload

import msgspec

from intersession_actors.rules.disclosure.redaction import STRUCTURE, redact_raw
from intersession_events.basics.plain_json import (
    JsonMapping,
    JsonObject,
    JsonValue,
    is_list,
    is_object,
    map_strings,
)

MAX_CHARACTERS: Final = 4_000
MAX_BYTES: Final = 80 * 1024

_SIGNATURES: Final = ("thinkingSignature", "thoughtSignature", "signature")
_MARK: Final = re.compile(r"\n… \[[0-9]+ characters cut\]")


class Capped(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript after cutting, and a note of what was cut.

    `dropped` counts the messages left out whole, `bytes` the compact UTF-8 JSON of `messages`. `truncated` says that
    anything at all is missing, `content_redacted` that secrets were hidden before.
    """

    messages: list[JsonObject]
    truncated: bool
    dropped: int
    content_truncated: bool
    content_redacted: bool = False
    bytes: int

    @property
    def first_id(self) -> str | None:
        """The id of the oldest message shown, to page back from."""
        return self.messages[0]["id"] if self.messages else None


def cap(
    messages: Sequence[JsonMapping], *, max_bytes: int = MAX_BYTES, max_characters: int = MAX_CHARACTERS
) -> Capped:
    """Return raw messages, oldest first, cut to the size of a tool's answer."""
    kept: list[JsonObject] = []
    size = len("[]")
    content_truncated = oversized = False
    for message in reversed(messages):
        shown, cut = cap_message(message, max_characters=max_characters)
        length = _bytes(shown)
        comma = 1 if kept else 0
        if length is None or size + comma + length > max_bytes:
            if kept:
                break
            shown, oversized = _placeholder(message, length), True
            length = _bytes(shown) or 0
        kept.append(shown)
        size += comma + length
        content_truncated = content_truncated or cut
        if oversized:
            break
    kept.reverse()
    dropped = len(messages) - len(kept)
    return Capped(
        messages=kept,
        truncated=bool(dropped) or content_truncated or oversized,
        dropped=dropped,
        content_truncated=content_truncated or oversized,
        bytes=size,
    )


def cap_message(message: JsonMapping, *, max_characters: int = MAX_CHARACTERS) -> tuple[JsonObject, bool]:
    """Return a raw message with its long strings cut, without signatures and picture bytes; and whether it had any."""
    lean, left_out = _lean(message)
    length = _bytes(lean)
    if length is not None and length <= max_characters:
        return lean, left_out  # no string in it is longer than all of it
    found = False

    def change(_: str | None, text: str) -> str:
        nonlocal found
        if len(text) <= max_characters:
            return text
        if len(text) < max_characters + 40 and _MARK.fullmatch(text, max_characters):
            return text
        found = True
        return f"{text[:max_characters]}\n… [{len(text) - max_characters} characters cut]"

    cut = map_strings({name: value for name, value in lean.items() if name not in STRUCTURE}, change)
    return ({**lean, **cut}, True) if found or left_out else (dict(message), False)


def _lean(message: JsonMapping) -> tuple[JsonObject, bool]:
    """Leave out signatures of thinking and bytes of pictures."""
    content = message.get("content")
    if not is_list(content):
        return dict(message), False
    blocks = [_lean_block(block) for block in content]
    return {**message, "content": blocks}, blocks != content


def _lean_block(block: object) -> JsonValue:
    if not is_object(block):
        return block
    if block.get("type") == "thinking":
        return _without(block, *_SIGNATURES)
    if block.get("type") != "image":
        return block
    given = block.get("source")
    source: JsonObject = given if is_object(given) else {}
    data = block.get("data", source.get("data"))
    if not isinstance(data, str):
        return block
    lean = _without(block, "data")
    if source:
        lean["source"] = _without(source, "data")
    return {**lean, "omitted": True, "bytes": _decoded(data)}


def _without(fields: JsonMapping, *names: str) -> JsonObject:
    return {name: value for name, value in fields.items() if name not in names}


def _decoded(base64: str) -> int:
    """Return how many bytes a picture has."""
    return len(base64.rstrip("=")) * 3 // 4


def _bytes(message: JsonMapping) -> int | None:
    """Return the size of a message; None if it is nested too deep to be written at all."""
    try:
        return len(msgspec.json.encode(message))
    except RecursionError:
        return None


def _placeholder(message: JsonMapping, length: int | None) -> JsonObject:
    """Return what stands for a last message that is too large: its id, so that paging goes on, and why it is not there."""
    named = {name: message[name] for name in ("id", "role", "timestamp") if name in message}
    size = "too deep to be shown" if length is None else f"{length} bytes, too large to be shown"
    return {**named, "content": f"[message left out: {size}]"}


def shown_messages(messages: Sequence[JsonMapping], *, redact: bool) -> Capped:
    """Return raw messages, oldest first, in the form of a tool's answer."""
    if not redact:
        return cap(messages)
    source = _Redacted(messages)
    capped = cap(source)
    return msgspec.structs.replace(capped, content_redacted=source.hidden_from(capped.dropped))


class _Redacted(Sequence[JsonMapping]):
    """Messages with their secrets hidden, each when it is asked for: most of a long transcript never is."""

    def __init__(self, messages: Sequence[JsonMapping]) -> None:
        self._messages = messages
        self._hidden: set[int] = set()

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, at: int) -> JsonMapping: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[JsonMapping]: ...
    def __getitem__(self, at: int | slice) -> JsonMapping | Sequence[JsonMapping]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        shown, hidden = redact_raw(self._messages[at])
        if hidden:
            self._hidden.add(at)
        return shown

    def hidden_from(self, start: int) -> bool:
        """Whether a secret was hidden in a message from an index on."""
        return any(at >= start for at in self._hidden)

"""What a context says, without the ids and times that two runs of one conversation can't have in common. Pure.

A fork derives ids of its own for all that comes after its cut. What is the same text in both, but for these, has one meaning.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonList, JsonValue, is_list, is_object
from intersession_events.facts import (
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    without_measures,
)

_DERIVED: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b", re.IGNORECASE
)
"""A derived id (UUIDv5), wherever it stands: in the key of a child, in the words that a run is given."""

_ANY_ID: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b", re.IGNORECASE
)
_FENCED: Final = re.compile(r"\[\[(\w+) [0-9a-f]{16}(?= |\]\])")
_TIME_SINCE_MS: Final = 1_000_000_000_000
"""A number from here on, in what a tool gave, is a time in milliseconds (2001 and later), and none that anybody counts."""

_ID: Final = "<id>"
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def text_meaning(text: str) -> str:
    """Return a text without the ids that the log derived, those of fences, and what was measured of a sub-agent."""
    return _FENCED.sub(r"[[\1", _DERIVED.sub(_ID, without_measures(text)))


def tool_meaning(content: str) -> str:
    """Return what a session tool gave, without ids and times; what is no JSON is a text like any other."""
    try:
        value: JsonValue = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return text_meaning(content)
    return _ENCODER.encode(_timeless(value)).decode()


def _timeless(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _ANY_ID.sub(_ID, text_meaning(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= _TIME_SINCE_MS:
        return "<time>"
    if is_object(value):
        return {name: _timeless(item) for name, item in value.items()}
    return [_timeless(item) for item in value] if is_list(value) else value


def message_meaning(message: Message) -> bytes:
    """Return the digest of what a message says: who speaks, what of, in which words.

    How many hops it is from a person counts for limits alone, and older logs say it of few messages.
    """
    said: JsonList = []
    content = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
    for block in content:
        match block:
            case TextBlock(text=text) if message.role == "toolResult":
                said.append(["result", tool_meaning(text)])
            case TextBlock(text=text):
                said.append(["text", text_meaning(text)])
            case ToolCallBlock(name=name, arguments=arguments):
                said.append(["call", name, tool_meaning(arguments)])
            case ThinkingBlock(thinking=thinking):
                said.append(["thinking", text_meaning(thinking)])
            case OtherBlock(json=json):
                said.append(["other", text_meaning(json)])
            case _:
                said.append(["image", hashlib.sha256(block.data.encode()).hexdigest()])
    origin = message.provenance
    whence: JsonValue = None
    if origin is not None:
        whence = [
            origin.kind,
            text_meaning(origin.source_session_key or ""),
            origin.source_channel,
            origin.source_tool,
            origin.turn,
            origin.sender,
            origin.sender_name,
        ]
    whole = [message.role, said, whence, message.tool_name, bool(message.is_error)]
    return hashlib.sha256(_ENCODER.encode(whole)).digest()


class _Grown:
    """The digest of the first messages of a transcript, how many they are, and the ids of the first and the last of them."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.taken = 0
        self.ends: tuple[str, str] = ("", "")

    def is_of(self, transcript: Sequence[Message]) -> bool:
        """Whether a transcript begins with these messages."""
        return 0 < self.taken <= len(transcript) and self.ends == _ends(transcript, self.taken)


def _ends(transcript: Sequence[Message], taken: int) -> tuple[str, str]:
    return transcript[0].id, transcript[taken - 1].id


class Meanings:
    """Digests of contexts. What a message says is looked at once, however many runs see it.

    So is a transcript that grows from run to run: else a long session would take the square of its length.
    """

    def __init__(self) -> None:
        self._of: dict[str, bytes] = {}
        self._last = _Grown()
        """Of the transcript that was looked at last; never changed, as several threads may ask."""

    def of(
        self, transcript: Sequence[Message], asked: Message, partial: Iterable[Message], context: str
    ) -> str:
        """Return the digest of what an attempt was given."""
        digest = self._of_transcript(transcript).digest.copy()
        digest.update(self._digest(asked))
        digest.update(b"partial")
        for message in partial:
            digest.update(self._digest(message))
        digest.update(text_meaning(context).encode())
        return digest.hexdigest()

    def _of_transcript(self, transcript: Sequence[Message]) -> _Grown:
        grown, last = _Grown(), self._last
        if not transcript:
            return grown
        if last.is_of(transcript):
            grown.digest, grown.taken = last.digest.copy(), last.taken
        for message in transcript[grown.taken :]:
            grown.digest.update(self._digest(message))
        grown.taken, grown.ends = len(transcript), _ends(transcript, len(transcript))
        self._last = grown
        return grown

    def _digest(self, message: Message) -> bytes:
        found = self._of.get(message.id)
        if found is None:
            found = self._of[message.id] = message_meaning(message)
        return found

"""What a context says, without the ids and times that two runs can't have in common, and where two contexts differ. Pure.

A fork derives ids of its own for all that comes after its cut. What is the same text in both, but for these, has one meaning.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.basics.plain_json import JsonList, JsonValue, is_list, is_object
from intersession_events.facts import (
    FileBlock,
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
    """Return a text without derived ids, fence ids, and a sub-agent's measurements."""
    return _FENCED.sub(r"[[\1", _DERIVED.sub(_ID, without_measures(text)))


def tool_meaning(content: str) -> str:
    """Return a session tool's result without ids and times; one that is not JSON is a text like any other."""
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
    """Return the digest of a message's meaning: its speaker and its texts.

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
            case FileBlock(name=name, sha256=sha256):
                said.append(["file", name, sha256])
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
    """Digests of contexts. Each message is processed once, however many runs see it.

    So is a transcript that grows from run to run: else a long session would take the square of its length.
    """

    def __init__(self) -> None:
        self._of: dict[str, bytes] = {}
        self._last = _Grown()
        """Of the transcript that was looked at last; never changed, as several threads may ask."""

    def of(
        self, transcript: Sequence[Message], asked: Message, partial: Iterable[Message], context: str
    ) -> str:
        """Return the digest of an attempt's input."""
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


MOST_PARTS: Final = 8
"""The number of different parts that are named; further ones are counted."""
MOST_CHARACTERS: Final = 2_000
"""The stored length of an answer or a question."""
_EXCERPT: Final = 240
_BEFORE: Final = 60
"""The length of the equal text shown before the first difference."""


class Part(NamedTuple):
    """A part that differs, with an excerpt of it then and now; empty if there was, or is, no such part."""

    name: str
    then: str
    now: str


class TurnInput(NamedTuple):
    """An agent's input in a turn."""

    transcript: Sequence[Message]
    message: Message
    partial: Sequence[Message]
    system_context: str


def given_then(context: RunContext) -> TurnInput:
    """Return an agent's input in a recorded attempt."""
    return TurnInput(context.transcript, context.message, context.partial, context.system_context)


def prompts_differing(then: TurnInput, now: TurnInput) -> tuple[Part, ...]:
    """Return the parts of two inputs that differ in meaning, at most `MOST_PARTS` and one that counts the others.

    They are `system context`, `message N of the transcript`, `message` (that is answered) and `earlier attempts, message N`.
    Of messages that say the same, the part says that it is their sender that differs.
    """
    parts = [*_prompts_differing(then, now)]
    if len(parts) <= MOST_PARTS:
        return tuple(parts)
    return *parts[:MOST_PARTS], Part(f"{len(parts) - MOST_PARTS} more", "", "")


def _prompts_differing(then: TurnInput, now: TurnInput) -> Iterator[Part]:
    contexts = [text_meaning(one.system_context) for one in (then, now)]
    if contexts[0] != contexts[1]:
        yield _part("system context", *contexts)
    yield from _of_messages("message {} of the transcript".format, then.transcript, now.transcript)
    yield from _of_messages(lambda _: "message", (then.message,), (now.message,))
    yield from _of_messages("earlier attempts, message {}".format, then.partial, now.partial)


def _of_messages(
    name: Callable[[int], str], then: Sequence[Message], now: Sequence[Message]
) -> Iterator[Part]:
    """Yield what differs between two lists of messages: from the first that differs to the last one."""
    a, b = [*then], [*now]
    meant = [[message_meaning(message) for message in messages] for messages in (a, b)]
    first = 0
    shorter = min(len(a), len(b))
    while first < shorter and meant[0][first] == meant[1][first]:
        first += 1
    last = 0
    while last < shorter - first and meant[0][-1 - last] == meant[1][-1 - last]:
        last += 1
    pairs = zip_longest(a[first : len(a) - last], b[first : len(b) - last])
    for number, (one, other) in enumerate(pairs, first + 1):
        texts = ["" if message is None else _said(message) for message in (one, other)]
        if one is None or other is None or texts[0] != texts[1]:
            yield _part(name(number), *texts)
        elif message_meaning(one) != message_meaning(other):
            yield _part(f"sender of {name(number)}", _sender(one), _sender(other))


def results_differing(tool: str, then: str, now: str) -> tuple[Part, ...]:
    """Return the differences between two results of a tool: fields of JSON objects, `TOOL: FIELD`, else the whole."""
    a, b = (_object(tool_meaning(result)) for result in (then, now))
    if a is None or b is None:
        return (_part(tool, tool_meaning(then), tool_meaning(now)),)
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    parts = [_part(f"{tool}: {name}", _value(a, name), _value(b, name)) for name in names[:MOST_PARTS]]
    if len(names) > MOST_PARTS:
        parts.append(Part(f"{tool}: {len(names) - MOST_PARTS} more", "", ""))
    return tuple(parts)


def brief(text: str | None) -> str | None:
    """Return a text without its secrets, cut to the stored length."""
    if text is None:
        return None
    shown = redact_text(text)[0]
    return shown if len(shown) <= MOST_CHARACTERS else f"{shown[: MOST_CHARACTERS - 1]}…"


def _part(name: str, then: str, now: str) -> Part:
    """Return a part around the first difference. Secrets are hidden first: half of one would not be recognised."""
    a, b = redact_text(then)[0], redact_text(now)[0]
    same = next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), None)
    start = max(0, (min(len(a), len(b)) if same is None else same) - _BEFORE)
    return Part(name[:MOST_CHARACTERS], _from(a, start), _from(b, start))


def _from(text: str, start: int) -> str:
    shown = text[start : start + _EXCERPT]
    if not shown:
        return ""
    return f"{'…' if start else ''}{shown}{'…' if start + _EXCERPT < len(text) else ''}"


def _said(message: Message) -> str:
    """Return the speaker and the text of a message, in words."""
    content = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
    said: list[str] = []
    for block in content:
        match block:
            case TextBlock(text=text) if message.role == "toolResult":
                said.append(tool_meaning(text))
            case TextBlock(text=text) | ThinkingBlock(thinking=text):
                said.append(text_meaning(text))
            case ToolCallBlock(name=name, arguments=arguments):
                said.append(f"{name} {tool_meaning(arguments)}")
            case OtherBlock(json=json):
                said.append(text_meaning(json))
            case FileBlock():
                said.append(f"[file: {block.brief}]")
            case _:
                said.append("(a picture)")
    return f"{message.role}: {' '.join(said)}"


def _sender(message: Message) -> str:
    origin = message.provenance
    if origin is None:
        return "nobody named"
    names = (origin.source_session_key, origin.source_channel, origin.source_tool, origin.sender)
    turn = "" if origin.turn is None else f"turn {origin.turn}"
    return text_meaning(" ".join(filter(None, (origin.kind, *names, origin.sender_name, turn))))


def _object(text: str) -> dict[str, JsonValue] | None:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _value(of: dict[str, JsonValue], name: str) -> str:
    if name not in of:
        return ""
    value = of[name]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

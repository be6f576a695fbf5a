"""What differs between what an agent was given in a recording and what it is given now: each part by its name, with an excerpt. Pure.

Ids and times that no two runs can have in common are left out of both, and so are secrets.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.prompt.meaning import message_meaning, text_meaning, tool_meaning
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.basics.plain_json import JsonValue, is_object
from intersession_events.facts import Message, OtherBlock, TextBlock, ThinkingBlock, ToolCallBlock

MOST_PARTS: Final = 8
"""So many parts that differ are named; of more it is said how many."""
MOST_CHARACTERS: Final = 2_000
"""So much is kept of an answer or a question as a whole."""
_EXCERPT: Final = 240
_BEFORE: Final = 60
"""So much of what is the same stands before the first difference."""


class Part(NamedTuple):
    """A part that differs, with an excerpt of it then and now; a text is empty where there was, or is, no such part."""

    name: str
    then: str
    now: str


class TurnInput(NamedTuple):
    """What an agent is given in a turn."""

    transcript: Sequence[Message]
    message: Message
    partial: Sequence[Message]
    system_context: str


def given_then(context: RunContext) -> TurnInput:
    """Return what an agent was given in a recorded attempt."""
    return TurnInput(context.transcript, context.message, context.partial, context.system_context)


def prompts_differing(then: TurnInput, now: TurnInput) -> tuple[Part, ...]:
    """Return the parts of two prompts that differ in what they mean, at most `MOST_PARTS` and one that counts the others.

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
    """Return what differs between two results of a tool: of JSON objects the fields, `TOOL: FIELD`, else the whole."""
    a, b = (_object(tool_meaning(result)) for result in (then, now))
    if a is None or b is None:
        return (_part(tool, tool_meaning(then), tool_meaning(now)),)
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    parts = [_part(f"{tool}: {name}", _value(a, name), _value(b, name)) for name in names[:MOST_PARTS]]
    if len(names) > MOST_PARTS:
        parts.append(Part(f"{tool}: {len(names) - MOST_PARTS} more", "", ""))
    return tuple(parts)


def brief(text: str | None) -> str | None:
    """Return a text without its secrets, and no more of it than is kept."""
    if text is None:
        return None
    shown = redact_text(text)[0]
    return shown if len(shown) <= MOST_CHARACTERS else f"{shown[: MOST_CHARACTERS - 1]}…"


def _part(name: str, then: str, now: str) -> Part:
    """Return a part with what is around the first difference. Secrets are hidden first: half of one would not be recognised."""
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
    """Return who speaks and what a message says, in words."""
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

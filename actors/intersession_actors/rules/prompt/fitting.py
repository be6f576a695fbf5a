"""Fits a context that is larger than the model's window, and estimates the most tokens of texts (CTX-1). Pure.

Tokens are counted without a tokenizer, by kinds of characters, so that hardly any model has more: three small letters or
spaces of ASCII are one token, any other character of ASCII is one, and two bytes of anything else (in UTF-8) are one. English is
counted half as much again as it has, JSON and code about the same. A server that counts more refuses, and is given less (CTX-3).
"""

import string
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from intersession_actors.rules.prompt.fencing import shortened, shorter_quotes
from intersession_events import facts

_SMALL: Final = f"{string.ascii_lowercase} ".encode()
_HIGH: Final = bytes(range(128, 256))

_FRAME: Final = 24
"""Tokens around a message: its role, the ids of its call or result."""
_FENCE: Final = 96
"""Tokens around a message that no person typed: its fence, which says whose it is."""
_CALL: Final = 32
_PICTURE: Final = 2_000
"""Tokens of a picture. Most servers count fewer, whatever its size."""
_NOTES: Final = 160
"""Tokens of what is said of what is left out, and of an attempt that was cut off."""
_LEAST_CHARS: Final = 200
"""No text is cut to less."""


class NotAtHand(LookupError):
    """A needed message must be read from the log first."""


def tokens_in(text: str) -> int:
    """Return the most tokens that a text can have, as far as that can be said without the model's own tokenizer."""
    data = text.encode("utf-8", "surrogatepass")
    rest = data.translate(None, _SMALL)
    high = 0 if text.isascii() else len(rest) - len(rest.translate(None, _HIGH))
    return (len(data) - len(rest) + 2) // 3 + (len(rest) - high) + (high + 1) // 2


def tokens_of(message: facts.Message) -> int:
    """Return the most tokens that a message can have, as a model sees it: no thinking, no blocks of unknown kinds."""
    origin = message.provenance
    total = _FRAME if origin is None or origin.kind == "external_user" else _FENCE
    if isinstance(message.content, str):
        return total + tokens_in(message.content)
    for block in message.content:
        match block:
            case facts.TextBlock(text=text):
                total += tokens_in(text)
            case facts.ToolCallBlock(name=name, arguments=arguments):
                total += _CALL + tokens_in(name) + tokens_in(arguments)
            case facts.ImageBlock():
                total += _PICTURE
            case facts.ThinkingBlock() | facts.OtherBlock():
                pass
    return total


def tokens_used(
    context: str, transcript_tokens: int, asked: facts.Message, partial: Sequence[facts.Message]
) -> int:
    """Return the most tokens that a context can have; those of the transcript are known."""
    return transcript_tokens + tokens_in(context) + tokens_of(asked) + _tokens_of_partial(partial)


def _tokens_of_partial(partial: Sequence[facts.Message]) -> int:
    return sum(map(tokens_of, partial)) + (_NOTES if partial else 0)


def fit(
    transcript: Sequence[facts.Message],
    asked: facts.Message,
    partial: Sequence[facts.Message],
    context: str,
    *,
    room: int,
    at_hand: tuple[int, Sequence[int]] | None = None,
    may_read: bool = True,
) -> facts.Fit:
    """Return which messages to leave out of a context with too many tokens.

    `at_hand` says from which message of the transcript on they need not be read, and how many tokens each of these has; None: all.

    The instructions and the message to answer are always in: if that message, or what the instructions quote, is too long by
    itself, it is cut. Then come the newest of what earlier attempts did, and the newest whole turns of the transcript, as many as
    there is room for. In these a text of more than half as many characters as there is room for tokens is cut.

    Raises:
        NotAtHand: messages of the transcript have to be read for that, and may not be (`may_read`).
    """
    left = room - _NOTES
    asked_chars, needed = _cut_to_fit(asked, context, left)
    left -= needed
    earlier_chars = max(room // 2, _LEAST_CHARS)
    if partial:
        left -= _NOTES
    every_tokens = 0, [tokens_of(one) for one in partial]
    partial_from, left = _newest(partial, every_tokens, left, earlier_chars, begins=_is_no_result)
    left_out = len(transcript)
    if partial_from == 0:
        start, tokens = at_hand or (0, [tokens_of(one) for one in transcript])
        left_out, left = _newest(
            transcript, (start, tokens), left, earlier_chars, begins=_is_asked, may_read=may_read
        )
    return facts.Fit(
        left_out=left_out,
        partial_left_out=partial_from,
        earlier_chars=earlier_chars,
        asked_chars=asked_chars,
    )


def _cut_to_fit(asked: facts.Message, context: str, room: int) -> tuple[int | None, int]:
    """Return to how many characters the message and the quotes have to be cut, if at all, and how many tokens they have then."""
    needed = tokens_of(asked) + tokens_in(context)
    most: int | None = None
    while needed > room and (most is None or most > _LEAST_CHARS):
        most = max((max(_longest(asked), len(context)) if most is None else most) // 2, _LEAST_CHARS)
        needed = tokens_of(shortened(asked, most)) + tokens_in(shorter_quotes(context, most))
    return most, needed


def _longest(message: facts.Message) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    return max(
        (len(block.text) for block in message.content if isinstance(block, facts.TextBlock)), default=0
    )


def _newest(
    messages: Sequence[facts.Message],
    at_hand: tuple[int, Sequence[int]],
    room: int,
    most_chars: int,
    *,
    begins: Callable[[facts.Message], bool],
    may_read: bool = True,
) -> tuple[int, int]:
    """Return from which message on there is room for all, and how much room is left.

    It `begins` a turn in which each result of a tool has its call before it. Longer texts are cut.
    """
    start, tokens = at_hand

    def cost(number: int) -> int:
        return tokens_of(shortened(messages[number], most_chars))

    # Long transcripts are gone through by their tokens: a text has a third as many as characters, or more. Most have none to cut.
    costs = tokens
    if 3 * max(tokens, default=0) > most_chars:
        costs = [cost(at) if 3 * each > most_chars else each for at, each in enumerate(tokens, start)]
    sums = list(accumulate(reversed(costs)))
    fitting = bisect_right(sums, room)
    first, room = len(messages) - fitting, room - (sums[fitting - 1] if fitting else 0)
    if start and fitting == len(tokens):
        if not may_read:
            raise NotAtHand(f"message {start - 1} of {len(messages)}")
        while first and (needed := cost(first - 1)) <= room:
            first, room = first - 1, room - needed
    while first < len(messages) and not (begins(messages[first]) and _is_whole(messages, first, begins)):
        room += cost(first)
        first += 1
    return first, room


def _is_whole(messages: Sequence[facts.Message], first: int, begins: Callable[[facts.Message], bool]) -> bool:
    """Whether each result of the turn that begins with a message has its call before it there."""
    called: set[str | None] = set(facts.calls_of(messages[first]))
    for number in range(first + 1, len(messages)):
        message = messages[number]
        if begins(message):
            return True
        if message.role == "toolResult" and message.tool_call_id not in called:
            return False
        called.update(facts.calls_of(message))
    return True


def _is_asked(message: facts.Message) -> bool:
    return message.role == "user"


def _is_no_result(message: facts.Message) -> bool:
    return message.role != "toolResult"


def shown_of(
    transcript: Sequence[facts.Message],
    asked: facts.Message,
    partial: Sequence[facts.Message],
    fitted: facts.Fit | None,
    *,
    run_id: str,
) -> tuple[tuple[facts.Message, ...], facts.Message, tuple[facts.Message, ...]]:
    """Return the shown parts of a transcript, of the message to answer, and of earlier attempts' messages.

    What was left out is said in one line before the rest.
    """
    if fitted is None:
        return tuple(transcript), asked, tuple(partial)
    earlier = tuple(_shortened(one, fitted.earlier_chars) for one in transcript[fitted.left_out :])
    done = tuple(_shortened(one, fitted.earlier_chars) for one in partial[fitted.partial_left_out :])
    left_out = fitted.left_out + fitted.partial_left_out
    if left_out:
        are = (
            "1 earlier message of this session is"
            if left_out == 1
            else f"{left_out} earlier messages of this session are"
        )
        note = facts.Message(
            id=f"{run_id}:left-out",
            role="user",
            content=f"{are} left out here, since not all of them fit into what you can be shown.",
            timestamp=asked.timestamp,
            provenance=facts.Provenance(kind="internal_system"),
        )
        earlier = (note, *earlier)
    return earlier, _shortened(asked, fitted.asked_chars), done


def context_shown(context: str, fitted: facts.Fit | None) -> str:
    """Return a context's instructions with quotes cut where they are too long."""
    if fitted is None or fitted.asked_chars is None:
        return context
    return shorter_quotes(context, fitted.asked_chars)


def _shortened(message: facts.Message, most_chars: int | None) -> facts.Message:
    return message if most_chars is None else shortened(message, most_chars)

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

import msgspec

from intersession_actors.rules.prompt.fencing import shortened, shortened_text, shorter_quotes
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
_ROUNDS: Final = 8
"""A summary is brought up to date in at most this many rounds: what is older than that is left out of it (CTX-5)."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary that stands for the first `messages` messages of a transcript, of the run `run_id` (CTX-5).

    `tokens` is the most tokens that these have, `text` says what is left of them.
    """

    run_id: str
    messages: int
    tokens: int
    text: str

    @property
    def most_tokens(self) -> int:
        """The most tokens of the summary itself, with its fence."""
        return tokens_in(self.text) + _FENCE


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
            case facts.FileBlock():
                total += _FENCE + tokens_in(block.name) + (_PICTURE if block.is_picture else 0)
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
    summary: Summary | None = None,
) -> facts.Fit:
    """Return which messages to leave out of a context with too many tokens.

    A summary stands for those that it covers, so none of these is in.

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
    covered = 0
    if summary is not None:
        covered = summary.messages
        left -= tokens_in(shortened_text(summary.text, earlier_chars)) + _FENCE
    if partial:
        left -= _NOTES
    every_tokens = 0, [tokens_of(one) for one in partial]
    partial_from, left = _newest(partial, every_tokens, left, earlier_chars, begins=_is_no_result)
    left_out = len(transcript)
    if partial_from == 0:
        start, tokens = at_hand or (0, [tokens_of(one) for one in transcript])
        if covered > start:
            start, tokens = covered, tokens[covered - start :]
        left_out, left = _newest(
            transcript,
            (start, tokens),
            left,
            earlier_chars,
            begins=_is_asked,
            may_read=may_read,
            covered=covered,
        )
    return facts.Fit(
        left_out=left_out,
        partial_left_out=partial_from,
        earlier_chars=earlier_chars,
        asked_chars=asked_chars,
        summary=None if summary is None else summary.run_id,
        summarised=covered,
    )


def summarised(summary: Summary) -> facts.Fit:
    """Return what is left out of a context that has room for all but what a summary stands for."""
    return facts.Fit(left_out=summary.messages, summary=summary.run_id, summarised=summary.messages)


def to_compact(
    transcript: Sequence[facts.Message],
    tokens: tuple[int, Sequence[int]],
    *,
    room: int,
    keep: int,
    summary: Summary | None,
    needed: int,
) -> facts.Fit | None:
    """Return which messages the next summary is made of: `left_out <= number < until` (CTX-5); None: there are none.

    They begin where the last summary ends. The newest whole turns stay, as many as have at most `keep` tokens, and of the
    others the oldest are taken that fit into `room` tokens beside the `needed` ones, never a call without its results.
    `tokens` has the number of the first message that is counted, and how many each from there on has at most.

    Raises:
        NotAtHand: messages have to be read from the log to be counted.
    """
    covered = 0 if summary is None else summary.messages
    first, counts = tokens
    if first > covered:
        raise NotAtHand(f"message {first - 1} of {len(transcript)}")
    counts = counts[covered - first :]
    end = _kept_from(transcript, covered, counts, keep)
    left = max(room - needed - (0 if summary is None else min(summary.most_tokens, room // 2)), _LEAST_CHARS)
    chars, since, until = room, covered, covered
    while until == since < end and chars > _LEAST_CHARS:
        # A call with all its results that is too long by itself: their texts are cut further.
        chars = max(chars // 2, _LEAST_CHARS)
        costs = [
            tokens_of(shortened(transcript[at], chars)) if 3 * each > chars else each
            for at, each in enumerate(counts[: end - covered], covered)
        ]
        since = covered + _passed_over(costs, sum(costs) - _ROUNDS * left)
        until = _taken(transcript, costs[since - covered :], since, left)
    if since == end:
        return None
    return facts.Fit(
        left_out=since,
        until=until if until > since else _next_part(transcript, since, end),
        earlier_chars=chars,
        summary=None if summary is None else summary.run_id,
        summarised=covered,
    )


def _kept_from(transcript: Sequence[facts.Message], first: int, tokens: Sequence[int], keep: int) -> int:
    """Return where the newest whole turns begin that have at most `keep` tokens together."""
    end, kept = len(transcript), 0
    for number in range(end - 1, first - 1, -1):
        kept += tokens[number - first]
        if kept > keep:
            break
        if _is_asked(transcript[number]):
            end = number
    return end


def _passed_over(costs: Sequence[int], over: int) -> int:
    """Return how many of the oldest messages have to be passed over to be rid of some tokens."""
    passed = 0
    while over > 0 and passed < len(costs) - 1:
        over -= costs[passed]
        passed += 1
    return passed


def _taken(transcript: Sequence[facts.Message], costs: Sequence[int], first: int, room: int) -> int:
    """Return up to which message, from a first one on, there is room for all; no call is parted from its results."""
    until = first
    for number, cost in enumerate(costs, first):
        room -= cost
        if room < 0:
            break
        if _ends_part(transcript, number):
            until = number + 1
    return until


def _next_part(transcript: Sequence[facts.Message], first: int, end: int) -> int:
    return next((at + 1 for at in range(first, end) if _ends_part(transcript, at)), end)


def _ends_part(transcript: Sequence[facts.Message], number: int) -> bool:
    """Whether no result of a call follows right behind a message."""
    return number + 1 >= len(transcript) or transcript[number + 1].role != "toolResult"


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
    covered: int = 0,
) -> tuple[int, int]:
    """Return from which message on there is room for all, and how much room is left.

    It `begins` a turn in which each result of a tool has its call before it. Longer texts are cut. The first `covered` ones
    are not looked at.
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
    if start > covered and fitting == len(tokens):
        if not may_read:
            raise NotAtHand(f"message {start - 1} of {len(messages)}")
        while first > covered and (needed := cost(first - 1)) <= room:
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
    summary: str | None = None,
) -> tuple[tuple[facts.Message, ...], facts.Message, tuple[facts.Message, ...]]:
    """Return the shown parts of a transcript, of the message to answer, and of earlier attempts' messages.

    What was left out is said in one line before the rest, and before that the summary of what was said earlier.
    """
    if fitted is None:
        return tuple(transcript), asked, tuple(partial)
    shown = transcript[fitted.left_out : fitted.until]
    earlier = tuple(_shortened(one, fitted.earlier_chars) for one in shown)
    done = tuple(_shortened(one, fitted.earlier_chars) for one in partial[fitted.partial_left_out :])
    if left_out := fitted.lost:
        are = (
            "1 earlier message of this session is"
            if left_out == 1
            else f"{left_out} earlier messages of this session are"
        )
        words = f"{are} left out here, since not all of them fit into what you can be shown."
        earlier = (_note(f"{run_id}:left-out", words, asked), *earlier)
    if summary is not None:
        words = (
            f"Your summary of the first {fitted.summarised} messages of this session, which are not shown here:\n\n"
            + summary
        )
        note = _note(f"{run_id}:summary", words, asked)
        earlier = (_shortened(note, fitted.earlier_chars), *earlier)
    return earlier, _shortened(asked, fitted.asked_chars), done


def _note(identity: str, words: str, asked: facts.Message) -> facts.Message:
    """Return what the system says before the messages, at the time of the message to answer."""
    said_by = facts.Provenance(kind="internal_system")
    return facts.Message(
        id=identity, role="user", content=words, timestamp=asked.timestamp, provenance=said_by
    )


def context_shown(context: str, fitted: facts.Fit | None) -> str:
    """Return a context's instructions with quotes cut where they are too long."""
    if fitted is None or fitted.asked_chars is None:
        return context
    return shorter_quotes(context, fitted.asked_chars)


def _shortened(message: facts.Message, most_chars: int | None) -> facts.Message:
    return message if most_chars is None else shortened(message, most_chars)

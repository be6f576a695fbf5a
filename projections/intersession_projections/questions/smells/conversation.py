"""Smells of what is said: turns that repeat each other, a message that came twice, turns that cost more and more. Pure."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from intersession_events import facts
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.speakers import is_openclaws
from intersession_projections.questions.smells.likeness import count_of, likeness, words_in
from intersession_projections.questions.smells.smell import Seen, Smell

ALIKE: Final = 0.8
"""From this on two turns say the same."""

_LENGTHS: Final = 2
"""A turn that is more than twice as long as another one says more, even if it is of the same words."""

REPEATS: Final = 2
"""The number of consecutive turns that must repeat the one before them."""

TWICE_WITHIN_MS: Final = 600_000
"""The same words to the same session are the same message again, if they come in ten minutes."""

WORDS_OF_A_MESSAGE: Final = 3
"""Shorter ones are said again and again by people who mean it: `yes`, `go on`."""

GROWS_BY: Final = 1.5
GROWS_FOR: Final = 3
"""The number of consecutive turns that each use at least half as much again as the last."""


class _Turn(NamedTuple):
    position: int
    text: str
    tokens: int


def polite_loop(seen: Seen) -> Iterator[Smell]:
    """Find turns that repeat each other: nobody has anything to add, and nobody stops.

    What was erased says nothing of what was said there: it repeats nothing, and parts what stands before it from what follows.
    Turns each of which says all of the one before and more, as a list that grows, have something to add.
    """
    adds: list[bool] = []
    for before, turn in pairwise(_turns(seen)):
        adds = [*adds, _adds(before.text, turn.text)][-REPEATS:] if _repeats(before.text, turn.text) else []
        if len(adds) == REPEATS and not all(adds):
            yield Smell(
                "polite_loop", turn.position, f"{REPEATS + 1} turns in a row are nearly the same words"
            )
            return


def _repeats(before: str, text: str) -> bool:
    """Whether a turn adds nothing to the one before: it is neither much longer nor shorter, and names no other number."""
    if facts.ERASED in {before, text} or _LENGTHS * min(len(before), len(text)) < max(len(before), len(text)):
        return False
    return likeness(before, text) >= ALIKE and _numbers(before) == _numbers(text)


def _adds(before: str, text: str) -> bool:
    return Counter(words_in(before)) < Counter(words_in(text))


def _numbers(text: str) -> list[str]:
    return sorted(word for word in words_in(text) if any(letter.isdigit() for letter in word))


def duplicate_message(seen: Seen) -> Iterator[Smell]:
    """Find a message that the same one has sent to the same session before, a moment ago."""
    asked = next((recorded for recorded in seen.events if _asks(recorded) is not None), None)
    message = None if asked is None else _asks(asked)
    if asked is None or message is None:
        return
    said = words_in(facts.text_of(message))
    if count_of(said) < WORDS_OF_A_MESSAGE:
        return
    for earlier in reversed(seen.earlier):
        other = _asks(earlier)
        if (
            other is not None
            and earlier.stream == asked.stream
            and other.id != message.id
            and asked.time - earlier.time <= TWICE_WITHIN_MS
            and _sender(other) == _sender(message)
            and words_in(facts.text_of(other)) == said
        ):
            seconds = (asked.time - earlier.time) // 1000
            yield Smell(
                "duplicate_message",
                asked.position,
                f"the same message came {seconds} s before, at #{earlier.position}",
            )
            return


def tokens_growing(seen: Seen) -> Iterator[Smell]:
    """Find turns that each use much more than the one before."""
    turns = [turn for turn in _turns(seen) if turn.tokens]
    grown = 0
    for before, turn in pairwise(turns):
        grown = grown + 1 if turn.tokens >= GROWS_BY * before.tokens else 0
        if grown == GROWS_FOR:
            first = turns[turns.index(turn) - GROWS_FOR]
            text = f"from {first.tokens} to {turn.tokens} tokens in {GROWS_FOR + 1} turns"
            yield Smell("tokens_growing", turn.position, text)
            return


def _turns(seen: Seen) -> Iterator[_Turn]:
    for recorded in seen.events:
        match recorded.event:
            case facts.TurnEnded(text=str() as text, usage=usage):
                yield _Turn(recorded.position, text, usage.tokens if usage is not None else 0)
            case _:
                pass


def _asks(recorded: Recorded) -> facts.Message | None:
    message = facts.message_in(recorded.event)
    if message is None or message.role != "user":
        return None
    origin = message.provenance
    is_systems = is_openclaws(message) or (origin is not None and origin.kind == "internal_system")
    return None if is_systems else message


def _sender(message: facts.Message) -> tuple[str | None, ...]:
    origin = message.provenance
    if origin is None:
        return ()
    return (origin.kind, origin.source_session_key, origin.source_channel, origin.sender)

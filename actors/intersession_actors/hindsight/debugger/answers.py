"""The parts of answers that all verbs of the debugger share. Each verb's own answers stand beside it."""

from typing import TypedDict

import msgspec

from intersession_projections.questions.places.described import Described


class PlaceAnswer(TypedDict):
    """A place. `eventId` and `timeMs` (ms since 1970) are those of the event before it; None before the first.

    `text` says it in words of ours alone: nothing in it was said by anybody.
    """

    position: int
    eventId: str | None
    timeMs: int | None
    text: str


def place_answer(described: Described) -> PlaceAnswer:
    """Return a place in the form of answers."""
    answer: PlaceAnswer = msgspec.to_builtins(described)
    return answer

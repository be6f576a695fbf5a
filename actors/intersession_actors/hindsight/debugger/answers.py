"""What every verb of the debugger shares in its answers. Each verb's own answers stand beside it."""

from typing import TypedDict

import msgspec

from intersession_projections.questions.places.described import Described


class PlaceAnswer(TypedDict):
    """A place. `eventId` and `timeMs` (ms since 1970) are those of the event it is after; None before the first.

    `text` says it in words of ours alone: nothing in it was said by anybody.
    """

    position: int
    eventId: str | None
    timeMs: int | None
    text: str


def place_answer(described: Described) -> PlaceAnswer:
    """Return a place as an answer has it."""
    answer: PlaceAnswer = msgspec.to_builtins(described)
    return answer

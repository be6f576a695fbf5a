"""One beat of a story: somebody says something to somebody, or something happens, and what led to it."""

import msgspec

from intersession_events.facts import message_in
from intersession_events.log import Recorded
from intersession_projections.wording import OPENCLAW, Kind, Words, is_openclaws


class Beat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is told, and where it stands in the log. `cause` is the position of the beat that led to it, if one did.

    `writer` is whose words they are where `who`, as an imported transcript has it, did not say them.
    """

    position: int
    time: int
    kind: Kind
    how: str
    who: str | None = None
    to: str | None = None
    text: str | None = None
    cause: int | None = None
    writer: str | None = None


def beat_of(words: Words, recorded: Recorded, cause: int | None) -> Beat:
    """Return what is told of an event in its place."""
    message = message_in(recorded.event)
    is_its_own = message is not None and is_openclaws(message)
    return Beat(
        position=recorded.position,
        time=recorded.time,
        kind=words.kind,
        how=words.how,
        who=words.who,
        to=words.to,
        text=words.text,
        cause=cause,
        writer=OPENCLAW if is_its_own else None,
    )

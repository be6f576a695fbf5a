"""What is found that goes: each event with its words, what it is counted as, and what stays and is named. For `words_to_erase`."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from intersession_events.facts import (
    AccessRecorded,
    DeliveryDecided,
    LineImported,
    NotePinned,
    RunStarted,
    files_in,
    message_in,
)
from intersession_events.log.erasing import left_of
from intersession_events.log.recorded import Recorded
from intersession_projections.copies.text_copies import Copies, said_in
from intersession_projections.copies.whose_words import Person

_MOST_NAMED: Final = 20

WordsKind = Literal[
    "messages", "toolResults", "thinking", "deliveries", "receipts", "notes", "imported", "other"
]
"""What events with words are counted as."""


class Words(NamedTuple):
    """An event with texts, by its stream and version, and the digest of what is left of it without them; of `thinking` that alone goes."""

    stream: str
    version: int
    left: str
    files: tuple[str, ...] = ()
    """The SHA-256 of the files that it names."""
    kind: WordsKind = "other"
    is_copy: bool = False
    """Whether it is somebody else's, with a copy in it."""


class Found:
    """The events of a session, and their texts. With single messages only their own texts count.

    Of a `person`, what others said stays though they were told it: what begins or cuts short a text is a copy of it if the person said that.
    """

    def __init__(self, copies: Copies, *, everything: bool = True, person: Person | None = None) -> None:
        self.positions: set[int] = set()
        self.copies = copies
        self.told_to: dict[str, None] = {}
        self.spawns: set[str] = set()
        self._everything = everything
        self._person = person

    def noting(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """Yield events that are new here, and note what they say."""
        for recorded in events:
            if recorded.position not in self.positions:
                self.positions.add(recorded.position)
                event = recorded.event
                if self._everything:
                    whole = self._person is not None and not self._person.said(event)
                    self.copies.note(said_in(event), whole=whole)
                if recorded.stream.startswith("spawn:"):
                    self.spawns.add(recorded.stream)
                if isinstance(event, DeliveryDecided):
                    self.told_to[f"channel {event.route.channel}"] = None
                elif isinstance(event, RunStarted) and event.model is not None:
                    self.told_to[f"model {event.model}"] = None
                yield recorded


def with_words(events: Iterable[Recorded]) -> Iterator[Words]:
    """Yield those that have words, as they are erased."""
    for recorded in events:
        left = left_of(recorded)
        if left is not None:
            yield erasable(recorded, left)


def erasable(recorded: Recorded, left: str, *, is_copy: bool = False) -> Words:
    """Return an event as it is erased."""
    files = tuple(file.sha256 for file in files_in(recorded.event))
    return Words(recorded.stream, recorded.version, left, files, _kind(recorded), is_copy)


def thinking_of(recorded: Recorded) -> Words:
    """Return an event whose thinking is erased, and nothing else."""
    return Words(recorded.stream, recorded.version, recorded.digest, kind="thinking")


def _kind(recorded: Recorded) -> WordsKind:
    message = message_in(recorded.event)
    if message is not None:
        return "toolResults" if message.role == "toolResult" else "messages"
    match recorded.event:
        case LineImported():
            return "imported"
        case AccessRecorded():
            return "receipts"
        case NotePinned():
            return "notes"
        case DeliveryDecided():
            return "deliveries"
        case _:
            return "other"


class Staying:
    """What stays, and is named: by what it is, the places where it stands."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, int]] = {}

    def note(self, what: str, where: str, position: int) -> None:
        """Note a place, the last of each stream."""
        self._places.setdefault(what, {})[where] = position

    def in_words(self) -> Iterator[str]:
        """Yield it in words, with the first places."""
        for what, places in self._places.items():
            some = [f"{where} (#{position})" for where, position in list(places.items())[:_MOST_NAMED]]
            more = f" and {len(places) - len(some)} more" if len(places) > len(some) else ""
            yield f"{what}: {', '.join(some)}{more}"

"""The last messages of a transcript in memory, and the transcript as an agent reads it: earlier messages are read from the log.

A transcript only ever grows at its end. So one list serves every run of a session: each run's transcript is its beginning, up to
the message that was the last one then. The window's owner may drop its oldest messages at any time.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import eq
from typing import Final, NamedTuple, cast, overload

from intersession_actors.rules.prompt.fitting import tokens_of
from intersession_events.facts import Message

PAGE: Final = 256
"""A message that is not at hand is read with its neighbours."""

Earlier = Callable[["Window", int, int], Iterator[Message]]
"""Reads messages of a window's transcript from the log, from the first number up to, but without, the second."""


def nothing_earlier(window: "Window", start: int, stop: int) -> Iterator[Message]:
    """Stands in for a reader when all messages are in memory.

    Raises:
        LookupError: they are not.
    """
    raise LookupError(f"messages {start} to {stop} of {window.end} are not at hand, and nobody reads the log")


class _CachedMessages(NamedTuple):
    """Messages from one number on, with the bytes that each has as JSON, and the tokens that it has at most."""

    start: int
    messages: list[Message]
    sizes: list[int]
    tokens: list[int]


class Window:
    """The last messages of one session id's transcript; it drops the oldest when they exceed `room` bytes.

    One thread at a time changes it; any thread reads it.
    """

    __slots__ = ("_earlier", "_kept", "_room", "began", "size")

    def __init__(
        self, began: int, *, start: int = 0, room: int | None = None, earlier: Earlier = nothing_earlier
    ) -> None:
        self.began: Final = began
        """The version of the stream's event with which the session id began."""
        self.size = 0
        """The bytes of what is at hand, as JSON."""
        self._earlier = earlier
        self._room = room
        self._kept = _CachedMessages(start, [], [], [])

    @property
    def start(self) -> int:
        """The number of the first message in memory."""
        return self._kept.start

    @property
    def end(self) -> int:
        """How many messages the transcript has."""
        kept = self._kept
        return kept.start + len(kept.messages)

    def add(self, message: Message, size: int, tokens: int) -> None:
        """Add the next message, with its size in bytes as JSON, and the most tokens it can have."""
        kept = self._kept
        kept.tokens.append(tokens)
        kept.sizes.append(size)
        kept.messages.append(message)
        self.size += size
        if self._room is not None and self.size > self._room:
            self.shrink(self._room * 3 // 4)  # not one by one: each time the rest is copied

    def shrink(self, room: int) -> None:
        """Drop the oldest messages, until the rest fits the limit of bytes."""
        start, messages, sizes, tokens = self._kept
        gone = 0
        while gone < len(messages) and self.size > room:
            self.size -= sizes[gone]
            gone += 1
        # A reader may be at the old list: it is left as it is.
        self._kept = _CachedMessages(start + gone, messages[gone:], sizes[gone:], tokens[gone:])

    def end_at(self, end: int) -> None:
        """Remove the messages that were added last, down to an earlier count."""
        start, messages, sizes, tokens = self._kept
        if start + len(messages) == end:
            return
        left = max(end - start, 0)
        self.size -= sum(sizes[left:])
        # In place, since no reader goes that far: a transcript that was given out meanwhile is read once they are there again.
        for one in (messages, sizes, tokens):
            del one[left:]
        if start > end:
            self._kept = _CachedMessages(end, messages, sizes, tokens)

    def put_before(self, messages: Sequence[Message], sizes: Sequence[int]) -> bool:
        """Put back the messages right before those in memory, if there is room for them."""
        size = sum(sizes)
        if self._room is not None and self.size + size > self._room:
            return False
        kept = self._kept
        self.size += size
        self._kept = _CachedMessages(
            kept.start - len(messages),
            [*messages, *kept.messages],
            [*sizes, *kept.sizes],
            [*map(tokens_of, messages), *kept.tokens],
        )
        return True

    def take_out(self) -> tuple[int, list[Message], list[int]]:
        """Return and drop the messages in memory, with the number of the first one and the size of each."""
        start, messages, sizes, _ = self._kept
        self.size = 0
        self._kept = _CachedMessages(self.end, [], [], [])
        return start, messages, sizes

    def between(self, first: int, stop: int) -> Iterator[Message]:
        """Yield messages by their numbers, `first <= number < stop`: first those from the log, then those in memory."""
        start, messages = self.at_hand(stop)
        if first < start:
            yield from self._earlier(self, first, min(start, stop))
        yield from islice(messages, max(first - start, 0), None)

    def at_hand(self, end: int) -> tuple[int, list[Message]]:
        """Return the number of the first message in memory, and the messages from there up to an end, not to be changed."""
        start, messages, _, _ = self._kept
        return start, messages[: max(end - start, 0)]

    def tokens_at_hand(self, end: int) -> tuple[int, list[int]]:
        """Return the number of the first message in memory, and the most tokens of each from there up to an end."""
        start, _, _, tokens = self._kept
        return start, tokens[: max(end - start, 0)]

    def one(self, number: int) -> Message | None:
        """Return a message by its number, if it is in memory."""
        start, messages, _, _ = self._kept
        return messages[number - start] if number >= start else None

    def transcript(self) -> "Transcript":
        """Return the transcript as it is now; later messages are not part of it."""
        return Transcript(self, self.end)


class Transcript(Sequence[Message]):
    """The messages of a session before a message, oldest first. Long transcripts are read from the log as they are accessed.

    It is equal to any sequence of the same messages.
    """

    __slots__ = ("_end", "_page", "_window")

    def __init__(self, window: Window, end: int) -> None:
        self._window = window
        self._end = end
        self._page: tuple[int, tuple[Message, ...]] = (0, ())

    def __len__(self) -> int:
        """Return how many messages there are."""
        return self._end

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages, oldest first."""
        return self._window.between(0, self._end)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        """Return a message, or some of them."""
        if isinstance(index, int):
            number = index + self._end if index < 0 else index
            if not 0 <= number < self._end:
                raise IndexError(f"message {index} of {self._end}")
            return self._window.one(number) or self._read(number)
        wanted = range(self._end)[index]
        if not wanted:
            return ()
        first, last = min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1])
        found = tuple(self._window.between(first, last + 1))
        return found if wanted.step == 1 else tuple(found[number - first] for number in wanted)

    def tokens_at_hand(self) -> tuple[int, list[int]]:
        """Return the number of the first message in memory, and the most tokens of each from there on."""
        return self._window.tokens_at_hand(self._end)

    @property
    def began(self) -> int:
        """The version of the event that began the session id: of two transcripts of one id, the shorter is the beginning of the longer."""
        return self._window.began

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has the same messages."""
        if not isinstance(other, Sequence):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(map(eq, self, others))

    __hash__ = None  # type: ignore[assignment]  # as of a list: it is compared by its messages

    def __repr__(self) -> str:
        """Return how long it is; the messages are not read for that."""
        return f"<Transcript of {self._end} messages>"

    def _read(self, number: int) -> Message:
        """Return an earlier message; its neighbours are kept, for reading on in either direction."""
        first, page = self._page
        if not first <= number < first + len(page):
            first = number // PAGE * PAGE
            page = tuple(self._window.between(first, min(first + PAGE, self._end)))
            self._page = (first, page)
        return page[number - first]

"""What a channel is, its input and its possible answers; and two simple channels, console and memory."""

import inspect
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TextIO, cast

from intersession_actors.outside.attachments.stored import StoredFile
from intersession_actors.rules.gate.shapes import flaw_of_call
from intersession_actors.running.host.actors import HostActor, is_host_actor
from intersession_actors.running.host.calls import is_async
from intersession_events.basics.errors import IntersessionError
from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.basics.printable import printable
from intersession_events.facts import Fact, ready

LONGEST_PAUSE_S: Final = 86_400.0

Deliver = Callable[["Outbound"], object]
"""Takes a text out, sync or async; returns a receipt, `None | str | dict` (the dict must be JSON)."""


class DeliveryRefused(IntersessionError):
    """Raised by a channel: it will never take this text there, so don't retry."""


class DeliveryInDoubt(IntersessionError):
    """Raised by a channel: it may have taken this text, so only an idempotent channel is called again."""


class DeliveryLater(IntersessionError):
    """Raised by a channel: it did not take this text, and must not be called for `seconds`.

    The text is tried again then; within a second is a second. `reason` is what the log says of it. The texts to its chat wait
    behind it; with `whole_channel` the service means all chats, and the channel is called for none of them (ANN-8).

    Raises:
        ValueError: `seconds` is no time: not a number, infinite, or less than 0.
    """

    def __init__(self, seconds: float, reason: str = "", *, whole_channel: bool = False) -> None:
        given = cast("object", seconds)  # whatever the host's code gives
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError(f"seconds: {seconds!r} is no number of seconds")  # noqa: TRY004 - one error for all invalid values
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"seconds: {seconds!r} is no time to wait, give 0 or more")
        self.seconds = float(seconds)
        self.whole_channel = whole_channel
        super().__init__(f"{reason or 'the service asks'}: again in {seconds:g} s")


class Outbound(Fact, frozen=True, kw_only=True):
    """A text for a channel. `key` is the same on every attempt: a channel that knows the key has shown the text.

    `files` go with the text, or with the last part of it; then the text may be empty (FILE-6). `number` counts the texts to this
    place, from 1, in the order in which they were decided (ANN-7): one that is left out was forbidden or given up. None where it is
    not known.

    For `Channel.edit`, `receipt` is what `deliver` returned for the message that is to have this text now. `unfinished`: the
    agent is still saying it, and an edit will follow (STREAM-5).
    """

    channel: str
    to: str
    text: str
    key: str
    thread: str | None = None
    account: str | None = None
    files: tuple[StoredFile, ...] = ()
    number: int | None = None
    receipt: JsonValue = None
    unfinished: bool = False


@ready
class ThreadWanted(Fact, frozen=True, kw_only=True):
    """A request for a thread on a channel, for a session of its own (SPAWN-12). `key` as in `Outbound`."""

    channel: str
    to: str
    title: str
    key: str
    account: str | None = None


@dataclass(kw_only=True)
class Channel:
    """A channel as a host registers it. A bare callable means all defaults.

    `deliver` takes an `Outbound`; a Pykka actor gets it as its message. `idempotent`: it shows a text once, however
    often it gets its key, so that it may be called again when it is in doubt. `threads` opens a thread for a
    `ThreadWanted` and returns its id. `escape` makes a text harmless in the channel's markup; `max_chars` is the
    longest it takes, after that: longer ones go out in parts.

    `edit` gives a message that `deliver` has sent another text. With it an answer that is said in pieces is shown while it is said,
    with at least `edit_every` seconds between two edits (STREAM-5). It raises `DeliveryRefused` where the message can't be edited
    any more. It is async if `deliver` is.
    """

    deliver: Deliver | HostActor
    idempotent: bool = False
    threads: Callable[[ThreadWanted], object] | None = None
    escape: Callable[[str], str] | None = None
    max_chars: int | None = None
    edit: Deliver | None = None
    edit_every: float = 1.0


AnyChannel = Channel | Deliver | HostActor


def as_channel(channel: AnyChannel) -> Channel:
    """Return a channel; a bare function gets all defaults.

    Raises:
        TypeError: it is neither a `Channel`, nor callable, nor a Pykka actor; or calling it runs nothing; or one of its functions
            takes something else than the one argument that it is called with.
    """
    if isinstance(channel, Channel):
        return _checked(channel)
    if is_host_actor(channel):
        return Channel(deliver=channel)
    if callable(channel) and not isinstance(channel, type):
        return _checked(Channel(deliver=channel))
    raise TypeError(
        f"{channel!r} is no channel, give a Channel, a function `deliver(outbound)`, sync or async, or a Pykka actor's ref"
    )


def _checked(channel: Channel) -> Channel:
    """Check that a call does something: otherwise an unsent text would count as delivered.

    Raises:
        TypeError: it would not, or can't be called as it will be, or `max_chars` is no number of characters.
    """
    most = cast("object", channel.max_chars)  # whatever the host's code gives
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise TypeError(
            f"max_chars={most!r} is no number of characters: give 1 or more, or None for no limit"
        )
    _check_edits(channel)
    called = (
        (channel.deliver, "outbound"),
        (channel.threads, "wanted"),
        (channel.escape, "text"),
        (channel.edit, "outbound"),
    )
    for function, name in called:
        if function is None or is_host_actor(function):
            continue
        flaw = flaw_of_call(function, name) if callable(function) else f"{function!r} can't be called"
        if flaw is not None:
            raise TypeError(flaw)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function!r} is a generator, and calling it sends nothing: return what it yields, or take the yield out"
            )
    return channel


def with_lines(text: str, files: Sequence[StoredFile]) -> str:
    """Return a text with a line for each file that goes with it, for a channel that shows texts alone."""
    lines = [f"[file: {file.name} ({file.mime_type}, {file.size} bytes)]" for file in files]
    return "\n".join((*([text] if text else []), *lines))


def _check_edits(channel: Channel) -> None:
    every = cast("object", channel.edit_every)
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every <= LONGEST_PAUSE_S:
        raise TypeError(f"edit_every={every!r} is no number of seconds: give 0 to {LONGEST_PAUSE_S:g}")
    deliver, edit = channel.deliver, channel.edit
    if edit is not None and callable(edit) and is_async(edit) != (callable(deliver) and is_async(deliver)):
        raise TypeError("edit and deliver are not of a kind: make both async, or neither")


def console_channel(stream: TextIO | None = None) -> Channel:
    """Make a channel that prints, to standard output unless told otherwise. Control characters are shown, not obeyed."""

    def deliver(outbound: Outbound) -> None:
        out = stream or sys.stdout
        address = outbound.to if outbound.thread is None else f"{outbound.to}#{outbound.thread}"
        # What follows a line break is indented: no text can imitate a line of another delivery.
        text = f"[{outbound.channel} {address}] {with_lines(outbound.text, outbound.files)}".replace(
            "\n", "\n    "
        )
        encoding = getattr(out, "encoding", None) or "utf-8"
        out.write(printable(text).encode(encoding, "backslashreplace").decode(encoding) + "\n")
        out.flush()

    return Channel(deliver=deliver)


class MemoryChannel(Channel):
    """A channel in memory: `delivered` is every call, `shown` what a person would have seen."""

    def __init__(self, *, idempotent: bool = False, max_chars: int | None = None) -> None:
        super().__init__(deliver=self._take, idempotent=idempotent, max_chars=max_chars)
        self._changed = threading.Condition()
        self._delivered: list[Outbound] = []
        self._calls: Counter[str] = Counter()

    def count(self, key: str) -> int:
        """Return how often a key was delivered."""
        with self._changed:
            return self._calls[key]

    @property
    def delivered(self) -> tuple[Outbound, ...]:
        """Every call, in order."""
        with self._changed:
            return tuple(self._delivered)

    @property
    def shown(self) -> tuple[Outbound, ...]:
        """The shown texts: with `idempotent` each key once."""
        if not self.idempotent:
            return self.delivered
        first: dict[str, Outbound] = {}
        for outbound in self.delivered:
            first.setdefault(outbound.key, outbound)
        return tuple(first.values())

    def wait_for(self, number: int, *, timeout: float) -> tuple[Outbound, ...]:
        """Wait until there were this many calls, at most `timeout` seconds; return the calls."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._delivered) >= number, timeout)
            return tuple(self._delivered)

    def _take(self, outbound: Outbound) -> JsonObject:
        with self._changed:
            self._delivered.append(outbound)
            self._calls[outbound.key] += 1
            self._changed.notify_all()
            return {"number": len(self._delivered)}

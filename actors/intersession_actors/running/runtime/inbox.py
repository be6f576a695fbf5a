"""An actor's inbox: bounded, and closed under its lock.

Pykka's own queue is unbounded, and what is put into it while its actor stops is never answered. This one
knows whether its actor is there: a message is either taken in and will be handled, handed back or refused,
or the sender learns at once that there is nobody any more.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeAlias

import pykka
from pykka import messages
from pykka._envelope import Envelope

from intersession_events.basics.errors import IntersessionError

Mail: TypeAlias = Envelope[Any]  # a message of any kind: its actor says which it takes
"""A message and, where somebody waits for it, the future of its answer."""

# Pykka's word for "no more after this", which has no public name.
Stop: Final = messages._ActorStop  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class InboxFull(IntersessionError):
    """The actor's inbox is full (`busy`). The message was not taken; try again later."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(f"{name} is busy: {limit} messages are waiting already; try again later")
        self.name = name
        self.limit = limit


class Inbox:
    """The mail of one actor, in order of arrival.

    `wake` is called, outside the lock, whenever mail arrives for an actor that is asleep: it has looked and
    found nothing. From then on it counts as awake, until it looks again and finds nothing.
    """

    __slots__ = ("_awake", "_closed", "_lock", "_mail", "_stop", "current", "limit", "name", "wake")

    def __init__(self) -> None:
        self.name = "actor"
        self.limit: int | None = None
        self.wake: Callable[[], None] = _nobody
        self.current: Mail | None = None
        """The message being handled. Taking over its answer sets its `reply_to` to None."""
        self._lock = Lock()
        # An idle actor has none: an empty deque alone would be a quarter of its memory.
        self._mail: deque[Mail] | None = None
        self._stop: Mail | None = None
        self._awake = False
        self._closed = False

    def put(self, envelope: Mail, *, urgent: bool = False) -> None:
        """Add a message; `urgent` passes the bound, and is taken even by an actor that is about to stop.

        A stop closes the inbox to everything behind it but urgent messages.

        Raises:
            pykka.ActorDeadError: the actor is stopping, stopped, asleep for good or failed.
            InboxFull: as many as `limit` messages are waiting.

            Where somebody waits for an answer, the same error is the answer instead.
        """
        refusal: Exception | None = None
        wake = False
        with self._lock:
            if self._closed or (self._stop is not None and not urgent):
                refusal = pykka.ActorDeadError(f"{self.name} has stopped and takes no more messages")
            elif isinstance(envelope.message, Stop):
                self._stop = envelope
                wake = not self._awake
                self._awake = True
            elif self.limit is not None and not urgent and self._waiting() >= self.limit:
                refusal = InboxFull(self.name, self.limit)
            else:
                if self._mail is None:
                    self._mail = deque()
                self._mail.append(envelope)
                wake = not self._awake
                self._awake = True
        if wake:
            self.wake()
        if refusal is not None:
            if envelope.reply_to is None:
                raise refusal
            refuse(envelope, refusal)

    def take(self) -> Mail | None:
        """Return the next message and make it `current`; None puts the actor to sleep until a message arrives.

        A stop comes out last.
        """
        with self._lock:
            self.current = self._mail.popleft() if self._mail else self._last()
            return self.current

    def _last(self) -> Mail | None:
        """Return the stop, behind all else, or fall asleep; under the lock."""
        last, self._stop = self._stop, None
        self._closed = self._closed or last is not None
        if last is None:
            self._mail, self._awake = None, False
        return last

    def handle(
        self, each: Callable[[object], object], monotonic: Callable[[], float], *, over: float, most: int
    ) -> bool:
        """Have up to `most` messages handled, until a time is `over`; return whether there may be more."""
        for _ in range(most):
            # As in `take`, without a call for each message.
            with self._lock:
                envelope = self.current = self._mail.popleft() if self._mail else self._last()
            if envelope is None:
                return False  # so it is when it has stopped, too: then nothing is taken in any more
            answer = each(envelope.message)
            if envelope.reply_to is not None:
                envelope.reply_to.set(answer)
            if monotonic() >= over:
                break
        return True

    def get(self) -> Mail:
        """Return the next message: Pykka's form of `take`, for an actor that is known to have one."""
        envelope = self.take()
        if envelope is None:
            raise LookupError(f"{self.name} has no mail")
        return envelope

    def empty(self) -> bool:
        """Return whether it is empty, for Pykka."""
        with self._lock:
            return self._waiting() == 0 and self._stop is None

    def rouse(self) -> None:
        """Wake the actor without a message: for its very first turn."""
        with self._lock:
            self._awake = True
        self.wake()

    def close_if_idle(self, *, from_inside: bool) -> bool:
        """Close for good if no message waits or (seen from outside) is being handled; return whether."""
        with self._lock:
            if self._closed:
                return False
            if self._waiting() or self._stop is not None or (self._awake and not from_inside):
                return False
            self._closed = True
            self._stop = a_stop()
            wake = not self._awake
            self._awake = True
        if wake:
            self.wake()
        return True

    def close_and_empty(self) -> tuple[Mail, ...]:
        """Close for good and return all messages that were not begun, in order. A requested stop is answered."""
        with self._lock:
            self._closed = True
            left = tuple(self._mail or ())
            stop, self._stop, self._mail = self._stop, None, None
        if stop is not None and stop.reply_to is not None:
            stop.reply_to.set(None)
        return left

    @property
    def is_open(self) -> bool:
        """Whether an ordinary message would be taken, apart from the bound."""
        with self._lock:
            return not self._closed and self._stop is None

    def _waiting(self) -> int:
        return len(self._mail or ())


def a_stop(reply_to: pykka.Future[object] | None = None) -> Mail:
    """Return Pykka's message that stops an actor."""
    return Envelope(Stop(), reply_to)


def refuse(envelope: Mail, error: Exception) -> None:
    """Answer a message with an error, if a caller waits for its answer."""
    if envelope.reply_to is not None:
        envelope.reply_to.set_exception((type(error), error, None))


def _nobody() -> None:
    """Do nothing: there is no actor to wake yet."""

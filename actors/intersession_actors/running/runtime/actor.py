"""The base of all our actors: a Pykka actor that any runtime can run, and whose failure stays its own.

A handler says what is done with a message. Which thread it is done on is the runtime's business
(`runtime.py`, `pool.py`): it supplies the hooks that Pykka leaves to actor types.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, cast
from weakref import WeakSet

import pykka
from pykka._envelope import Envelope
from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr

from intersession_actors.running.runtime.inbox import Inbox, Mail, Stop, a_stop, refuse
from intersession_actors.running.runtime.reply import ReplyFuture, handled_here, here
from intersession_events.basics.errors import IntersessionError

logger = logging.getLogger("intersession.actors")

_PYKKAS_OWN: Final = frozenset((Stop, ProxyCall, ProxyGetAttr, ProxySetAttr))
"""The messages that Pykka handles itself."""


SLOW_S: Final = 0.05
"""A handler decides and hands on, which takes a millisecond or two; all actors of a host wait for one that takes longer."""


class HandlerFailed(IntersessionError):
    """The actor failed while it handled the message; the log tells whether it had an effect."""


class Ref:
    """The address of an actor of this process, on either runtime. It keeps the actor alive."""

    __slots__ = ("_actor",)

    def __init__(self, actor: "Handler") -> None:
        self._actor = actor

    @property
    def name(self) -> str:
        """The actor's name in messages to people."""
        return self._actor.actor_inbox.name

    def tell(self, message: object, *, urgent: bool = False) -> None:
        """Send a message to the actor without waiting.

        `urgent` is for what the system itself sends and must not lose (an append's outcome, a run's result, a
        timer): it passes the bound of the inbox, and an actor that is about to stop still takes it. It does
        not overtake.

        Raises:
            pykka.ActorDeadError: there is no such actor any more.
            InboxFull: it has as many messages waiting as it may have.
        """
        self._actor.actor_inbox.put(Envelope(message), urgent=urgent)

    def ask(self, message: object) -> ReplyFuture:
        """Send a message to the actor and return the future of its answer. For doors; errors of `tell` are answers."""
        reply = self._actor.answer_to_come()
        self._actor.actor_inbox.put(Envelope(message, reply))
        return reply

    def stop(self) -> None:
        """Stop after the queued messages, and take no more. Never blocks; may be called again."""
        # An answer to come makes a refusal an answer: it had stopped already.
        self._actor.actor_inbox.put(a_stop(ReplyFuture()))

    def close_if_idle(self) -> bool:
        """Stop the actor if nothing waits for it, and return whether.

        Inside its own handler the message at hand does not count. From then on `tell` raises
        `ActorDeadError`, so that whoever keeps the addresses starts another one.
        """
        return self._actor.actor_inbox.close_if_idle(from_inside=handled_here() is self._actor)

    def is_alive(self) -> bool:
        """Return whether it would take a message now, apart from the bound."""
        return self._actor.actor_inbox.is_open

    @property
    def actor_ref(self) -> "pykka.ActorRef[Handler]":
        """Pykka's own address of this actor, for a host that uses Pykka. It does not keep the actor alive."""
        return self._actor.actor_ref

    def abandon(self) -> None:
        """End the actor without another turn; for a runtime whose timeout is over."""
        self._actor.abandon()

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Failure(NamedTuple):
    """An actor's end by an error: the error, its current message, and the messages that it had not begun.

    `message` is None when it failed before its first one. Whoever is told answers `left`: hands it on or refuses it
    (`refuse_all`).
    """

    ref: Ref
    error: BaseException
    message: object
    left: tuple[Mail, ...]


OnFailure = Callable[[Failure], None]


def refuse_all(left: tuple[Mail, ...], error: Exception) -> None:
    """Answer unhandled messages with an error, where a caller waits for an answer."""
    for envelope in left:
        refuse(envelope, error)


class Flag(threading.Event):
    """Whether an actor has stopped: Pykka's `Event` in a third of its memory, for idle actors.

    Nobody can wait for it; a runtime's `stop` waits.
    """

    _up = False

    def __init__(self) -> None:
        # An Event's condition, lock and queue of waiters are what is saved here.
        pass

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._up

    def set(self) -> None:
        """Set it, for good."""
        self._up = True

    def wait(self, timeout: float | None = None) -> bool:
        """Refuse: it can't be waited on."""
        raise NotImplementedError(
            f"nobody can wait {timeout} s for an actor's flag; stop its runtime and wait there"
        )


class Handler(pykka.Actor):
    """An actor of ours: implement `on_receive`, and `on_start`, `on_stop`, `failed` and `slow` as needed.

    What `on_receive` returns answers an `ask`; `take_reply` lets the answer come later. Whatever it raises,
    SystemExit included, ends this actor and nothing else: its runtime reports the `Failure`.
    """

    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    """The clock by which a handler that takes long is told of."""
    actor_inbox: Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - no other kind is made here

    _ref: Ref | None = None
    _on_failure: OnFailure | None = None
    _on_end: Callable[["Handler"], None] | None = None
    _owed: "WeakSet[ReplyFuture] | None" = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.actor_stopped = Flag()
        self._actor_ref.actor_stopped = self.actor_stopped

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    @staticmethod
    def _create_future() -> ReplyFuture:
        return ReplyFuture()

    @classmethod
    def answer_to_come(cls) -> ReplyFuture:
        """Return a future of the kind that the actor's runtime waits for."""
        return cls._create_future()

    def _start_actor_loop(self) -> None:
        raise RuntimeError(f"start it on a runtime: runtime.start({type(self).__name__}, ..., name=...)")

    def enter(self, ref: Ref, on_failure: OnFailure | None, on_end: Callable[["Handler"], None]) -> None:
        """Prepare the actor for its first turn; for runtimes, after the constructor."""
        self._ref = ref
        self._on_failure = on_failure
        self._on_end = on_end

    def failed(self, error: BaseException) -> None:
        """Clean up after an error that ends the actor."""

    def slow(self, message: object, seconds: float) -> None:
        """Hear that a message took its handler long: all actors of the pool had to wait."""

    def begin(self) -> None:
        """Start the loop; for runtimes. Pykka's own `start` would also put the actor into its registry."""
        self._start_actor_loop()

    @property
    def me(self) -> Ref:
        """The actor's own address, from `on_start` on: for callbacks."""
        if self._ref is None:
            raise RuntimeError("an actor has no address before it is started; use it from on_start on")
        return self._ref

    def take_reply(self) -> ReplyFuture | None:
        """Take over answering the current message; None if no caller waits for an answer.

        For an answer that is known only after an append. Should this actor end without giving it, the asker
        is told so.
        """
        current = self.actor_inbox.current
        if current is None or current.reply_to is None:
            return None
        reply = cast("ReplyFuture", current.reply_to)
        current.reply_to = None
        if self._owed is None:
            self._owed = WeakSet()
        self._owed.add(reply)
        return reply

    def abandon(self) -> None:
        """End without another turn and refuse the queued messages; for a runtime whose timeout is over."""
        left = self.actor_inbox.close_and_empty()
        self.actor_stopped.set()
        error = pykka.ActorDeadError(f"{self} was stopped before it handled the message")
        refuse_all(left, error)
        self._end(error)

    def _actor_loop_setup(self) -> None:
        here.actor = self
        try:
            self.on_start()
        except BaseException as error:  # noqa: BLE001 - nothing that an actor raises may stop another
            self._fail(error, None)
        finally:
            here.actor = None

    def _handle_receive(self, message: object) -> object:
        here.actor = self
        began = self.monotonic()
        try:
            if type(message) in _PYKKAS_OWN:
                return super()._handle_receive(message)
            return self.on_receive(message)
        except BaseException as error:  # noqa: BLE001 - nothing that an actor raises may stop another
            self._fail(error, message)
            return None
        finally:
            here.actor = None
            took = self.monotonic() - began
            if took >= SLOW_S:
                self.slow(message, took)

    def _stop(self) -> None:
        # Pykka's own also looks through its registry, a list, in which we are not.
        self.actor_stopped.set()
        try:
            self.on_stop()
        except BaseException:
            logger.exception("%s failed while it stopped", self)
        self._end(pykka.ActorDeadError(f"{self} stopped before it answered"))

    def _fail(self, error: BaseException, message: object) -> None:
        try:
            self.failed(error)
        except BaseException:
            logger.exception("%s failed while it ended", self)
        current = self.actor_inbox.current
        left = self.actor_inbox.close_and_empty()
        self.actor_stopped.set()
        if current is not None and current.reply_to is not None:
            reply, current.reply_to = current.reply_to, None
            reply.set_exception(
                (type(error), error, error.__traceback__)
                if isinstance(error, Exception)
                else _exc_info(HandlerFailed(f"{self} failed: {error!r}"))
            )
        self._end(HandlerFailed(f"{self} failed before it answered: {error!r}"))
        try:
            if self._on_failure is not None:
                self._on_failure(Failure(self.me, error, message, left))
                return
        except BaseException:
            logger.exception("the failure of %s could not be reported", self)
        refuse_all(left, pykka.ActorDeadError(f"{self} failed before it handled the message: {error!r}"))

    def _end(self, why: Exception) -> None:
        owed, self._owed = self._owed, None
        for reply in owed or ():
            # The answer may have been given from another thread just now.
            with suppress(queue.Full):
                reply.set_exception(_exc_info(why))
        if self._on_end is not None:
            self._on_end(self)

    def __str__(self) -> str:
        return self.actor_inbox.name


def _exc_info(error: Exception) -> tuple[type[Exception], Exception, None]:
    return type(error), error, None

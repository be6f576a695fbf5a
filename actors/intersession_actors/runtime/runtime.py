"""Where actors run: the contract of a runtime, the address it gives out, and the reference: a thread each."""

import threading
from functools import cache
from queue import SimpleQueue
from types import new_class
from typing import Protocol, cast

import pykka
from pykka._envelope import Envelope

from intersession_actors.runtime.actor import Handler, OnFailure, Ref, is_inside
from intersession_actors.runtime.inbox import Inbox, Mail, a_stop
from intersession_actors.runtime.reply import ReplyFuture, handled_here
from intersession_events.errors import IntersessionError

__all__ = ["ActorsOfARuntime", "Handler", "LocalRef", "Ref", "Runtime", "RuntimeStopped", "ThreadingRuntime"]


class RuntimeStopped(IntersessionError):
    """The runtime is stopping or stopped and starts no more actors."""


class Runtime(Protocol):
    """Something that runs actors. Actors know it only through this."""

    def start(
        self,
        handler_class: type[Handler],
        *args: object,
        name: str,
        inbox_limit: int | None = None,
        on_failure: OnFailure | None = None,
        **kwargs: object,
    ) -> Ref:
        """Make an actor of a handler and start it; `args` and `kwargs` are for its constructor.

        It takes at most `inbox_limit` ordinary messages at a time. `on_failure` is called once, from a thread
        of the runtime, when a handler has raised; without one, messages that were left are refused.

        Raises:
            RuntimeStopped: no more actors are started.
            Exception: whatever the constructor raises; then there is no actor.
        """
        ...

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop all actors, the last started first, and return the names of those that did not in `timeout` seconds.

        Each finishes the messages it has; what those that did not stop had not begun is refused.
        """
        ...


class LocalRef:
    """The address of an actor of this process, whichever runtime it is on. It keeps the actor alive."""

    __slots__ = ("_actor",)

    def __init__(self, actor: Handler) -> None:
        self._actor = actor

    @property
    def name(self) -> str:
        """What the actor is called in messages to people."""
        return self._actor.actor_inbox.name

    def tell(self, message: object, *, urgent: bool = False) -> None:
        """Give a message to the actor and go on (`Ref.tell`)."""
        self._actor.actor_inbox.put(Envelope(message), urgent=urgent)

    def ask(self, message: object) -> ReplyFuture:
        """Give a message to the actor and return the answer to come (`Ref.ask`)."""
        reply = ReplyFuture()
        self._actor.actor_inbox.put(Envelope(message, reply))
        return reply

    def stop(self) -> None:
        """Stop after the messages that are there (`Ref.stop`)."""
        # An answer to come makes a refusal an answer: it had stopped already.
        self._actor.actor_inbox.put(a_stop(ReplyFuture()))

    def close_if_idle(self) -> bool:
        """Put the actor to sleep for good if nothing waits for it (`Ref.close_if_idle`)."""
        return self._actor.actor_inbox.close_if_idle(from_inside=is_inside(self._actor))

    def is_alive(self) -> bool:
        """Say whether it would take a message now, the bound aside."""
        return self._actor.actor_inbox.is_open

    @property
    def actor_ref(self) -> pykka.ActorRef[Handler]:
        """Pykka's own address of this actor, for a host that speaks Pykka. It does not keep the actor alive."""
        return self._actor.actor_ref

    def abandon(self) -> None:
        """End the actor without another turn; for a runtime whose patience is over."""
        self._actor.abandon()

    def __repr__(self) -> str:
        return f"<{self.name}>"


class ActorsOfARuntime:
    """What all runtimes have in common: composing, starting, counting and stopping actors."""

    def __init__(self, base: type[pykka.Actor]) -> None:
        self._base = base
        self._changed = threading.Condition()
        self._live: dict[int, LocalRef] = {}
        self._stopping = False

    def start(
        self,
        handler_class: type[Handler],
        *args: object,
        name: str,
        inbox_limit: int | None = None,
        on_failure: OnFailure | None = None,
        **kwargs: object,
    ) -> Ref:
        """Make an actor of a handler and start it (`Runtime.start`)."""
        if not isinstance(handler_class, type):  # pyright: ignore[reportUnnecessaryIsInstance] - a factory is tempting
            raise TypeError(f"start takes the class of a handler and its arguments, not {handler_class!r}")
        actor = _composed(handler_class, self._base)(*args, **kwargs)
        ref = LocalRef(actor)
        actor.actor_inbox.name = name
        actor.actor_inbox.limit = inbox_limit
        self._prepare(actor)
        actor.enter(ref, on_failure, self._forget)
        with self._changed:
            if self._stopping:
                raise RuntimeStopped(f"{name} was not started: the runtime is stopping")
            self._live[id(actor)] = ref
        actor.begin()
        return ref

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop all actors, the last started first (`Runtime.stop`)."""
        with self._changed:
            self._stopping = True
            refs = list(self._live.values())
        for ref in reversed(refs):
            ref.stop()
        inside = handled_here() is not None
        with self._changed:
            self._changed.wait_for(lambda: not self._live, timeout=0 if inside else timeout)
            left = list(self._live.values())
        for ref in left:
            ref.abandon()
        return tuple(ref.name for ref in left)

    @property
    def live(self) -> int:
        """How many actors there are."""
        with self._changed:
            return len(self._live)

    def _prepare(self, actor: Handler) -> None:
        """Do what a kind of runtime needs before an actor's first turn."""

    def _forget(self, actor: Handler) -> None:
        with self._changed:
            self._live.pop(id(actor), None)
            if not self._live:
                self._changed.notify_all()


@cache
def _composed(handler_class: type[Handler], base: type[pykka.Actor]) -> type[Handler]:
    """Give a handler class the hooks of a runtime."""
    return cast("type[Handler]", new_class(handler_class.__name__, (base, handler_class)))


class WaitingInbox(Inbox):
    """An inbox whose actor has a thread of its own, which sleeps in `get`."""

    __slots__ = ("_bell",)

    def __init__(self) -> None:
        super().__init__()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self.wake = self._ring

    def get(self) -> Mail:
        """Return the next message; wait for one if there is none."""
        while (envelope := self.take()) is None:
            self._bell.get()
        return envelope

    def _ring(self) -> None:
        self._bell.put(None)


class OwnThreadActor(pykka.ThreadingActor):
    """Pykka's own actor type, with our inbox and futures."""

    use_daemon_thread = True

    @staticmethod
    def _create_actor_inbox() -> WaitingInbox:
        return WaitingInbox()

    @staticmethod
    def _create_future() -> ReplyFuture:
        return ReplyFuture()


class ThreadingRuntime(ActorsOfARuntime):
    """The reference: every actor on a thread of its own, in Pykka's own loop."""

    def __init__(self) -> None:
        super().__init__(OwnThreadActor)

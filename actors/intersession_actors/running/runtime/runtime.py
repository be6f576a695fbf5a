"""Where actors run: what all runtimes share, and the reference, which gives each actor a thread of its own."""

from queue import SimpleQueue
from types import new_class
from typing import Final, cast

import pykka

from intersession_actors.running.runtime.actor import Handler, OnFailure, Ref
from intersession_actors.running.runtime.clock import Clock, SystemClock
from intersession_actors.running.runtime.inbox import Inbox, Mail
from intersession_actors.running.runtime.reply import ReplyFuture, handled_here
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_events.basics.errors import IntersessionError
from intersession_events.basics.machine import machine_entropy, random_id
from intersession_events.log.log import Log


class RuntimeStopped(IntersessionError):
    """The runtime is stopping or stopped and starts no more actors."""


class Runtime:
    """Runs actors: composes, starts, counts and stops them. On which threads, its kinds say.

    It also has what everything else of a system takes from the machine: `threads`, `clock`, `new_id`, `entropy`.
    """

    def __init__(
        self, base: type[pykka.Actor], *, threads: Threads | None = None, clock: Clock | None = None
    ) -> None:
        self._base = base
        self._kinds: dict[type[Handler], type[Handler]] = {}
        self.threads: Threads = threads or MachineThreads()
        self.clock: Clock = clock or SystemClock()
        self._changed = self.threads.changed()
        self._live: dict[int, Ref] = {}
        self._on_end: Final = self._forget
        """Made once, since all actors have it."""
        self._stopping = False

    def new_id(self) -> str:
        """Return a new random UUID."""
        return random_id()

    def entropy(self, size: int) -> bytes:
        """Return random bytes, `size` of them."""
        return machine_entropy(size)

    def serve(self, log: Log) -> None:
        """Hear on which log the actors work: a simulation does the log's work, too."""

    def close(self) -> None:
        """Let go of whatever is left, once all else has stopped: in a simulation, of what waits for nothing any more."""

    def start(
        self,
        handler_class: type[Handler],
        *args: object,
        name: str,
        inbox_limit: int | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ref:
        """Make an actor of a handler and start it; `args` are for its constructor.

        It takes at most `inbox_limit` ordinary messages at a time. `on_failure` is called once, from a thread
        of the runtime, when a handler has raised; without one, messages that were left are refused.

        Raises:
            RuntimeStopped: no more actors are started.
            Exception: whatever the constructor raises; then there is no actor.
        """
        if not isinstance(handler_class, type):  # pyright: ignore[reportUnnecessaryIsInstance] - a factory is tempting
            raise TypeError(f"start takes the class of a handler and its arguments, not {handler_class!r}")
        actor = self._composed(handler_class)(*args)
        ref = Ref(actor)
        actor.actor_inbox.name = name
        actor.actor_inbox.limit = inbox_limit
        self._prepare(actor)
        actor.enter(ref, on_failure, self._on_end)
        with self._changed:
            if self._stopping:
                raise RuntimeStopped(f"{name} was not started: the runtime is stopping")
            self._live[id(actor)] = ref
        actor.begin()
        return ref

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop all actors, the last started first, and return the names of those that did not in `timeout` seconds.

        Each finishes the messages it has; what those that did not stop had not begun is refused.
        """
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

    def _prepare(self, actor: Handler) -> None:
        """Do what a kind of runtime needs before an actor's first turn."""

    def _composed(self, handler_class: type[Handler]) -> type[Handler]:
        """Give a handler class the hooks of this runtime."""
        kind = self._kinds.get(handler_class)
        if kind is None:
            made = new_class(handler_class.__name__, (self._base, handler_class))
            kind = self._kinds[handler_class] = cast("type[Handler]", made)
        return kind

    def _forget(self, actor: Handler) -> None:
        with self._changed:
            self._live.pop(id(actor), None)
            if not self._live:
                self._changed.notify_all()


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


class ThreadingRuntime(Runtime):
    """The reference: every actor on a thread of its own, in Pykka's own loop."""

    def __init__(self) -> None:
        super().__init__(OwnThreadActor)

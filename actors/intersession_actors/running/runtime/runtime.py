"""Where actors run: what all runtimes share; the reference, which gives each actor a thread; what a host hands in, checked."""

from collections.abc import Callable
from queue import SimpleQueue
from types import new_class
from typing import Final, cast

import pykka

from intersession_actors.rules.gate.limits import IDENTITY
from intersession_actors.rules.gate.shapes import callable_of
from intersession_actors.rules.gate.texts import checked
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.runtime.actor import Handler, OnFailure, Ref
from intersession_actors.running.runtime.clock import Clock, SystemClock
from intersession_actors.running.runtime.inbox import Inbox, Mail
from intersession_actors.running.runtime.reply import ReplyFuture, handled_here
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_events.basics.errors import IntersessionError
from intersession_events.basics.machine import machine_entropy, random_id
from intersession_events.log.log import Log


class RuntimeStopped(IntersessionError):
    """The runtime is stopping or stopped, and starts no more actors."""


class Runtime:
    """Runs actors: composes, starts, counts and stops them. Subclasses choose the threads.

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
        """Set the log that the actors work on: a simulation does the log's work as well."""

    def close(self) -> None:
        """Release everything, after all else has stopped: in a simulation, waiting greenlets."""

    def start(
        self,
        handler_class: type[Handler],
        *args: object,
        name: str,
        inbox_limit: int | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ref:
        """Make an actor from a handler and start it; `args` are for its constructor.

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
        """Stop all actors, the last started first, and return the names of those that did not stop in `timeout` seconds.

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
        """Return the next message, waiting for one."""
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


_TIMES: Final = "now_ms() -> int, milliseconds since 1970, and monotonic() -> float, seconds"


def clock_of(clock: Clock | None) -> Clock | None:
    """Return a valid clock; None is the runtime's own.

    Raises:
        ToolRefused: it does not.
    """
    if clock is None:
        return None
    told: list[object] = []
    for name in ("now_ms", "monotonic"):
        tell: object = getattr(clock, name, None)
        if not callable(tell):
            raise invalid("clock", f"{type(clock).__name__} has no {name}(), give an object with {_TIMES}")
        told.append(tell())
    now_ms, monotonic = told
    if type(now_ms) is not int or isinstance(monotonic, bool) or not isinstance(monotonic, int | float):
        what = f"it tells {type(now_ms).__name__} and {type(monotonic).__name__}"
        raise invalid("clock", f"{what}, give an object with {_TIMES}")
    return clock


def ids_of(new_id: Callable[[], str] | None) -> Callable[[], str] | None:
    """Return a valid generator of ids; None is the runtime's own.

    Raises:
        ToolRefused: it can't be called; also from the returned function, where it drew no id.
    """
    callable_of("new_id", new_id)
    return None if new_id is None else lambda: checked("new_id", new_id(), most=IDENTITY.most)


def runtime_of(runtime: Runtime | None) -> Runtime | None:
    """Return a runtime; None is a pooled one.

    Raises:
        ToolRefused: it is invalid.
    """
    if runtime is None or isinstance(runtime, Runtime):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        return runtime
    raise invalid(
        "runtime",
        f"it is no runtime but {type(runtime).__name__}, give one of `intersession_actors.running.runtime`",
    )

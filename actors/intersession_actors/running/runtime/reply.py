"""The answer to an ask: a Pykka future that refuses a wait that would block an actor."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final

import pykka

from intersession_events.basics.errors import IntersessionError


class _Here(threading.local):
    actor: pykka.Actor | None = None


here: Final = _Here()
"""Its `actor` is the one whose handler runs on this thread."""


class WaitedInHandler(IntersessionError, RuntimeError):
    """A handler waited for an answer. It would block every actor on its thread, and could wait for itself."""

    def __init__(self) -> None:
        super().__init__(
            "an actor must not wait for an answer: tell the other one, give it a reply_to, and go on when "
            "its message comes; only doors ask, with a timeout"
        )


def handled_here() -> pykka.Actor | None:
    """Return the actor whose handler runs on this thread, if any."""
    return here.actor


class ReplyFuture(pykka.ThreadingFuture[Any]):  # whatever an actor answers: the caller knows
    """The future of an answer. `get` and `await` raise at once inside a handler; `await` never blocks an event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._listeners: list[Callable[[ReplyFuture], None]] = []

    def get(self, *, timeout: float | None = None) -> Any:  # Pykka's own
        """Wait for the answer, for at most `timeout` seconds.

        Raises:
            WaitedInHandler: this is a handler.
            pykka.Timeout: there was no answer in time. The question stays asked.
        """
        if handled_here() is not None:
            raise WaitedInHandler
        return super().get(timeout=timeout)

    def set(self, value: object = None) -> None:
        """Set the answer. Only the first one counts; a second raises `queue.Full`."""
        super().set(value)
        self._tell_listeners()

    def set_exception(self, exc_info: Any = None) -> None:  # Pykka keeps the type to itself
        """Set an error as the answer, by default the one that is being handled."""
        super().set_exception(exc_info)
        self._tell_listeners()

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        with self._condition:
            return self._result is not None

    def answer(self) -> Any:  # as `get`
        """Return the answer, or raise it. Never waits, so a handler may call it.

        Raises:
            pykka.Timeout: it is not there yet.
        """
        return super().get(timeout=0)

    def when_answered(self, listener: Callable[["ReplyFuture"], None]) -> None:
        """Call a listener with the answer, on the thread that sets it (at once if it is there)."""
        with self._condition:
            if self._result is None:
                self._listeners.append(listener)
                return
        listener(self)

    def __await__(self) -> Generator[None, None, Any]:  # as `get`
        if handled_here() is not None:
            raise WaitedInHandler
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()

        def answered(_: ReplyFuture) -> None:
            # A loop that was closed in the meantime has nobody left to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

        self.when_answered(answered)
        yield from ready.wait().__await__()
        return self.answer()

    __iter__ = __await__

    def _tell_listeners(self) -> None:
        with self._condition:
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(self)

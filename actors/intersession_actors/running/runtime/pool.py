"""Actors on a shared pool of threads: an idle actor costs a few kilobytes and no thread."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Final, cast

import pykka

from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.inbox import Inbox
from intersession_actors.running.runtime.reply import ReplyFuture, handled_here
from intersession_actors.running.runtime.runtime import Runtime

logger = logging.getLogger("intersession.actors")

MESSAGES_PER_TURN = 32
SECONDS_PER_TURN = 0.005
"""An actor that has handled this many messages, or for this long, waits until the others have had their turns."""

THREADS = 2
"""Handlers never wait, and only one of them runs Python at a time: more threads only wake each other up."""


class PooledActor(pykka.Actor):
    """An actor without a thread: its inbox puts it into the pool's queue."""

    actor_inbox: Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - no other kind is made here
    _begun = False

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    @staticmethod
    def _create_future() -> ReplyFuture:
        return ReplyFuture()

    def _start_actor_loop(self) -> None:
        self.actor_inbox.rouse()

    def take_turn(self, monotonic: Callable[[], float]) -> bool:
        """Handle some messages; return whether there may be more."""
        over = monotonic() + SECONDS_PER_TURN
        if not self._begun:
            self._begun = True
            self._actor_loop_setup()
        return self.actor_inbox.handle(self._handle_receive, monotonic, over=over, most=MESSAGES_PER_TURN)


class PooledRuntime(Runtime):
    """Runs all actors on a few threads, in turns of at most 32 messages or 5 ms."""

    def __init__(self, *, threads: int = THREADS, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(PooledActor)
        self._monotonic = monotonic
        self._ready: SimpleQueue[PooledActor | None] = SimpleQueue()
        self._put: Final = self._ready.put
        """Made once, since all actors have it."""
        self._threads = [
            threading.Thread(target=self._dispatch, name=f"actors-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop all actors, then the threads (`Runtime.stop`)."""
        left = super().stop(timeout)
        for _ in self._threads:
            self._ready.put(None)
        if not left and handled_here() is None:
            for thread in self._threads:
                thread.join(timeout)
        return left

    def _prepare(self, actor: Handler) -> None:
        actor.actor_inbox.wake = partial(self._put, cast("PooledActor", actor))

    def _dispatch(self) -> None:
        while (actor := self._ready.get()) is not None:
            try:
                if actor.take_turn(self._monotonic):
                    self._ready.put(actor)
            except BaseException:
                logger.exception("a turn of %s failed outside its handler", actor)

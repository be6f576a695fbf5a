"""A worker in the process of its writer, whose channels a test hands in: it dies, is late, and comes back when the test says so."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Self

from intersession import SessionSystem
from intersession_actors.outside.channels.at_worker import ChannelsAtWorker
from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.workers.desk import Desk
from intersession_events.basics.errors import LogError
from intersession_events.log.work_queue import CallId, Offer, Worker
from support.running import WAIT

SEATS = 8


def desk_of(system: SessionSystem) -> Desk:
    """Return the side of a system on which it offers calls."""
    workers = system._parts.workers
    assert workers is not None
    return workers.desk


class ChannelWorker:
    """Takes calls of its channels from a system's queue, on a thread, until it stops. `held` holds back what it answers."""

    def __init__(self, system: SessionSystem, channels: Mapping[str, Any], name: str = "w1") -> None:
        self.name = name
        self.taken: list[Offer] = []
        self.answers: list[tuple[CallId, bytes]] = []
        """Held back answers."""
        self.held = False
        self._has: set[CallId] = set()
        self._desk = desk_of(system)
        self._queue = system.log.work.to_take
        self._caller = ChannelCaller(seats=SEATS)
        self.channels = ChannelsAtWorker(self._caller, channels)
        self._files = system.log.files
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self.announce()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def serve(self, system: SessionSystem) -> None:
        """Go on with the writer that took over."""
        self._desk, self._queue = desk_of(system), system.log.work.to_take
        self.announce()

    def announce(self, *, is_draining: bool = False) -> None:
        """Say what it has; again while it drains."""
        worker = Worker(
            name=self.name,
            host="here",
            version="1",
            agents={},
            channels=self.channels.said,
            seats=SEATS,
            is_draining=is_draining,
        )
        self._queue.announce(worker)
        self._desk.look()

    def wait_for_answers(self, number: int) -> None:
        """Wait until it holds this many answers back."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.answers) >= number, WAIT)

    def answer(self) -> list[bool]:
        """Give the answers that were held back by now; return which of them counted."""
        return [self._queue.answer(self.name, call, content) for call, content in [*self.answers]]

    def stop(self, *, leaves: bool = False) -> None:
        """Take no more calls. One that `leaves` says so, and its calls have lapsed; one that dies says nothing."""
        self._stopped.set()
        self._thread.join(WAIT)
        self._caller.stop(0)
        if leaves:
            self._queue.leave(self.name)

    def _run(self) -> None:
        with suppress(LogError):  # its writer has ended first
            self._take()

    def _take(self) -> None:
        while not self._stopped.is_set():
            self._queue.renew(self.name, tuple(self._has))
            for offer in self._queue.take(self.name, SEATS, 0.05):
                self.taken.append(offer)
                self._has.add(offer.call)
                self.channels.start(offer, self._files, partial(self._came, offer.call))

    def _came(self, call: CallId, content: bytes) -> None:
        if self.held:
            with self._changed:
                self.answers.append((call, content))
                self._changed.notify_all()
        else:
            self._queue.answer(self.name, call, content)
            self._has.discard(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

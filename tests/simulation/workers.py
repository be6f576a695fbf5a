"""A worker of a simulation, which has its channels. It outlives the writer: what it has done it tells the next one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from intersession_actors.outside.channels.offered import (
    ChannelResult,
    Offered,
    OfferedThread,
    abilities_of,
    answer_of,
    offered_in,
    whole,
)
from intersession_actors.outside.channels.outcomes import NotDelivered, delivery_of, thread_of
from intersession_actors.running.host.calls import Came, Raised
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.work_queue import CallId, Offer, Taker, TakesWork, Worker
from simulation.faults import Crash

if TYPE_CHECKING:
    from simulation.world import World

T = TypeVar("T")

ALIVE_S: Final = 45
"""Longer than any call of a channel takes that is not late."""
_LONG_S: Final = 600.0
"""How long it may be idle, and silent. To say so often that it lives would be most of what happens."""


def _kept(given: list[Offer], calls: Sequence[Offer]) -> JsonObject:
    given += calls
    return {}


class WorkerBeside:
    """Takes calls of channels, one after the other. It dies and begins anew under another name, is late, and answers twice."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._number = 1
        self._sent: dict[CallId, tuple[str, bytes]] = {}
        """What it has to tell: of each call the key of its text, and the answer."""

    @property
    def name(self) -> str:
        return f"w{self._number}"

    def go(self) -> None:
        """Work for the writer that is there, until that ends."""
        queue = self._world.log.work.to_take
        threads = self._world.runtime.threads
        workers = self._world.system._parts.workers
        assert workers is not None

        self._again(lambda: self._announce(queue))
        workers.desk.look()
        while True:
            given = list[Offer]()
            asking = workers.desk.asks(Taker(self.name, 1), partial(_kept, given))
            took = self._again(lambda: [*queue.take(self.name, 1, 0)])
            asking.looks = False
            if not took:
                threads.wait(asking.given, _LONG_S)
            workers.desk.asks_no_more(asking)
            if asking.is_chosen:
                threads.wait(asking.given, _LONG_S)
            for offer in (*took, *given):
                self._make(queue, offer)
            if not took:
                # It has said nothing for so long that it was thought to be gone.
                self._again(lambda: self._announce(queue))
                workers.desk.look()

    def _announce(self, queue: TakesWork) -> None:
        for call, (key, content) in [*self._sent.items()]:
            self._tell(queue, call, key, content)
        channels = {name: abilities_of(channel) for name, channel in self._world.channels.all.items()}
        queue.announce(
            Worker(name=self.name, host="here", version="1", agents={}, channels=channels, seats=1)
        )

    def _make(self, queue: TakesWork, offer: Offer) -> None:
        world, strikes, offered = self._world, self._world.faults.strikes, offered_in(offer.content)
        key = offered.wanted.key if isinstance(offered, OfferedThread) else offered.outbound.key
        if strikes("worker_dies", 0.2, where="before"):
            self._die(queue)
            return
        if strikes("worker_late", 0.2, where="before"):
            world.runtime.pause(2 * ALIVE_S)
            if self._again(lambda: [*queue.renew(self.name, [offer.call])]):
                return
        self._sent[offer.call] = key, answer_of(self._called(offer.name, offered))
        self._check_writer()
        if strikes("worker_dies", 0.2, where="after"):
            self._die(queue)
            return
        if strikes("worker_late", 0.2, where="after"):
            world.runtime.pause(2 * ALIVE_S)
        self._again(lambda: self._tell(queue, offer.call, *self._sent[offer.call]))
        if strikes("worker_twice", 0.3):
            other = answer_of(NotDelivered(error="no", retry=False))
            if self._again(lambda: queue.answer(self.name, offer.call, other)):
                world.wrong("answered_once", f"another answer to {offer.call} counts")

    def _called(self, name: str, offered: Offered) -> ChannelResult:
        channel: Any = self._world.channels.all[name]
        try:
            if isinstance(offered, OfferedThread):
                return thread_of(Came(channel.threads(offered.wanted)), channel)
            given = whole(offered, self._world.log.files)
            return delivery_of(Came(channel.deliver(given)), None, idempotent=channel.idempotent)
        except Exception as error:  # noqa: BLE001 - whatever a channel raises
            return delivery_of(Raised(error), None, idempotent=channel.idempotent)

    def _tell(self, queue: TakesWork, call: CallId, key: str, content: bytes) -> None:
        if not queue.answer(self.name, call, content):
            self._world.channels.doubt(key)
        self._sent.pop(call, None)

    def _die(self, queue: TakesWork) -> None:
        """Forget everything, and begin anew as another worker."""
        for key, _ in self._sent.values():
            self._world.channels.doubt(key)
        self._sent.clear()
        self._number += 1
        self._again(lambda: self._announce(queue))

    def _check_writer(self) -> None:
        """Leave a writer that was taken over: the worker works for the next one."""
        if self._world.is_deposed:
            raise Crash

    def _again(self, what: Callable[[], T]) -> T:
        while True:
            self._check_writer()
            try:
                return what()
            except StoreUnavailable:
                self._world.runtime.pause(1)

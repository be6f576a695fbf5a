"""Offers attempts to workers, and hears what they answer: the writer's side of the queue, for agents and channels alike (WORK-4, WORK-5).

One thread writes: what is offered, withdrawn and done with meanwhile goes into the queue together. Another one hears.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.outside.workers.takers import Asking, Takers
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.failures.failure import described
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.errors import IntersessionError, StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.work_queue import (
    Answer,
    CallId,
    CallKind,
    Offer,
    QueuedCall,
    Taker,
    Worker,
    WorkQueue,
)

logger = logging.getLogger("intersession.workers")

IDLE_S: Final = 60.0
"""How often a simulation hears of workers that have no call: each time is a step of it."""

LOOK_S: Final = 1.0
"""How often it is looked which workers live, and whose calls are lapsed; and when the store is asked again that was away."""

SOON_S: Final = 0.1
"""How soon that is looked at after something was heard: it may be a worker that is new."""

TOGETHER: Final = 16
"""How many attempts that are on record are taken out of the queue together; fewer, when it is next looked which workers live."""

MOST_OVER: Final = 10_000
"""How many attempts that are over are remembered, whose workers may yet answer late."""

OnAnswer = Callable[[bytes | None], None]
"""Gets the content of an answer, or None where the worker was not heard of for too long. It must not block."""

OnLate = Callable[[Answer, QueuedCall | Offer], None]
OnWorkers = Callable[[Sequence[Worker]], None]


class _Offered(NamedTuple):
    offer: Offer
    told: OnAnswer


class Desk:
    """The calls of a log's writer that workers make. Its methods may be called from any thread, and never block, but `begin` and `look`.

    A worker lives that was heard of in the last `alive_s` seconds. `begins` is called before the first call is offered.
    """

    def __init__(
        self,
        queue: WorkQueue,
        *,
        threads: Threads,
        clock: Clock,
        alive_s: float,
        begins: Callable[[], object],
    ) -> None:
        self.queue = queue
        self._begins = begins
        self._threads = threads
        self._clock = clock
        self.alive_s = alive_s
        self._changed = threads.changed()
        self._looking = threads.changed()
        self._offered: dict[CallId, _Offered] = {}
        self._known: dict[CallId, QueuedCall | Offer] = {}
        """What is in the queue, until it is dropped."""
        self._waiting: set[CallId] = set()
        """What may be taken: all that nobody has, and some that workers took from a database themselves."""
        self._early: dict[CallId, Answer] = {}
        """Answers to attempts of an earlier process that nobody has adopted yet."""
        self._told: set[CallId] = set()
        """Those whose answer was handed on, and is not on record yet."""
        self._to_offer: list[Offer] = []
        self._over: list[CallId] = []
        self._done: list[CallId] = []
        """What is on record, and is dropped together."""
        self._to_drop: list[CallId] = []
        self._late: dict[CallKind, OnLate] = {}
        self._on_workers: list[OnWorkers] = []
        self._ended: deque[CallId] = deque()
        self._takers = Takers()
        self._hears = False
        self._writes = False
        self.leaves = False
        """Whether the process ends: what is under way is left to its workers, and to the next writer."""
        self._stopped = False
        self._is_away = False
        self._next_look = 0.0
        self.workers: Sequence[Worker] = ()
        """The workers that live."""
        self._said: list[tuple[object, ...]] | None = None
        """What was told of them last. The first look is told in any case: one that lived at the start may have left before it."""

    # --- at a start

    def begin(self, *, expects: bool) -> Sequence[QueuedCall]:
        """Return what the process before left in the queue, and is not over. Nothing is heard of it before `hear`.

        Workers that could not reach a writer meanwhile have their time anew, if there are any, or some are expected.

        Raises:
            StoreUnavailable: the queue can't be read.
        """
        found = self.queue.standing()
        if found or expects:
            self.queue.extend([one.call for one in found if one.worker is not None and not one.is_over])
        self._known.update((one.call, one) for one in found)
        self._waiting.update(one.call for one in found if one.worker is None)
        return [one for one in found if not one.is_over]

    def late_with(self, kind: CallKind, on_late: OnLate) -> None:
        """Have late answers of a kind told."""
        self._late[kind] = on_late

    def watch(self, on_workers: OnWorkers) -> None:
        """Have it told which workers live, whenever that changes, on the thread that hears."""
        self._on_workers.append(on_workers)

    def hear(self) -> None:
        """Look for workers and answers from now on: there may be some."""
        with self._changed:
            begins = not self._hears and not self._stopped
            self._hears = self._hears or begins
        if begins:
            self.queue.on_answer = self._hear
            self._begins()
            self._threads.start(self._hearing, name="workers-heard")

    # --- calls

    def secret_of(self, call: CallId) -> str | None:
        """Return the secret of a call that is in the queue; its worker knows it."""
        known = self._known.get(call)
        return None if known is None else known.secret

    def offer(self, offer: Offer, told: OnAnswer) -> None:
        """Have workers make a call. One that is in the queue already is adopted: it may have been answered."""
        call = offer.call
        self.hear()
        with self._changed:
            early = self._early.pop(call, None)
            if early is None:
                self._offered[call] = _Offered(offer, told)
                self._changed.notify_all()
            else:
                self._told.add(call)
            if self._known.setdefault(call, offer) is offer:
                self._to_offer.append(offer)
                self._waiting.add(call)
                self._write()
        if early is not None:
            told(early.content)

    def withdraw(self, call: CallId) -> None:
        """Note that an attempt is over, and nobody waits for its answer. While the process ends, its worker goes on with it."""
        with self._changed:
            self._offered.pop(call, None)
            self._early.pop(call, None)
            self._waiting.discard(call)
            # An answer that was handed on just when the attempt was cut off reached nobody: it is heard again, as late.
            self._told.discard(call)
            if self.leaves:
                return
            if isinstance(known := self._known.get(call), QueuedCall):
                self._known[call] = msgspec.structs.replace(known, is_over=True)
            self._to_offer = [offer for offer in self._to_offer if offer.call != call]
            self._over.append(call)
            self._ended.append(call)
            if len(self._ended) > MOST_OVER:
                self._known.pop(self._ended.popleft(), None)
            self._write()

    def done(self, calls: Iterable[CallId]) -> None:
        """Note that the end of attempts is on record: nothing else is expected of them. Others are not in the queue."""
        if not self._known:
            return
        with self._changed:
            known = [call for call in calls if self._known.pop(call, None) is not None]
            self._done += known
            self._waiting.difference_update(known)
            # Each is read again with every answer until then, so they are few.
            if len(self._done) >= TOGETHER:
                self._drop()

    def is_told(self, call: CallId) -> bool:
        """Whether its answer was handed on: an end on record is what came of that."""
        return call in self._told

    # --- workers that ask through this process

    def asks(self, taker: Taker, made: Callable[[Sequence[Offer]], JsonObject]) -> Asking:
        """Give a worker calls as they are offered, until it asks no more, or drains. `made` is called on the thread that writes."""
        with self._changed:
            known = [one for one in self.workers if one.name == taker.worker]
            asking = self._takers.asks(taker, made, looks=bool(self._waiting) or not known)
            self._end_waits(known)
            return asking

    def asks_no_more(self, asking: Asking) -> None:
        """Give a worker nothing more than what it was chosen for already."""
        with self._changed:
            self._takers.asks_no_more(asking)

    def take(self, taker: Taker) -> Sequence[Offer]:
        """Take calls that wait.

        Raises:
            WorkRefused: the worker is not announced, or was forgotten.
            StoreUnavailable: the queue can't be reached.
        """
        calls = self.queue.to_take.take(*taker, 0.0)
        with self._changed:
            self._waiting.difference_update(one.call for one in calls)
        return calls

    def look(self) -> None:
        """Look which workers live, and tell of it before this returns: one has announced itself, or left. It may block."""
        self.hear()
        with self._looking:
            workers = self.queue.workers()
            said = [_said_of(one) for one in workers]
            is_news, self._said, self.workers = said != self._said, said, workers
            with self._changed:
                self._end_waits(workers)
            for told in self._on_workers if is_news else ():
                told(workers)

    def _end_waits(self, workers: Iterable[Worker]) -> None:
        """Have those that drain wait no more: they hear what became of their answers at once."""
        for asking in self._takers.of_workers({one.name for one in workers if one.is_draining}):
            asking.give(())

    # --- the end

    def leave(self) -> None:
        """Leave the calls to their workers, since the process ends: the next one adopts them. What is on record is noted all the same."""
        with self._changed:
            self.leaves = True
            takers = self._takers.all()
        for one in takers:
            one.give(())

    def check_stays(self) -> None:
        """Refuse what the next writer goes on with, since the process ends.

        Raises:
            ToolRefused: it ends (`unavailable`).
        """
        if self.leaves:
            raise ToolRefused("unavailable", "the writer is stopping, send it again to the next one")

    def stop(self) -> None:
        """End, once it is written what is done with."""
        with self._changed:
            self.leaves = True
            self._drop()
            self._stopped = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._writes, timeout=LOOK_S)

    # --- the thread that writes; it ends when there has been nothing to write for a while

    def _drop(self) -> None:
        if self._done:
            self._to_drop, self._done = self._to_drop + self._done, []
            self._write()

    def _write(self) -> None:
        if self._writes:
            self._changed.notify_all()
        elif not self._stopped:
            self._writes = True
            self._threads.start(self._writing, name="workers-told")

    def _writing(self) -> None:
        while True:
            with self._changed:
                if not self._has_to_write() and not self._stopped:
                    self._changed.wait_for(lambda: self._has_to_write() or self._stopped, timeout=LOOK_S)
                offers, over, done = self._to_offer, self._over, self._to_drop
                self._to_offer, self._over, self._to_drop = [], [], []
                if not (offers or over or done):
                    self._writes = False
                    self._changed.notify_all()
                    return
            try:
                self._put(offers, over, done)
            except StoreUnavailable as error:
                self._tell_away(error)
                if not self._again(offers, over, done):
                    return
                continue
            except IntersessionError as error:  # another process is the writer by now
                logger.warning("workers are told of no calls any more: %s", described(error))
                with self._changed:
                    self._stopped, self._writes = True, False
                return
            with self._changed:
                self._told.difference_update(done)

    def _put(self, offers: Sequence[Offer], over: Sequence[CallId], done: Sequence[CallId]) -> None:
        if offers:
            self._hand_out(offers)
        if over:
            self.queue.withdraw(over)
        if done:
            self.queue.drop(done)
        self._is_away = False

    def _tell_away(self, error: StoreUnavailable) -> None:
        """Log it once, until the store is back."""
        if not self._is_away:
            logger.warning("workers wait, since the store is away: %s", described(error))
        self._is_away = True

    def _again(self, offers: list[Offer], over: list[CallId], done: list[CallId]) -> bool:
        """Have it written again after a while; False where the process ends."""
        with self._changed:
            self._to_offer = offers + self._to_offer
            self._over, self._to_drop = over + self._over, done + self._to_drop
            self._changed.wait(LOOK_S)
            self._writes = not self._stopped
            return self._writes

    def _has_to_write(self) -> bool:
        return bool(self._to_offer or self._over or self._to_drop)

    def _hand_out(self, offers: Sequence[Offer]) -> None:
        """Offer calls, and give them to those that wait for some."""
        with self._changed:
            chosen = self._takers.of(offers, self.workers)
        try:
            given = self.queue.offer(offers, [one.taker for one in chosen])
        except IntersessionError:
            with self._changed:
                over = self._takers.put_back(chosen)
            for asking in over:
                asking.give(())
            raise
        for asking, calls in zip(chosen, given, strict=True):
            asking.give(calls)
        with self._changed:
            self._waiting.difference_update(one.call for calls in given for one in calls)
            # Some may have asked, and looked in vain, while this was written.
            left = self._takers.of(
                [one for one in offers if one.call in self._waiting], self.workers, looking=True
            )
        for asking in left:
            asking.give(())

    # --- the thread that hears

    def _hearing(self) -> None:
        while not self._stopped:
            try:
                self._round()
                if self._threads.by_hand:
                    with self._changed:
                        self._changed.wait(LOOK_S / 4 if self._offered else IDLE_S)
                elif self.queue.wait(max(self._next_look - self._clock.monotonic(), 0.0)):
                    self._next_look = min(self._next_look, self._clock.monotonic() + SOON_S)
            except StoreUnavailable as error:
                if self._stopped or self.leaves:
                    return
                self._tell_away(error)
                with self._changed:
                    self._changed.wait(LOOK_S)
            except Exception:
                logger.exception("what workers say could not be taken")
                with self._changed:
                    self._changed.wait(LOOK_S)

    def _round(self) -> None:
        answers = self.queue.answers()
        for answer in answers:
            self._hear(answer)
        now = self._clock.monotonic()
        if self.leaves or now < self._next_look:
            return
        self._next_look = now + LOOK_S
        with self._changed:
            self._drop()
        self.look()
        for call in self.queue.lapsed():
            self._lapse(call)

    def _hear(self, answer: Answer) -> None:
        call = answer.call
        with self._changed:
            if self.leaves or call in self._told or call in self._early:
                return
            offered, known = self._offered.pop(call, None), self._known.get(call)
            if known is None:
                return
            self._waiting.discard(call)
            if offered is None and isinstance(known, QueuedCall) and not (known.is_over or answer.is_late):
                self._early[call] = answer
                return
            self._told.add(call)
        if offered is not None:
            offered.told(answer.content)
        elif (late := self._late.get(call.kind)) is not None:
            late(answer, known)

    def _lapse(self, call: CallId) -> None:
        with self._changed:
            offered = self._offered.pop(call, None)
        self.withdraw(call)
        if offered is not None:
            offered.told(None)


def _said_of(worker: Worker) -> tuple[object, ...]:
    """Return what is of interest of a worker: not how many calls it makes at the moment."""
    return (worker.name, worker.agents, worker.channels, worker.is_draining)


def names_at(workers: Collection[Worker], kind: CallKind) -> dict[str, str]:
    """Return the agents or the channels that living workers take calls for, and what the first of these says of each."""
    found: dict[str, str] = {}
    for worker in workers:
        if not worker.is_draining:
            for name, said in (worker.agents if kind == "agent" else worker.channels).items():
                found.setdefault(name, said)
    return found

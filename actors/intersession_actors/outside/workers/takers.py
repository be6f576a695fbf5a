"""The workers that wait for calls through the gateway: who is given which as it is offered."""

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future

from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.work_queue import Offer, Taker, Worker


class Asking:
    """A worker that waits. `given` is done with what `made` made of its calls; with None if it is to look for some itself."""

    def __init__(self, taker: Taker, made: Callable[[Sequence[Offer]], JsonObject], *, looks: bool) -> None:
        self.taker = taker
        self.looks = looks
        """Whether it looks itself as yet: nothing is taken for it meanwhile, or it could have twice as many as it asks for."""
        self.is_chosen = False
        """Whether `given` is soon done."""
        self.is_over = False
        self.given: Future[JsonObject | None] = Future()
        self._made = made

    def give(self, calls: Sequence[Offer]) -> None:
        """Hand over calls that were taken for it."""
        try:
            made = self._made(calls) if calls else None
        except Exception as error:  # noqa: BLE001 - told to the waiting worker
            self.given.set_exception(error)
        else:
            self.given.set_result(made)


class Takers:
    """Those that wait, the longest first. Its user has a lock for it."""

    def __init__(self) -> None:
        self._waiting: list[Asking] = []

    def asks(self, taker: Taker, made: Callable[[Sequence[Offer]], JsonObject], *, looks: bool) -> Asking:
        """Let a worker wait, until it is chosen or asks no more."""
        asking = Asking(taker, made, looks=looks)
        self._waiting.append(asking)
        return asking

    def asks_no_more(self, asking: Asking) -> None:
        """Let it wait no more. What it was chosen for is still to come."""
        asking.is_over = True
        if asking in self._waiting:
            self._waiting.remove(asking)

    def of(
        self, offers: Sequence[Offer], workers: Iterable[Worker], *, looking: bool = False
    ) -> Sequence[Asking]:
        """Choose those that can make these calls; those that look themselves only if `looking`."""
        known, room = {one.name: one for one in workers}, dict[Asking, int]()
        able = [one for one in self._waiting if looking or not one.looks]
        for offer in offers:
            for asking in able:
                worker, left = known.get(asking.taker.worker), room.get(asking, asking.taker.most)
                names = () if worker is None else worker.agents if offer.kind == "agent" else worker.channels
                if left and (worker is None or offer.name in names):
                    room[asking] = left - 1
                    break
        return self._chosen(room)

    def of_workers(self, names: Collection[str]) -> Sequence[Asking]:
        """Choose those of some workers."""
        return self._chosen([one for one in self._waiting if one.taker.worker in names])

    def all(self) -> Sequence[Asking]:
        """Choose all."""
        return self._chosen(self._waiting)

    def put_back(self, chosen: Sequence[Asking]) -> Sequence[Asking]:
        """Let those wait on for whom nothing could be taken. Return those that are over, and wait for just that."""
        back = [one for one in chosen if not one.is_over]
        for one in back:
            one.is_chosen = False
        self._waiting[:0] = back
        return [one for one in chosen if one.is_over]

    def _chosen(self, found: Iterable[Asking]) -> Sequence[Asking]:
        chosen = [*found]
        for one in chosen:
            one.is_chosen = True
        self._waiting = [one for one in self._waiting if not one.is_chosen]
        return chosen

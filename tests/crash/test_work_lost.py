"""No call, and no answer, that the queue has acknowledged is lost when a PostgreSQL server is killed, and none is taken twice."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress

import pytest

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.work_queue import CallId, TakesWork, WorkQueue
from intersession_events.stores.opened import open_log, work_at
from support.postgres.server import postgres_server
from support.work_queue import offer, worker


class Load:
    """A writer that offers and hears, and a worker, each on a thread of its own; and what was acknowledged to them."""

    def __init__(self, writer: WorkQueue, work: TakesWork) -> None:
        self.taken: Counter[CallId] = Counter()
        self.answered: set[CallId] = set()
        self.offered: set[CallId] = set()
        self.heard: set[CallId] = set()
        self._writer = writer
        self._work = work
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._again_and_again, args=(step,))
            for step in (self._offer, self._hear, self._work_on)
        ]

    def start(self) -> None:
        self._work.announce(worker())
        for thread in self._threads:
            thread.start()

    def wait_for(self, answers: int) -> None:
        """Wait until this many more were answered."""
        reached = len(self.answered)
        while len(self.answered) < reached + answers:
            assert all(thread.is_alive() for thread in self._threads)
            self._ended.wait(0.01)

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def _again_and_again(self, step: Callable[[], None]) -> None:
        while not self._ended.is_set():
            with suppress(StoreUnavailable):
                step()
                continue
            self._ended.wait(0.05)

    def _offer(self) -> None:
        some = [offer(str(len(self.offered) + at)) for at in range(4)]
        self._writer.offer(some)
        self.offered.update(one.call for one in some)

    def _hear(self) -> None:
        found = [one.call for one in self._writer.answers()]
        self.heard.update(found)
        self._writer.drop(found)
        self._writer.wait(0.05)

    def _work_on(self) -> None:
        calls = [one.call for one in self._work.take("w1", 4, 0.05)]
        self.taken.update(calls)
        for call in calls:
            self._answer(call)

    def _answer(self, call: CallId) -> None:
        while not self._ended.is_set():
            with suppress(StoreUnavailable):
                # A row that is gone was heard: nobody said so of the answer before this one.
                if self._work.answer("w1", call, b"1"):
                    self.answered.add(call)
                return
            self._ended.wait(0.05)


@pytest.mark.postgres
@pytest.mark.clause("WORK-1")
@pytest.mark.parametrize(
    "kills", [2, pytest.param(40, marks=(pytest.mark.nightly, pytest.mark.timeout(3_600)))]
)
def test_queue_of_a_server_that_is_killed_loses_nothing(kills: int) -> None:
    with postgres_server() as server:
        url = f"{server.url}&schema=killed"
        with open_log(url) as log, closing(work_at(url)) as work:
            log.work.alive_s = 3_600.0
            load = Load(log.work, work)
            load.start()
            for _ in range(kills):
                load.wait_for(40)
                server.kill()
                server.start()
            load.wait_for(40)
            load.stop()
            heard = load.heard | {one.call for one in log.work.answers()}
            left = {one.call for one in log.work.standing()}

    assert set(load.taken.values()) == {1}
    assert load.answered <= heard
    assert load.offered <= heard | left

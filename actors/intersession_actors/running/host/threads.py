"""Threads for code that may block: a fixed number at work, not counting waiting or lost ones.

A thread that waits for another run must not keep that run from starting, and one that never comes back can't be
killed: in both cases another thread takes its place.
"""

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager, suppress
from typing import Generic, Literal, TypeVar

from intersession_actors.running.runtime.threads import MachineThreads, Threads

logger = logging.getLogger("intersession.host")

LINGER_S = 2.0
"""A thread that is not kept waits so long for another job: to start one takes longer than most jobs that come in bursts."""


T = TypeVar("T")


def _everybody(_: Hashable) -> bool:
    return True


class FairQueue(Generic[T]):
    """Items in lanes: in order of arrival within a lane, one of each lane in turn. Not for several threads at once."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[Hashable, deque[T]] = OrderedDict()

    def put(self, lane: Hashable, item: T) -> None:
        """Add an item at the end of its lane."""
        self._lanes.setdefault(lane, deque()).append(item)

    def take(self, may: Callable[[Hashable], bool] = _everybody) -> T | None:
        """Return the next item of the lane whose turn it is, among those that `may`; None if there is none."""
        for lane, items in self._lanes.items():
            if may(lane):
                item = items.popleft()
                if items:
                    self._lanes.move_to_end(lane)
                else:
                    del self._lanes[lane]
                return item
        return None

    def has_one(self, may: Callable[[Hashable], bool]) -> bool:
        """Whether an item could be taken now, of a lane that `may`."""
        return any(map(may, self._lanes))

    def remove(self, lane: Hashable, item: T) -> None:
        """Remove an item; does nothing if it is not there."""
        items = self._lanes.get(lane)
        if items is None or item not in items:
            return
        items.remove(item)
        if not items:
            del self._lanes[lane]

    def clear(self) -> list[T]:
        """Remove and return everything, lane by lane."""
        left = [item for items in self._lanes.values() for item in items]
        self._lanes.clear()
        return left


class Job:
    """Work for a thread. `lane` is its caller."""

    __slots__ = ("lane", "run", "stage", "waits")

    def __init__(self, run: Callable[[], None], lane: Hashable = None) -> None:
        self.run = run
        self.lane = lane
        self.stage: Literal["queued", "running", "ended", "given up"] = "queued"
        self.waits = 0


class Workers:
    """Runs jobs, at most `size` at a time and `per_lane` of one lane, lanes in turn and each in order of arrival.

    Threads that have had nothing to do for a while end, but for `keep` of them.
    """

    def __init__(
        self,
        size: int,
        *,
        keep: int | None = None,
        per_lane: int | Callable[[Hashable], int] | None = None,
        name: str,
        threads: Threads | None = None,
    ) -> None:
        if size < 1:
            raise ValueError(f"a pool needs at least one thread, not {size}")
        self._size = size
        self._keep = size if keep is None else keep
        self._name = name
        self._threads = threads or MachineThreads()
        self._changed = self._threads.changed()
        self._per_lane = size if per_lane is None else per_lane
        self._queue: FairQueue[Job] = FairQueue()
        self._at_work: Counter[Hashable] = Counter()
        self._jobs: dict[Hashable, Job] = {}
        """What each thread does."""
        self._busy = 0
        self._idle = 0
        self._comes = False
        """Whether a thread was woken that has not looked at the queue yet."""
        self._stopped = False

    def submit(self, job: Job) -> None:
        """Queue a job; a thread runs it as soon as one is free. A job that was given up is not run.

        Raises:
            RuntimeError: the pool has stopped, or the machine has no thread left.
        """
        with self._changed:
            if self._stopped:
                raise RuntimeError(f"{self._name}: stopped, takes no more work")
            if job.stage == "queued":
                self._queue.put(job.lane, job)
                self._staff()

    def give_up(self, job: Job) -> bool:
        """Give up a job: drop it if it has not begun, else replace its thread.

        Returns whether it may still come back.
        """
        with self._changed:
            match job.stage:
                case "queued":
                    job.stage = "given up"
                    self._queue.remove(job.lane, job)
                    return False
                case "running":
                    job.stage = "given up"
                    if job.waits == 0:
                        self._rest(job)
                    self._staff()
                    return True
                case "ended" | "given up":
                    return True

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Leave the calling thread out of the count while it waits; does nothing on any other thread."""
        job = self._jobs.get(self._threads.me())
        if job is None:
            yield
            return
        with self._changed:
            if job.waits == 0 and job.stage == "running":
                self._rest(job)
                self._staff()
            job.waits += 1
        try:
            yield
        finally:
            with self._changed:
                job.waits -= 1
                if job.waits == 0 and job.stage == "running":
                    # More than `size` for a moment: to wait for a seat here could wait for ever.
                    self._work_on(job)

    def stop(self, *, finish: bool = False) -> None:
        """Drop jobs that have not begun, or `finish` them, and let threads end as they return."""
        with self._changed:
            self._stopped = True
            if not finish:
                self._queue.clear()
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Wait until no job runs, once it was stopped; False if one still does after this many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, timeout)

    @property
    def stopped(self) -> bool:
        """Whether no more jobs are taken."""
        return self._stopped

    def _staff(self) -> None:
        """See to it that a thread comes for what may start. Holds the lock."""
        # One at a time: it takes a job and wakes the next one for what is left, before it begins. Where jobs are short, those that
        # are awake have done them by then; a thread woken for each would find nothing.
        if self._comes or self._busy >= self._size or not self._queue.has_one(self._has_seat):
            return
        if self._idle:
            self._changed.notify()
        else:
            self._threads.start(self._work, name=self._name)
            self._idle += 1
        self._comes = True

    def _has_seat(self, lane: Hashable) -> bool:
        most = self._per_lane if isinstance(self._per_lane, int) else self._per_lane(lane)
        return self._at_work.get(lane, 0) < most

    def _work_on(self, job: Job) -> None:
        self._busy += 1
        self._at_work[job.lane] = self._at_work.get(job.lane, 0) + 1

    def _rest(self, job: Job) -> None:
        self._busy -= 1
        self._at_work[job.lane] -= 1
        if not self._at_work[job.lane]:
            del self._at_work[job.lane]

    def _work(self) -> None:
        me = self._threads.me()
        job = self._next(None)
        while job is not None:
            self._jobs[me] = job
            try:
                job.run()
            except BaseException:
                logger.exception("%s: a job failed", self._name)
            del self._jobs[me]
            job = self._next(job)

    def _next(self, before: Job | None) -> Job | None:
        """Return the next job of a thread whose job before has come back; None ends the thread."""
        with self._changed:
            if before is not None:
                if before.stage == "given up":
                    return None
                before.stage = "ended"
                self._rest(before)
                self._idle += 1
                if self._stopped:
                    self._changed.notify_all()
            else:
                self._comes = False
            is_late = False
            while True:
                job = self._queue.take(self._has_seat) if self._busy < self._size else None
                if job is not None:
                    job.stage = "running"
                    self._idle -= 1
                    self._work_on(job)
                    with suppress(
                        RuntimeError
                    ):  # no thread is left: what waits is done by those that come back
                        self._staff()
                    return job
                if self._stopped or (is_late and self._idle > self._keep):
                    self._idle -= 1
                    return None
                is_late = not self._changed.wait(LINGER_S if self._idle > self._keep else None)
                self._comes = False

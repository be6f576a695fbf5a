"""Group commit, for the recorder: writes all waiting work in one transaction with one sync, then tells each caller."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from intersession_events.basics.errors import AppendConflict, ForkedStoreError, StoreBusy, StoreUnavailable
from intersession_events.log.recorded import Committed, Conflict, Outcome, Unavailable
from intersession_events.stores.database import Cursor, Failures

T = TypeVar("T")

BATCH: Final = 512
"""At most this many pieces of work share a transaction."""
QUEUE: Final = 16_384
"""At most this many pieces of work wait; one more is refused as busy."""
PATIENCE_S: Final = 0.01
"""Work that has time waits this long for other work whose transaction it can share."""


class Work:
    """Work that is written together with other work, and told once when it is durable or has failed."""

    alone = False
    """Whether it needs a transaction of its own."""

    def write(self, cursor: Cursor) -> None:
        """Write, inside the transaction. An error fails this piece of work alone. May be called again."""
        raise NotImplementedError

    def is_stored(self, cursor: Cursor) -> bool:  # noqa: ARG002 - for others
        """Return whether the written rows are in the log: asked when the outcome of the commit is unknown."""
        return False

    def undo(self) -> None:
        """Hear that its rows were rolled back, while the rest of the transaction goes on."""

    def done(self, error: Exception | None) -> None:
        """Hear the outcome: None means durable. Must not raise and must not block."""
        raise NotImplementedError


class _Asleep(Enum):
    """Why the writer's thread sleeps: without any work, or for a moment with patient work alone."""

    FOR_WORK = auto()
    FOR_COMPANY = auto()


class GroupCommit:
    """A bounded queue, and one thread (or, by hand, the caller of `step`) that empties it in batches."""

    def __init__(self, write: Callable[[Sequence[Work]], None]) -> None:
        self.by_hand = False
        """True leaves the work to `step`, for a simulation that decides itself what happens when."""
        self._write = write
        self._waiting: deque[Work] = deque()
        self._hurried = False
        """Whether there is work among it that has no time to wait for other work."""
        # A handler of a signal may submit work, or close, in the middle of a submission of the thread that it interrupts.
        self._lock = threading.RLock()
        self._asleep: _Asleep | None = None
        """How the writer's thread waits; None while it works."""
        self._called: SimpleQueue[None] = SimpleQueue()
        """Wakes it. A condition makes a lock for each wait, and takes twice as long to hand work over."""
        self._thread: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()

    def submit(self, work: Work, *, patient: bool = False) -> None:
        """Queue a piece of work; never blocks. `patient` work waits a moment for other work to share its transaction.

        Raises:
            StoreBusy: too many wait already.
            ForkedStoreError: the process was forked since: the connections and the lock are the parent's.
            StoreUnavailable: it is closed.
        """
        if os.getpid() != self._process:
            raise ForkedStoreError(
                f"the store was opened by pid {self._process} and this is its fork {os.getpid()}: open it again here"
            )
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the log is closed")
            if len(self._waiting) >= QUEUE:
                raise StoreBusy(f"busy: {QUEUE} appends are waiting; try again")
            self._waiting.append(work)
            self._hurried = self._hurried or not patient
            if self._thread is None and not self.by_hand:
                self._thread = threading.Thread(target=self._run, name="intersession-writer", daemon=True)
                self._thread.start()
            called = self._wakes()
        # Called outside of the lock: woken inside, the writer would at once wait for it.
        if called:
            self._called.put(None)

    def hurry(self) -> None:
        """Write patient work now."""
        with self._lock:
            self._hurried = bool(self._waiting)
            called = self._wakes()
        if called:
            self._called.put(None)

    def step(self) -> bool:
        """Write one batch in the calling thread. False if no work waits."""
        with self._lock:
            batch = self._take()
        if batch:
            self._write(batch)
        return bool(batch)

    @property
    def has_work(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._waiting)

    def forget(self) -> None:
        """Refuse new work, and drop the waiting work silently."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def may_wait(self) -> bool:
        """Return whether the calling thread may wait for work: the writer's own would wait for itself."""
        return self._thread is not threading.current_thread()

    def close(self) -> None:
        """Refuse new work, and finish the waiting work."""
        if os.getpid() != self._process:
            return  # the thread and its work are the parent's
        with self._lock:
            self._closed = True
            called = self._wakes()
            thread = self._thread
        if called:
            self._called.put(None)
        # Joined outside of the lock, which the writer takes for each batch of what is left.
        if thread is None:
            while self.step():
                pass
        elif thread is not threading.current_thread():
            thread.join()

    def _wakes(self) -> bool:
        """Return, under the lock, whether the writer's thread has to be woken; it is awake then."""
        wakes = self._asleep is not None and (
            self._closed or self._hurried or (self._asleep is _Asleep.FOR_WORK and bool(self._waiting))
        )
        if wakes:
            self._asleep = None
        return wakes

    def _next(self) -> Sequence[Work]:
        """Wait for a batch, in the writer's thread; nothing once it is closed."""
        was_patient = False
        while True:
            with self._lock:
                self._asleep = None
                if self._closed or self._hurried or (was_patient and self._waiting):
                    return self._take()
                was_patient = bool(self._waiting)
                self._asleep = _Asleep.FOR_COMPANY if was_patient else _Asleep.FOR_WORK
            try:
                self._called.get(timeout=PATIENCE_S if was_patient else None)
            except Empty:
                continue

    def _take(self) -> Sequence[Work]:
        batch: list[Work] = []
        while self._waiting and len(batch) < BATCH:
            # Work goes out strictly in the order it came in. Work that must be alone waits for the batch before it, and
            # is not overtaken by what came later: else steady appends could keep it waiting for ever.
            if self._waiting[0].alone and batch:
                break
            batch.append(self._waiting.popleft())
            if batch[-1].alone:
                break
        self._hurried = bool(self._waiting)
        return batch

    def _run(self) -> None:
        try:
            while True:
                batch = self._next()
                if not batch:
                    return
                self._write(batch)
                if 0 < len(self._waiting) < len(batch):
                    # Most of those who were just told have had no turn since. Without this, one whose work came a moment too
                    # late for their batch has a sync of its own each time, for ever after.
                    time.sleep(0)
        finally:
            # Reached with work still waiting only if something worse than an error ended the thread.
            with self._lock:
                self._closed = True
                left = list(self._waiting)
                self._waiting.clear()
            for work in left:
                work.done(StoreUnavailable("the writer has stopped; nothing was recorded"))


class Transact(Work, Generic[T]):
    """Runs a function inside a transaction and keeps its result or error.

    Where nobody knows how the commit ended it is told that it failed: only the caller could tell, and looks.
    """

    def __init__(
        self, work: Callable[[Cursor], T], then: Callable[[], None], failures: Failures, *, alone: bool = True
    ) -> None:
        self.alone = alone
        self._work = work
        self._then = then
        self._failures = failures
        self._told = threading.Event()
        self._returned: list[T] = []
        self._error: Exception | None = None
        self._abandoned = False

    def write(self, cursor: Cursor) -> None:
        """Run the function, unless its caller stopped waiting."""
        if self._abandoned:
            raise StoreUnavailable("given up before its turn came")
        self._returned = [self._work(cursor)]

    def done(self, error: Exception | None) -> None:
        """Wake the caller. What follows a success (`then`) runs before any later transaction."""
        self._error = error
        if error is None:
            self._then()
        self._told.set()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._told.is_set()

    def result(self, timeout: float) -> T:
        """Wait for the end, and return the function's result or raise its error.

        Raises:
            StoreUnavailable: the store failed, the role lacks a right, or its turn did not come in time.
        """
        if not self._told.wait(timeout):
            self._abandoned = True
            raise StoreUnavailable(f"the writer had no time for it in {timeout:g} s")
        if self._error is None:
            return self._returned[0]
        if self._failures.is_of_the_store(self._error) or self._failures.is_forbidden(self._error):
            raise self._failures.log_error(self._error) from self._error
        raise self._error


class Waiting:
    """Takes the outcome of one append, and hands it to the waiting thread."""

    def __init__(self) -> None:
        # Released once, for the one thread that waits. An event makes three locks for that: a twelfth of the time that each of
        # many threads takes.
        self._untold = threading.Lock()
        self._untold.acquire()
        self._outcome: Outcome | None = None

    def __call__(self, outcome: Outcome) -> None:
        """Take the outcome."""
        self._outcome = outcome
        self._untold.release()

    @property
    def is_told(self) -> bool:
        """Whether the outcome is known."""
        return self._outcome is not None

    def committed(self, timeout: float) -> Committed:
        """Wait for the outcome, once.

        Raises:
            AppendConflict: a stream was not at its expected version.
            StoreUnavailable: it was refused, or is not known in time.
            LogError: what else the outcome says.
        """
        self._untold.acquire(timeout=min(max(timeout, 0), threading.TIMEOUT_MAX))
        match self._outcome:
            case Committed():
                return self._outcome
            case Conflict(stream=stream, expected=expected, actual=actual):
                raise AppendConflict(stream, expected, actual)
            case Unavailable(error=error):
                raise error
            case None:
                raise StoreUnavailable(
                    f"not durable after {timeout:g} s; it may still become so, read before trying again"
                )

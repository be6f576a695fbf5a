"""Takes checkpoints of a running system's log, on a thread of its own, and passes them on to be published (V1).

The writer only counts what is new. All reading and hashing is done here, so that no append waits for a checkpoint: it is an
event like any other, of a position that lies a little behind.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooSlow
from typing import Final, NamedTuple

import msgspec

from intersession_actors.assembly.checkpoints.publishing import Publisher, pause_ms
from intersession_actors.rules.config.host import Checkpoints
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.running.failures.failure import described
from intersession_actors.running.failures.reports import Reports
from intersession_actors.running.host.own_threads import filling
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_actors.running.runtime.timers import Timers
from intersession_events.basics.errors import LogError, StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.checkpoints.taking import CheckpointTaker, append_of
from intersession_events.facts import CheckpointPublished, CheckpointTaken, Erased
from intersession_events.log.held_checkpoints import cosignatures_in, receipts_of
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import Recorded
from intersession_events.proofs.notes import noted
from intersession_events.proofs.signatures import PrivateKey
from intersession_events.proofs.statement import Checkpoint, checkpoint_of

logger = logging.getLogger("intersession.checkpoints")

ASKED_SECONDS: Final = 600.0
"""How long a caller waits for a checkpoint: the first one of a long log reads all of it."""

COVER_SECONDS: Final = 10.0
"""How long the answer to an erasure waits for the checkpoint over it."""

_TIMER: Final = ("checkpoint",)

SHORT: Final = 20_000
"""The most events, or streams, that a stopping process reads for a checkpoint: some tenths of a second."""


def is_due(settings: Checkpoints, fresh: int) -> bool:
    """Whether the number of new events makes a checkpoint due at once."""
    return 0 < settings.every_events <= fresh


def wait_ms(settings: Checkpoints) -> int | None:
    """Return how long new events may wait for their checkpoint; None: without a limit."""
    return milliseconds(settings.every_seconds) or None


def is_short(position: int, head: int) -> bool:
    """Whether a process that is about to stop has time to read the events between two positions."""
    return head - position <= SHORT


def heads_are_few(last: Checkpoint | None, position: int) -> bool:
    """Whether such a process has time to read the heads of all streams: the streams of the last checkpoint and new events bound them."""
    known, since = (0, 0) if last is None else (last.streams, last.position)
    return known is not None and known + position - since <= SHORT


class Last(NamedTuple):
    """The last checkpoint, the position of its event, and its time."""

    checkpoint: Checkpoint
    position: int
    time_ms: int


class Checkpointer:
    """Decides when a checkpoint is due, and takes it. Its methods may be called from any thread."""

    def __init__(
        self,
        log: HostLog,
        *,
        settings: Callable[[], Checkpoints],
        key: PrivateKey | None,
        publisher: Publisher,
        clock: Clock,
        timers: Timers,
        reports: Reports,
        threads: Threads | None = None,
    ) -> None:
        self._log = log
        self._settings = settings
        self.key: Final = key
        self._publisher = publisher
        self._clock = clock
        self._timers = timers
        self._reports = reports
        self._taker = CheckpointTaker(log)
        self._threads = threads or MachineThreads()
        self._workers = Workers(1, keep=0, name="checkpoints", threads=self._threads)
        self._stop_listening: Callable[[], None] = _nothing
        self._heard_of = 0
        """New events that the writer has told of since the start. Only its thread counts them up."""
        self._seen = 0
        """How many of them the taker has read for certain; it knows of more, of `_left`, that wait for a checkpoint."""
        self._left = 0
        self._has_erased = False
        """Whether words were erased since the last checkpoint."""
        self._asked = False
        """Whether a look is under way or queued."""
        self._timed = False
        self._stopping = False
        self._failures = 0
        self._error: str | None = None
        self._taken = 0
        self._last: Last | None = None

    def start(self) -> None:
        """Listen to the log, and read in the background what the last process left undone."""
        self._stop_listening = self._log.on_committed(self._heard)
        self._submit(self._begin)

    def take(self, seconds: float = ASKED_SECONDS) -> Last:
        """Take a checkpoint of everything, whatever the settings say; return the last one if nothing is new.

        The wait for it is bounded.

        Raises:
            LogError: the log can't be read or written.
        """
        asked: Future[Last | None] = Future()
        self._submit(filling(asked, lambda: self._take(wanted=True)))
        if not self._threads.wait(asked, seconds):
            raise StoreUnavailable(
                f"no checkpoint within {seconds:.0f} s: it is still under way, ask again later"
            )
        last = asked.result()
        if last is None:
            raise StoreUnavailable("the system stops, no checkpoint was taken")
        return last

    def answer(self, last: Last) -> JsonObject:
        """Say what a checkpoint is, with what was answered to it by now."""
        checkpoint: JsonObject = msgspec.to_builtins(last.checkpoint)
        position = last.checkpoint.position
        received = [
            one for one in receipts_of(self._log.query, after=last.position) if one.position == position
        ]
        if (note := noted(last.checkpoint)) is not None:
            given = cosignatures_in(received).get(position, ())
            checkpoint["note"] = str(msgspec.structs.replace(note, signatures=(*note.signatures, *given)))
        for one in received:
            if one.to == "timestamp":
                checkpoint["timestamp"] = one.receipt
        waiting = self._publisher.unanswered({one.target for one in received})
        return {
            **checkpoint,
            "hash": last.checkpoint.hash,
            "at": last.position,
            "takenMs": last.time_ms,
            **({"waitingFor": waiting} if waiting else {}),
        }

    def cover(self, position: int) -> int | None:
        """Take a checkpoint over an event, and return its position; None if there was none within some seconds.

        Then it comes in time: somebody's answer waits, and the first checkpoint of a long log reads all of it.
        """
        try:
            last = self.take(COVER_SECONDS)
        except LogError:
            return None
        return last.checkpoint.position if last.checkpoint.position >= position else None

    def cover_fork(self, fork: HostLog) -> None:
        """Take a checkpoint in a fork that nobody runs, behind what was erased there.

        Raises:
            LogError: the fork can't be read or written.
        """
        taker = CheckpointTaker(fork)
        while taker.fold():
            pass
        taker.know_heads(lambda: True)
        fork.append_now((append_of(fork.log_id, taker.take(self.key), time=self._clock.now_ms()),))

    def stop(self, seconds: float) -> None:
        """Take a last checkpoint of new events, if that is quick, and give publishing this many seconds."""
        until = self._clock.monotonic() + seconds
        self._stop_listening()
        self._stopping = True
        if self._settings().at_stop:
            asked: Future[Last | None] = Future()
            self._submit(filling(asked, self._take_at_stop))
            self._threads.wait(asked, max(seconds, 1.0))
            try:
                asked.result(0)
            except (TooSlow, LogError) as error:
                logger.info("no checkpoint at the stop: %s", described(error))
        self._workers.stop()
        self._publisher.stop(max(until - self._clock.monotonic(), 1.0))

    @property
    def status(self) -> JsonObject:
        """The state of checkpoints: the last one, new events since, unpublished ones, failures."""
        last = self._last
        return {
            "taken": self._taken,
            "position": None if last is None else last.checkpoint.position,
            "takenMs": None if last is None else last.time_ms,
            "ageMs": None if last is None else max(self._clock.now_ms() - last.time_ms, 0),
            "newEvents": self._fresh,
            "keyId": None if self.key is None else self.key.public.id,
            "error": self._error,
            "unpublished": self._publisher.waiting,
            "publishErrors": self._publisher.errors,
        }

    @property
    def _fresh(self) -> int:
        """How many events are new since the last checkpoint, or one more: a reason to look."""
        return self._heard_of - self._seen + self._left

    # --- on the writer's thread

    def _heard(self, batch: Sequence[Recorded]) -> None:
        for recorded in batch:
            if not isinstance(recorded.event, CheckpointTaken | CheckpointPublished):
                self._heard_of += 1
            if isinstance(recorded.event, Erased):
                self._has_erased = True
        self._look_out()

    def _look_out(self) -> None:
        """Take a checkpoint, now or in time, if there is a reason for one."""
        if not self._fresh or self._asked or self._error is not None:
            return
        if self._failures:
            return  # the timer has the next try: a store that is away is not asked without a pause
        # Nobody can tell an erasure that is not covered from a forged one, so each is covered at once.
        if self._has_erased or is_due(self._settings(), self._fresh):
            self._asked = True
            self._submit(self._look)
        elif not self._timed:
            self._set_timer(wait_ms(self._settings()))

    def _set_timer(self, delay_ms: int | None) -> None:
        if delay_ms is not None:
            self._timed = True
            self._timers.after(delay_ms, _TIMER, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timed = False
        self._asked = True
        self._submit(self._look)

    def _submit(self, work: Callable[[], None]) -> None:
        try:
            self._workers.submit(Job(work))
        except RuntimeError:
            self._asked = False  # it stops

    # --- on the thread of its own

    def _begin(self) -> None:
        try:
            if self._fold(lambda: not self._stopping):
                self._publisher.begin()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and no thread waits for it
            self._failed(error)
        else:
            self._look_out()

    def _look(self) -> None:
        try:
            self._take(wanted=False)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
        else:
            self._failures = 0
        self._asked = False
        self._look_out()

    def _take(self, *, wanted: bool) -> Last | None:
        """Take a checkpoint if anything is new; return the last one there is, None if the system stops."""
        if self._stopping or not self._fold(lambda: not self._stopping):
            return None
        if self._taker.fresh or (wanted and self._last is None):
            if not self._taker.know_heads(lambda: not self._stopping):
                return None
            self._append()
        return self._last

    def _take_at_stop(self) -> Last | None:
        self._taker.fold()  # a page, to know how far it is from the head
        if not is_short(self._taker.position, self._log.head()):
            return None
        self._fold(lambda: True)
        if self._taker.fresh:
            if self._taker.has_heads or heads_are_few(self._taker.last, self._taker.position):
                self._taker.know_heads(lambda: True)
            self._append()
        return self._last

    def _fold(self, may_go_on: Callable[[], bool]) -> bool:
        heard_of = self._heard_of  # all of them are committed, so that they are read now
        while self._taker.fold():
            if not may_go_on():
                return False
        self._seen, self._left = heard_of, self._taker.fresh
        self._has_erased = self._has_erased or self._taker.has_erased
        self._took_stock()
        return True

    def _append(self) -> None:
        erased, self._has_erased = self._has_erased, False  # what comes meanwhile is heard of again
        event = self._taker.take(self.key, self._settings().origin)
        append = append_of(self._log.log_id, event, time=self._clock.now_ms())
        try:
            committed = self._log.append_now((append,))
        except LogError:
            self._has_erased = self._has_erased or erased
            self._taker.begin_again()  # it may be in the log all the same
            raise
        (recorded,) = committed.recorded
        self._taker.appended(recorded)
        self._failures, self._left, self._error = 0, 0, None
        self._took_stock()
        self._publisher.add(checkpoint_of(self._log.log_id, event))

    def _took_stock(self) -> None:
        taker = self._taker
        self._taken = taker.taken
        if taker.last is not None:
            self._last = Last(taker.last, taker.last_at, taker.last_time)

    def _failed(self, error: Exception) -> None:
        """Say what failed. A store that is away is asked again; over what can't be read there is no checkpoint."""
        self._failures += 1
        if not isinstance(error, StoreUnavailable):
            self._error = described(error)
        if self._error is None:
            self._set_timer(pause_ms(self._failures))
        # Last: whoever hears of it finds the next try set.
        self._reports.tell("checkpoint_failed", error=error)


def _nothing() -> None:
    return

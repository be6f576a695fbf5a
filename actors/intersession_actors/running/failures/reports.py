"""Reports each failure once: by a log line, by a count, and to the host's `on_failure`, outside of any actor."""

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from math import inf
from textwrap import indent
from typing import Any, Final

from intersession_actors.rules.errors import UNREADABLE
from intersession_actors.running.failures.failure import (
    KINDS,
    LEVELS,
    Failure,
    FailureKind,
    FailureLevel,
    described,
    failure_line,
    one_line,
    traced,
)
from intersession_actors.running.host.calls import Blocking, Call, Inside, Outcome, Outside, Raised
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import MachineThreads, Threads

OnFailure = Callable[[Failure], object]
"""Hears of failures, sync or async; what it returns is not used."""

UNREAD_S: Final = 60.0
"""A store, or a row of it, that can't be read is told this often at most: each caller meets it anew."""

SLOW_TOLD_S: Final = 3600.0
"""That a kind of message took long is told this often at most: on a machine that has too much to do, each does."""

VERY_SLOW_S: Final = 1.0
"""What took less is no warning: a busy machine alone may have made it wait."""

MOST_WAITING: Final = 1_000
"""The most failures that wait for the host's callback; further ones are only logged and counted."""

_own = logging.getLogger("intersession.failures")


class Reports:
    """Where all failures are reported. From any thread; never blocks and never raises."""

    def __init__(
        self,
        *,
        clock: Clock,
        on_failure: OnFailure | None = None,
        hosts_loop: HostsLoop | None = None,
        threads: Threads | None = None,
    ) -> None:
        threads = threads or MachineThreads()
        self._clock = clock
        self._on_failure = on_failure
        self._outside = Outside(pool_size=1, name="on-failure", hosts_loop=hosts_loop, threads=threads)
        self._changed = threads.changed()
        self._counts: Counter[FailureKind] = Counter()
        self._under_way: set[Call] = set()
        self._dropped = 0
        self._store_since: float | None = None
        self._store_error: str | None = None
        self._told_at: dict[tuple[FailureKind, str], float] = {}
        """When what comes again and again was told last."""
        self.blocking = Blocking(clock.monotonic, self._loop_blocked)
        """Hears of code of the host's that blocks an event loop."""

    @property
    def counts(self) -> dict[FailureKind, int]:
        """How many failures of each kind there were since the start."""
        with self._changed:
            return dict(self._counts)

    def tell(
        self,
        kind: FailureKind,
        *,
        error: str | BaseException | None = None,
        traceback: str | None = None,
        level: FailureLevel | None = None,
        inside: Inside = nullcontext,
        **fields: Any,  # the other fields of `Failure`
    ) -> None:
        """Report a failure. An exception given as `error` is described, and its traceback kept.

        It is as loud as its kind is, if no `level` is given; the host's callback is spared what is only `info`.

        The host's callback runs `inside` what is given: what it does because of a run goes on with that run's chain (LOOP-5).
        """
        told = KINDS[kind]
        if isinstance(error, BaseException):
            traceback = traceback or traced(error)
            error = described(error)
        failure = Failure(
            kind=kind,
            level=level or told.level,
            what=told.words,
            time_ms=self._clock.now_ms(),
            error=None if error is None else one_line(error),
            traceback=traceback,
            **fields,
        )
        with self._changed:
            self._counts[kind] += 1
        _log(failure)
        if self._on_failure is not None and failure.level != "info":
            self._hand_over(self._on_failure, failure, inside)

    # --- the store: one line when it goes, one when it is back

    @property
    def store_error(self) -> str | None:
        """Why the store is not available; None while it is."""
        with self._changed:
            return self._store_error

    def store_away(self, error: BaseException | str, **fields: Any) -> None:  # as `tell` has them
        """Note that the store failed. It is reported once, until the store is back."""
        with self._changed:
            begins = self._store_since is None
            if begins:
                self._store_since = self._clock.monotonic()
            self._store_error = one_line(error if isinstance(error, str) else described(error))
        if begins:
            self.tell("store_trouble", error=error, **fields)

    def store_back(self) -> None:
        """Note that the store works."""
        if self._store_error is None:
            return
        with self._changed:
            since, self._store_since, self._store_error = self._store_since, None, None
        if since is not None:
            seconds = self._clock.monotonic() - since
            logging.getLogger("intersession.store").warning("store is available again after %.1f s", seconds)

    def store_unread(self, error: BaseException) -> None:
        """Report a failed read, at most once in `UNREAD_S`, and not while the store is known to be away."""
        kind: FailureKind = "row_unreadable" if isinstance(error, UNREADABLE) else "store_trouble"
        with self._changed:
            due = self._store_since is None and self._is_due(kind, "", UNREAD_S)
        if due:
            self.tell(kind, error=described(error))

    def batch_refused(self, error: str) -> None:
        """Note that one of our own statements, or a view, made a batch fail; each error is reported once, and counted each time."""
        self._tell_now_and_then("batch_refused", error, inf, error=error)

    def slow_handler(self, actor: str, message: str, seconds: float) -> None:
        """Note that an actor took long for a message.

        Each kind of message is told once in `SLOW_TOLD_S`, and once more if it took very long; it is counted each time.
        """
        level: FailureLevel = "warning" if seconds >= VERY_SLOW_S else "info"
        self._tell_now_and_then(
            "slow_handler",
            f"{message} {level}",
            SLOW_TOLD_S,
            level=level,
            actor=actor,
            error=f"{message} took {seconds:.2f} s",
        )

    def _tell_now_and_then(
        self,
        kind: FailureKind,
        what: str,
        every_s: float,
        **fields: Any,  # as `tell` has them
    ) -> None:
        """Tell a failure of which there may be many, at most so often; count it each time."""
        with self._changed:
            due = self._is_due(kind, what, every_s)
            if not due:
                self._counts[kind] += 1
        if due:
            self.tell(kind, **fields)

    def _is_due(self, kind: FailureKind, what: str, every_s: float) -> bool:
        """Return, under the lock, whether something may be told again; it is told then."""
        now = self._clock.monotonic()
        due = now - self._told_at.get((kind, what), -inf) >= every_s
        if due:
            self._told_at[kind, what] = now
        return due

    def _loop_blocked(self, name: str, seconds: float) -> None:
        self.tell(
            "loop_blocked",
            actor=name,
            error=f"it took {seconds:.1f} s between two awaits, use asyncio.to_thread",
        )

    # --- the host's callback

    def stop(self, timeout: float) -> None:
        """Wait until the callback has been told everything, at most this many seconds; it is called no more after that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, timeout)
            left, self._under_way = self._under_way, set()
        for call in left:
            call.cancel()
        if left:
            _own.warning("on_failure did not take %d failures in time", len(left))
        self._outside.stop(timeout)

    def _hand_over(self, on_failure: OnFailure, failure: Failure, inside: Inside) -> None:
        def taken(outcome: Outcome) -> None:
            self._taken(call, outcome)

        call = Call(taken, _too_late)
        with self._changed:
            dropped = self._dropped
            full = len(self._under_way) >= MOST_WAITING
            if full:
                self._dropped += 1
            else:
                self._under_way.add(call)
                self._dropped = 0
        if full:
            if not dropped:
                _own.error(
                    "on_failure is too slow: %d failures wait for it, more are only logged", MOST_WAITING
                )
            return
        if dropped:
            _own.warning("%d failures were not told to on_failure, which is slow", dropped)
        self._outside.call(call, on_failure, failure, inside=inside)

    def _taken(self, call: Call, outcome: Outcome) -> None:
        with self._changed:
            self._under_way.discard(call)
            self._changed.notify_all()
        if isinstance(outcome, Raised):
            error = outcome.error
            _emit(_own, logging.ERROR, f"on_failure raised {described(error)}", traced(error))


def _too_late(_outcome: Outcome) -> None:
    """Do nothing: no caller waits any more."""


def _log(failure: Failure) -> None:
    logger = logging.getLogger(f"intersession.{KINDS[failure.kind].logger}")
    _emit(logger, LEVELS[failure.level], failure_line(failure), failure.traceback, failure=failure)


def _emit(
    logger: logging.Logger, level: int, line: str, traceback: str | None, *, failure: Failure | None = None
) -> None:
    """Log one line with a traceback that is text already: `exc_info` would print what was redacted."""
    if not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(
        logger.name, level, __file__, 0, "%s", (one_line(line),), None, extra={"failure": failure}
    )
    record.exc_text = None if traceback is None else indent(traceback, "    ")
    logger.handle(record)

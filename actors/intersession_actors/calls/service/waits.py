"""Waits for the ends of runs, and for first replies that may go on, by events of the log: answers are the same before, after and across restarts (SEND-9, GATE-3).

A waiter is a future that the commit listener completes: with the event that ended the run, where that is the whole answer. All
else is read from the views.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

from intersession_actors.rules.policy.chain import WaitFor, Waits, judge_wait
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.crash_points import crash_point
from intersession_events.facts import (
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    RunAborted,
    RunEnd,
    ToolCallReleased,
    TurnEnded,
    parts_of,
)
from intersession_events.log.log import Follows
from intersession_events.log.recorded import Recorded

_ANSWERS: Final = TurnEnded | ExchangeReleased | ExchangeClosed
"""Events of an exchange by which the reply of its first run goes on to the waiting session, unless it is held (LIVE-1)."""


End = Future[RunEnd | None]
"""Is done once a run has ended, or its reply may go on: with the event that ended it, or None where the log has to be asked."""


class RunWaits:
    """Futures that are done when a run has ended; or, by the stream of an exchange, when its first reply was released."""

    def __init__(self, log: Follows, run_ended: Callable[[str, str], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[End]] = defaultdict(list)
        self._ended: dict[str, RunEnd | None] = {}
        """How the first runs of exchanges ended that somebody waits for: what lets a reply go on may be told later than its run."""
        self._run_ended = run_ended
        self._stop: Callable[[], None] = log.on_committed(
            self._committed, RunEnd | ExchangeHeld | ToolCallReleased | _ANSWERS
        )

    def expect(self, name: str, first: str | None = None) -> End:
        """Return a future of a run's end, or of an exchange's first reply. Check whether it is there only after this call.

        `first` is the run that gives that reply; a caller that names it gives it to `forget` as well.
        """
        future: End = Future()
        with self._lock:
            self._waiting[name].append(future)
            if first is not None:
                self._ended.setdefault(first)
        return future

    def forget(self, name: str, future: End, first: str | None = None) -> bool:
        """Give a future up; return whether it was still waiting."""
        with self._lock:
            if first is not None:
                self._ended.pop(first, None)
            futures = self._waiting.get(name, [])
            waited = future in futures
            if waited:
                futures.remove(future)
            if not futures:
                self._waiting.pop(name, None)
        return waited

    def finish(self, name: str, future: End) -> None:
        """Complete the future of a run that has ended; its event may arrive here a moment later."""
        if self.forget(name, future):
            _finish(future)

    def close(self) -> None:
        """Stop listening, and let all waiting callers check once more."""
        self._stop()
        with self._lock:
            futures = [future for waiting in self._waiting.values() for future in waiting]
            self._waiting.clear()
        for future in futures:
            _finish(future)

    def _committed(self, batch: Sequence[Recorded]) -> None:
        held = {one.stream for one in batch for part in parts_of(one.event) if isinstance(part, ExchangeHeld)}
        for recorded in batch:
            event = recorded.event
            if isinstance(event, RunEnd):
                self._come(event.run_id, event)
                if self._run_ended is not None:
                    self._run_ended(recorded.stream.removeprefix("session:"), event.run_id)
            elif isinstance(event, ToolCallReleased):
                self._come(event.hold_id, None)
            elif isinstance(event, _ANSWERS) and recorded.stream not in held:
                first_run = event.run_id if isinstance(event, TurnEnded) and event.turn == 0 else ""
                self._come(recorded.stream, self._ended.get(first_run))

    def _come(self, name: str, end: RunEnd | None) -> None:
        with self._lock:
            futures = self._waiting.pop(name, [])
            if isinstance(end, RunAborted) and end.into is not None and futures:
                self._waiting[end.into] += (
                    futures  # another run answers its message, and is behind it (QUEUE-2)
                )
                return
            if name in self._ended:
                self._ended[name] = end
        if futures:
            crash_point("S7")
        for future in futures:
            _finish(future, end)


def _finish(future: End, end: RunEnd | None = None) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(end)


class Wait:
    """One session's wait for another, from inside a run or from outside, `until` seconds of the monotonic clock.

    A session can wait for the same one twice at a time, so two waits are the same only if they are one object.
    """

    def __init__(self, requester: str, target: str, *, run_id: str | None, until: float) -> None:
        self.requester = requester
        self.target = target
        self.run_id = run_id
        self.until = until
        self.give_up: Callable[[], None] = _nothing
        """Lets the thread that waits go on, once nobody is interested in its answer any more."""


class WaitGraph:
    """The present waits between sessions of this process: a cycle is refused at once (SEND-10).

    To look and to begin to wait is one step: two sessions that turn to each other at the same moment are a cycle too.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._waits: dict[str, list[Wait]] = {}
        """The waits, by waiting session; no list is empty."""

    def begin(
        self, requester: str, target: str, *, seconds: float, run_id: str | None = None
    ) -> Wait | tuple[str, ...]:
        """Begin a wait, or return the path of the cycle that it would close."""
        with self._lock:
            now = self._now()
            waits = self._waits_from(target, now)
            path = judge_wait(WaitFor(requester=requester, target=target), Waits(waits=waits))
            if path is not None:
                return path
            begun = Wait(requester, target, run_id=run_id, until=now + seconds)
            # A run that was cut off while it waited never ended its wait; only its time did.
            before = [wait for wait in self._waits.get(requester, ()) if wait.until > now]
            self._waits[requester] = [*before, begun]
            return begun

    def end(self, wait: Wait) -> None:
        """End a wait; may be called again."""
        with self._lock:
            waits = self._waits.get(wait.requester, [])
            if wait in waits:
                waits.remove(wait)
            if not waits:
                self._waits.pop(wait.requester, None)

    def waiting_runs(self) -> frozenset[str]:
        """Return the runs that wait for a session now."""
        with self._lock:
            return frozenset(
                wait.run_id for waits in self._waits.values() for wait in waits if wait.run_id is not None
            )

    def run_ended(self, session_key: str, run_id: str) -> None:
        """End the waits of an ended run."""
        with self._lock:
            over = [wait for wait in self._waits.get(session_key, ()) if wait.run_id == run_id]
        for wait in over:
            self.end(wait)
            wait.give_up()

    def _waits_from(self, target: str, now: float) -> tuple[tuple[str, str], ...]:
        """Return the waits between sessions, as far as they lead from a session."""
        found: dict[tuple[str, str], None] = {}
        left, seen = [target], {target}
        while left:
            for wait in self._waits.get(left.pop(), ()):
                if wait.until > now:
                    found[wait.requester, wait.target] = None
                if wait.until > now and wait.target not in seen:
                    seen.add(wait.target)
                    left.append(wait.target)
        return tuple(found)


def _nothing() -> None:
    return


class OneAtATime:
    """Serialises doors by a name while one queries a view and appends what follows from the answer (SPAWN-3)."""

    def __init__(self, threads: Threads) -> None:
        self._changed = threads.changed()
        self._inside: set[str] = set()

    @contextmanager
    def inside(self, name: str) -> Generator[None]:
        """Wait until no other caller of this name is inside, for the time of a block."""
        with self._changed:
            self._changed.wait_for(lambda: name not in self._inside)
            self._inside.add(name)
        try:
            yield
        finally:
            with self._changed:
                self._inside.remove(name)
                self._changed.notify_all()

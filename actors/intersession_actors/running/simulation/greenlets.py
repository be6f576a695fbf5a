"""The greenlets of a simulation: one runs until it waits, and time passes only when none can run."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

from greenlet import GreenletExit, getcurrent, greenlet

from intersession_events.basics.errors import IntersessionError

BEGINNING_MS: Final = 1_700_000_000_000


class Stuck(IntersessionError, RuntimeError):
    """A greenlet waits for ever in a simulation without any work left."""


class SimulatedClock:
    """A clock that moves only on command. Both clocks move together, unless the wall clock is set."""

    def __init__(self, now_ms: int = BEGINNING_MS) -> None:
        self._began_ms = now_ms
        self._passed_us = 0

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return self._began_ms + self._passed_us // 1000

    def monotonic(self) -> float:
        """Return seconds since the beginning."""
        return self._passed_us / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass. Its waiters wake in the next step."""
        self._passed_us += max(round(seconds * 1_000_000), 0)

    def set_wall(self, now_ms: int) -> None:
        """Set the wall clock, like an operator or NTP; the monotonic clock does not notice."""
        self._began_ms = now_ms - self._passed_us // 1000


class Sleeper:
    """A waiting greenlet, or (None) the driver of the simulation."""

    __slots__ = ("greenlet", "up", "woken")

    def __init__(self, sleeping: "greenlet | None") -> None:
        self.greenlet = sleeping
        self.woken = False
        """Whether it was woken by somebody; else it was the time."""
        self.up = False
        """Whether it goes on, for whichever reason."""


class _Task(greenlet):
    """A greenlet of a simulation; not the driver of the simulation."""


class Greenlets:
    """The greenlets of a simulation: which can run, which wait, and until when."""

    def __init__(self, clock: SimulatedClock, rng: Random) -> None:
        self.clock = clock
        self._rng = rng
        self._ready: list[Callable[[], object]] = []
        self._alarms: list[tuple[float, int, Sleeper]] = []
        self._numbers = count()
        self._alive: dict[greenlet, None] = {}
        self._stepping = False
        self._over = False
        self.at_end: list[Callable[[], object]] = []
        """What is ended with it, behind its greenlets: event loops."""
        self.more: Callable[[], Callable[[], object] | None] = _nothing_more
        """Asked at each step for one more thing that could be done: the log's work."""

    # --- what is done, one thing at a time

    def add(self, work: Callable[[], object]) -> None:
        """Queue a function as a step of its own; the seed decides when it runs."""
        if not self._over:
            self._ready.append(work)

    def step(self, *, early: float = 0.0, until: float | None = None) -> bool:
        """Do one of the possible steps; if there is none, let time pass to the next waiter.

        `early` is how probable it is that time passes although there is work. No time passes behind `until`.
        False if nothing was done.
        """
        if self._stepping:
            raise RuntimeError("a step of the simulation waited; only what runs on a thread may")
        if early and self._alarms and self._rng.random() < early and self._pass_time(until):
            return True
        self._wake_due()
        more = self.more()
        choices = len(self._ready) + (more is not None)
        if not choices:
            return self._pass_time(until)
        chosen = self._rng.randrange(choices) if choices > 1 else 0
        if chosen == len(self._ready) and more is not None:
            work = more
        else:
            self._ready[chosen], self._ready[-1] = self._ready[-1], self._ready[chosen]
            work = self._ready.pop()
        self._stepping = True
        try:
            work()
        finally:
            self._stepping = False
        return True

    def run_until(
        self, happened: Callable[[], bool], *, early: float = 0.0, timeout: float | None = None
    ) -> bool:
        """Step until a condition is true; False if it is not within this many seconds of the simulation's time.

        Raises:
            Stuck: nothing is left to be done, and there is no timeout.
        """
        until = None if timeout is None else self.clock.monotonic() + timeout
        while not happened():
            if until is not None and self.clock.monotonic() >= until:
                return False
            if not self.step(early=early, until=until):
                if until is None:
                    raise Stuck("nothing is left to be done, and what is waited for has not happened")
                self.clock.advance(until - self.clock.monotonic())
        return True

    def end(self) -> None:
        """Drop all running, waiting and queued work; nothing can begin any more."""
        self._over = True
        self._ready.clear()
        self._alarms.clear()
        alive, self._alive = list(self._alive), {}
        for one in alive:
            if one is not getcurrent():
                one.throw(GreenletExit)
        for end in self.at_end:
            end()

    # --- waiting

    def start(self, run: Callable[[], object]) -> greenlet:
        """Run a function in a greenlet of its own."""

        def runs() -> None:
            try:
                run()
            finally:
                self._alive.pop(started, None)

        if self._over:
            raise RuntimeError("the simulation is over")
        started = _Task(runs)
        self._alive[started] = None
        self.add(lambda: self._go_on(started))
        return started

    def here(self) -> Sleeper:
        """Return the caller as a sleeper, for the one that will wake it."""
        here = getcurrent()
        return Sleeper(here if isinstance(here, _Task) else None)

    def wake(self, sleeper: Sleeper) -> None:
        """Let a sleeper go on."""
        sleeper.woken = True
        self._let_go_on(sleeper)

    def sleep(self, sleeper: Sleeper, timeout: float | None = None) -> bool:
        """Wait until the caller is woken; False after a timeout."""
        me = sleeper.greenlet
        if self._over:
            raise GreenletExit  # a worker that outlives whatever its job raises would wait for the next one
        if me is None:
            return self.run_until(lambda: sleeper.woken, timeout=timeout)
        if me not in self._alive or me.parent is None:
            raise GreenletExit
        if timeout is not None:
            heappush(self._alarms, (self.clock.monotonic() + max(timeout, 0.0), next(self._numbers), sleeper))
        me.parent.switch()
        return sleeper.woken

    def give_way(self) -> None:
        """Let others go first, if the seed says so; for greenlets."""
        sleeper = self.here()
        if sleeper.greenlet is not None:
            self.wake(sleeper)
            self.sleep(sleeper)

    def _let_go_on(self, sleeper: Sleeper) -> None:
        me = sleeper.greenlet
        if not sleeper.up and me is not None:
            sleeper.up = True
            self.add(lambda: self._go_on(me))

    def _go_on(self, waiting: greenlet) -> None:
        if waiting in self._alive:
            waiting.parent = getcurrent()
            waiting.switch()

    def _wake_due(self) -> None:
        now = self.clock.monotonic()
        while self._alarms and self._alarms[0][0] <= now:
            self._let_go_on(heappop(self._alarms)[2])

    def _pass_time(self, until: float | None) -> bool:
        while self._alarms and self._alarms[0][2].up:
            heappop(self._alarms)
        if not self._alarms or (until is not None and self._alarms[0][0] > until):
            return False
        self.clock.advance(self._alarms[0][0] - self.clock.monotonic())
        self._wake_due()
        return True


def _nothing_more() -> None:
    return None

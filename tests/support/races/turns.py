"""Threads of which one runs at a time, as greenlets: at each statement of the code that is tried it may be another's turn.

`Lock`, `Condition`, `SimpleQueue` and `Thread` are put in the place of `threading`'s and `queue`'s own where the code that is
tried takes them from. They do the same, but who has to wait for one hands its turn on.
"""

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import Empty
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from greenlet import GreenletExit, getcurrent, greenlet

MOST_TURNS: Final = 20_000


class Deadlock(Exception):
    """Somebody waits for what nobody will do any more, or they go on without end."""


class Racer(greenlet):
    """A thread that takes turns."""

    def __init__(self, name: str, run: Callable[[], object], *, serves: bool) -> None:
        super().__init__(run)
        self.name = name
        self.serves = serves
        """Nobody waits for its end: a thread of a pool."""
        self.waits: Callable[[], bool] | None = None
        """Whether it may go on, if it waits."""
        self.in_time = False
        """Whether it goes on without that, too: time passes."""
        self.thread: object = None
        """What stands for it in the code that is tried."""


Choose = Callable[[int], int]
"""Is given how many could be next, the plain choice first, and returns which is."""


class Turns:
    """One race: its threads, and whose turn it is."""

    now: ClassVar["Turns | None"] = None

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._racers: list[Racer] = []
        self._left = MOST_TURNS
        self._next: Racer | None = None

    # --- for whoever drives it

    @contextmanager
    def taken(self) -> Generator[Self]:
        """Be the race that locks, conditions and queues belong to, for a block."""
        Turns.now = self
        try:
            yield self
        finally:
            Turns.now = None
            for racer in self._racers:
                racer.throw(GreenletExit)

    def add(self, run: Callable[[], object], name: str, *, serves: bool = False) -> Racer:
        """Add a thread to the race."""
        racer = Racer(name, run, serves=serves)
        self._racers.append(racer)
        return racer

    def go(self) -> None:
        """Have all threads take turns until none can go on.

        Raises:
            Deadlock: one that somebody waits for is not at its end then.
            BaseException: whatever one of them raised.
        """
        while True:
            racer, self._next = self._next, None
            if racer is None:  # (one that has not begun is false, too)
                racer = self._chosen(None)
            if racer is None:
                break
            racer.parent = getcurrent()
            racer.switch()
        if left := [racer.name for racer in self._racers if not racer.dead and not racer.serves]:
            raise Deadlock(f"{', '.join(left)} can't go on")

    # --- for the threads

    def turn(self) -> None:
        """Let another have its turn, if the plan says so."""
        me = getcurrent()
        if isinstance(me, Racer):
            self._hand_on(me)

    def wait(self, until: Callable[[], bool], *, in_time: bool = False) -> bool:
        """Wait until something is so; with `in_time` perhaps not so long. Return whether it is."""
        me = getcurrent()
        if not isinstance(me, Racer):
            raise Deadlock("nobody else can do anything before the race")
        me.waits, me.in_time = until, in_time
        self._hand_on(me)
        me.waits, me.in_time = None, False
        return until()

    def _hand_on(self, me: Racer) -> None:
        chosen = self._chosen(me)
        if chosen is not me and me.parent is not None:
            self._next = chosen
            me.parent.switch()

    def _chosen(self, me: Racer | None) -> Racer | None:
        """Say whose turn it is; None if nobody can go on."""
        choices: list[Racer] = []
        late: list[Racer] = []
        for one in self._racers:
            if one.dead:
                continue
            if one.waits is None or one.waits():
                choices.insert(0 if one is me else len(choices), one)
            elif one.in_time:
                late.append(one)
        choices += late
        self._left -= 1
        if self._left < 0:
            raise Deadlock(f"they go on and on for {MOST_TURNS} turns")
        if len(choices) < 2:
            return choices[0] if choices else None
        return choices[self._choose(len(choices))]


def turn() -> None:
    """Let another have its turn, in the code that is tried; outside of a race it says nothing."""
    if Turns.now is not None:
        Turns.now.turn()


def _turns() -> Turns:
    if Turns.now is None:
        raise GreenletExit  # one that is left of a race that is over
    return Turns.now


class Lock:
    """`threading.Lock`."""

    def __init__(self) -> None:
        self._is_held = False

    def acquire(self) -> bool:
        if self._is_held:
            _turns().wait(lambda: not self._is_held)
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.release()


class Condition(Lock):
    """`threading.Condition`."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[list[bool]] = []

    def wait(self, timeout: float | None = None) -> bool:
        woken = [False]
        self._waiting.append(woken)
        self.release()
        _turns().wait(lambda: woken[0], in_time=timeout is not None)
        self._waiting = [one for one in self._waiting if one is not woken]
        self.acquire()
        return woken[0]

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        while not predicate():
            if not self.wait(timeout):
                return predicate()
        return True

    def notify(self, n: int = 1) -> None:
        for woken in self._waiting[:n]:
            woken[0] = True
        del self._waiting[:n]

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class SimpleQueue:
    """`queue.SimpleQueue`."""

    def __class_getitem__(cls, _: object) -> type["SimpleQueue"]:
        return cls

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: object) -> None:
        self._items.append(item)

    def get(self, timeout: float | None = None) -> Any:  # whatever was put
        if not self._items:
            _turns().wait(lambda: bool(self._items), in_time=timeout is not None)
        if not self._items:
            raise Empty
        return self._items.popleft()


class Thread:
    """`threading.Thread`, whose end nobody waits for but by `join`."""

    def __init__(self, *, target: Callable[[], object], name: str, daemon: bool) -> None:
        del daemon
        self._racer = _turns().add(target, name, serves=True)
        self._racer.thread = self
        self._racer.waits = lambda: False

    def start(self) -> None:
        self._racer.waits = None

    def join(self, timeout: float | None = None) -> None:
        _turns().wait(lambda: self._racer.dead, in_time=timeout is not None)

    @staticmethod
    def current() -> object:
        """`threading.current_thread`, as far as anybody compares it."""
        me = getcurrent()
        return me.thread if isinstance(me, Racer) else None

"""The kernel keeps its word in whatever order its threads take turns: inbox, hand-over in the pool, group commit, waits.

Each race is tried in every order that departs from the plain one at most so often, at any statement of the
code. A race that is planted into that code shows that it would be found.
"""

import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import patch

import pykka
import pytest
from greenlet import GreenletExit
from pykka._envelope import Envelope

from intersession_actors.calls.service import waits
from intersession_actors.calls.service.waits import OneAtATime, RunWaits, Wait, WaitGraph
from intersession_actors.running.runtime import inbox, pool
from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.inbox import Inbox, InboxFull, a_stop
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import RunCompleted, RunEnd
from intersession_events.stores.portable import group_commit
from intersession_events.stores.portable.group_commit import GroupCommit, Work
from support.every_day import every_day
from support.races import Condition, Lock, Race, SimpleQueue, Thread, Turns, explored, with_turns

THREADS: Final = SimpleNamespace(
    Thread=Thread, Lock=Lock, RLock=Lock, Condition=Condition, current_thread=Thread.current
)

Planted = Callable[[], AbstractContextManager[object]]


@contextmanager
def simulated_threads() -> Generator[None]:
    """Have the kernel take its locks, conditions, queues and threads from the race."""
    with (
        patch.object(inbox, "Lock", Lock),
        patch.object(pool, "SimpleQueue", SimpleQueue),
        patch.object(pool, "threading", THREADS),
        patch.object(group_commit, "threading", THREADS),
        patch.object(group_commit, "SimpleQueue", SimpleQueue),
        patch.object(waits, "threading", THREADS),
    ):
        yield


class Unlocked:
    """A lock that keeps nobody out."""

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


# --- the inbox


def reads(box: Inbox, bell: SimpleQueue, read: list[str]) -> None:
    """Read letters whenever it rings, until one is no text."""
    while bell.get() is None:
        while (letter := box.take()) is not None:
            if not isinstance(letter.message, str):
                return
            read.append(letter.message)


def letters(turns: Turns) -> Callable[[], None]:
    """Two send, one reads until it sleeps, and is woken; then somebody closes, if it is idle."""
    box, bell, read, refused = Inbox(), SimpleQueue(), list[str](), list[str]()
    box.wake = lambda: bell.put(None)

    def send(*texts: str) -> None:
        for text in texts:
            try:
                box.put(Envelope(text))
            except pykka.ActorDeadError:
                refused.append(text)

    turns.add(lambda: send("a1", "a2"), "a")
    turns.add(lambda: send("b1"), "b")
    turns.add(lambda: box.close_if_idle(from_inside=False), "closer")
    turns.add(partial(reads, box, bell, read), "reader", serves=True)

    def holds() -> None:
        assert Counter(read + refused) == Counter(["a1", "a2", "b1"])
        assert [text for text in read if text[0] == "a"] == ["a1", "a2"][: len(read) - ("b1" in read)]

    return holds


def falls_asleep_late() -> AbstractContextManager[object]:
    """Whoever found nothing is taken for awake until a moment later: what comes meanwhile wakes nobody."""

    def take(self: Inbox) -> Any:
        with self._lock:
            found = self._mail.popleft() if self._mail else None
            if found is None and self._stop is not None:
                self._closed = True
                found, self._stop = self._stop, None
        if found is None:
            with self._lock:
                self._awake = False
        self.current = found
        return found

    return patch.object(Inbox, "take", take)


def looks_before_it_locks() -> AbstractContextManager[object]:
    """Whether it is open is seen before the lock is taken: mail comes into an inbox that is closed."""

    def put(self: Inbox, envelope: Any, *, urgent: bool = False) -> None:
        del urgent
        closed = self._closed or self._stop is not None
        if closed:
            raise pykka.ActorDeadError("closed")
        with self._lock:
            self._mail = self._mail if self._mail is not None else deque()
            self._mail.append(envelope)
            wake = not self._awake
            self._awake = True
        if wake:
            self.wake()

    return patch.object(Inbox, "put", put)


def bounded(turns: Turns) -> Callable[[], None]:
    """Two send to an inbox with room for one, somebody has to be heard in any case, and somebody stops the actor."""
    box, bell, read, refused, most = Inbox(), SimpleQueue(), list[str](), list[str](), list[int]()
    box.wake, box.limit = lambda: bell.put(None), 1

    def send(text: str, *, urgent: bool = False) -> None:
        try:
            box.put(Envelope(text), urgent=urgent)
        except (pykka.ActorDeadError, InboxFull):
            refused.append(text)
        most.append(box._waiting())

    turns.add(lambda: send("a"), "a")
    turns.add(lambda: send("b"), "b")
    turns.add(lambda: send("now", urgent=True), "urgent")
    turns.add(lambda: box.put(a_stop()), "stopper")
    turns.add(partial(reads, box, bell, read), "reader", serves=True)

    def holds() -> None:
        assert sorted(read + refused) == ["a", "b", "now"]
        assert max(most) <= 2, "more wait than there is room for, and what is urgent"
        assert not box.is_open
        assert box.take() is None

    return holds


def counts_beside_its_lock() -> AbstractContextManager[object]:
    """Whether there is room is seen before the lock is taken: two have it who see it at once."""

    def put(self: Inbox, envelope: Any, *, urgent: bool = False) -> None:
        is_full = self.limit is not None and not urgent and self._waiting() >= self.limit
        is_stop = not isinstance(envelope.message, str)
        with self._lock:
            if self._closed or (self._stop is not None and not urgent):
                raise pykka.ActorDeadError("closed")
            if is_stop:
                self._stop = envelope
            elif is_full:
                raise InboxFull(self.name, 1)
            else:
                self._mail = self._mail if self._mail is not None else deque()
                self._mail.append(envelope)
            wake = not self._awake
            self._awake = True
        if wake:
            self.wake()

    return patch.object(Inbox, "put", put)


# --- the hand-over in the pool


class Counts(Handler):
    """An actor that notices when it is at two messages at a time."""

    def __init__(self, seen: list[int], traced: Callable[[], None]) -> None:
        super().__init__()
        self._seen = seen
        self._traced = traced
        self._inside = False

    def on_receive(self, message: Any) -> None:
        assert not self._inside, "two threads handle one actor"
        self._inside = True
        self._traced()
        self._inside = False
        self._seen.append(message)


def handed_over(turns: Turns) -> Callable[[], None]:
    """Two threads of a pool, one actor, two who tell it something."""
    seen, failed = list[int](), list[object]()
    runtime = PooledRuntime(threads=2, monotonic=lambda: 0.0)
    counts = runtime.start(Counts, seen, turns.turn, name="counts", on_failure=failed.append)

    def tells(*numbers: int) -> None:
        for number in numbers:
            counts.tell(number)

    turns.add(lambda: tells(1, 2), "a")
    turns.add(lambda: tells(3), "b")

    def holds() -> None:
        assert failed == []
        assert sorted(seen) == [1, 2, 3]
        assert [number for number in seen if number < 3] == [1, 2]

    return holds


def wakes_who_is_awake() -> AbstractContextManager[object]:
    """Each message puts its actor into the queue: two threads take it out."""

    def put(self: Inbox, envelope: Any, *, urgent: bool = False) -> None:
        del urgent
        with self._lock:
            self._mail = self._mail if self._mail is not None else deque()
            self._mail.append(envelope)
            self._awake = True
        self.wake()

    return patch.object(Inbox, "put", put)


# --- group commit


class Item:
    """A piece of work."""

    def __init__(self, name: str, *, alone: bool = False) -> None:
        self.name = name
        self.alone = alone
        self.told: list[Exception | None] = []

    def done(self, error: Exception | None) -> None:
        self.told.append(error)


def committed(turns: Turns) -> Callable[[], None]:
    """Three submit, of which one has time and one has to be alone, and somebody closes."""
    written, accepted, closed = list[Item](), list[Item](), list[int]()

    def write(batch: Sequence[Any]) -> None:
        assert len(batch) == 1 or not any(item.alone for item in batch)
        written.extend(batch)
        for item in batch:
            item.done(None)

    commits = GroupCommit(write)

    def submit(item: Any, *, patient: bool = False) -> None:
        try:
            commits.submit(item, patient=patient)
        except StoreUnavailable:
            return
        accepted.append(item)

    def a() -> None:
        submit(Item("a1"), patient=True)
        submit(Item("a2", alone=True))

    def close() -> None:
        commits.close()
        closed.append(len(written))

    turns.add(a, "a")
    turns.add(lambda: submit(Item("b1")), "b")
    turns.add(close, "closer")

    def holds() -> None:
        assert sorted(item.name for item in written) == sorted(item.name for item in accepted)
        assert all(item.told == [None] for item in accepted)
        assert closed == [len(written)], "it was closed before all was written"
        assert [item.name for item in written if item.name[0] == "a"] in ([], ["a1"], ["a1", "a2"])

    return holds


def puts_beside_its_lock() -> AbstractContextManager[object]:
    """Work is put in its place beside the lock: of two who look where the end is, one is written over."""

    def submit(self: GroupCommit, work: Any, *, patient: bool = False) -> None:
        waiting = list(self._waiting)
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the log is closed")
            self._waiting = deque([*waiting, work])
            self._hurried = not patient
            if self._thread is None:
                self._thread = thread = THREADS.Thread(target=self._run, name="writer", daemon=True)
                thread.start()
            called = self._wakes()
        if called:
            self._called.put(None)

    return patch.object(GroupCommit, "submit", submit)


def sleeps_through_its_end() -> AbstractContextManager[object]:
    """The thread looks whether it is to end, and then, a moment later, begins to wait to be told so."""

    def _next(self: GroupCommit) -> Sequence[Any]:
        while not self._closed or self._waiting:
            with self._lock:
                if self._waiting:
                    return self._take()
                self._asleep = group_commit._Asleep.FOR_WORK
            self._called.get()
        return []

    return patch.object(GroupCommit, "_next", _next)


def broken_off(turns: Turns) -> Callable[[], None]:
    """Three submit, and the writer's thread ends at the first: by something worse than an error."""
    told = Counter[str]()

    def write(_: Sequence[Any]) -> None:
        raise GreenletExit

    commits = GroupCommit(write)

    def submit(name: str, *, patient: bool) -> None:
        work = cast("Work", SimpleNamespace(alone=False, done=lambda _: told.update([name])))
        try:
            commits.submit(work, patient=patient)
        except StoreUnavailable:
            told.update([name])

    for name, patient in (("a", True), ("b", False), ("c", True)):
        turns.add(partial(submit, name, patient=patient), name)

    def holds() -> None:
        # Those of the batch that was under way are told by whoever writes it.
        assert max(told.values(), default=0) <= 1, "somebody is told twice"
        assert not commits.has_work, "somebody waits for a thread that has ended"

    return holds


def looks_who_is_left_before_it_closes() -> AbstractContextManager[object]:
    """A writer that ends tells those who wait, and then says that it is closed: who comes in between is never told."""

    def _run(self: GroupCommit) -> None:
        try:
            while batch := self._next():
                self._write(batch)
        finally:
            left = list(self._waiting)
            self._waiting.clear()
            for work in left:
                work.done(StoreUnavailable("it has stopped"))
            with self._lock:
                self._closed = True

    return patch.object(GroupCommit, "_run", _run)


# --- waits


class Commits:
    """What a log is to those who listen to its commits."""

    def __init__(self) -> None:
        self.listener: Any = None
        self.ended = False

    def on_committed(self, listener: Any, of: Any = None) -> Callable[[], None]:
        del of
        self.listener = listener
        return lambda: None

    def commit(self) -> None:
        self.ended = True
        end = RunCompleted(run_id="run", attempt=1, text="yes")
        self.listener([SimpleNamespace(event=end, stream="session:x")])


def waited(turns: Turns) -> Callable[[], None]:
    """Two wait for a run that ends just now; one of them gives up in between."""
    log = Commits()
    listening = RunWaits(log)  # type: ignore[arg-type]  # all that it asks of a log
    told: list[str] = []

    def wait(name: str) -> None:
        future = listening.expect("run")
        if log.ended:
            listening.finish("run", future)
        turns.wait(future.done)
        told.append(name)

    def gives_up() -> None:
        future = listening.expect("run")
        if not listening.forget("run", future):
            turns.wait(future.done)

    turns.add(lambda: wait("a"), "a")
    turns.add(lambda: wait("b"), "b")
    turns.add(gives_up, "c")
    turns.add(log.commit, "log")

    def holds() -> None:
        assert sorted(told) == ["a", "b"]
        assert listening._waiting == {}

    return holds


def pops_what_it_has_read() -> AbstractContextManager[object]:
    """Those who wait are looked up first and taken away later: who comes in between is never told."""

    def _come(self: RunWaits, name: str, end: RunEnd | None) -> None:
        futures = list(self._waiting.get(name, []))
        with self._lock:
            self._waiting.pop(name, None)
        for future in futures:
            waits._finish(future, end)

    return patch.object(RunWaits, "_come", _come)


def let_go(turns: Turns) -> Callable[[], None]:
    """Two wait for runs, of which one ends, and just now nobody listens any more: both look once more."""
    log = Commits()
    listening = RunWaits(log)  # type: ignore[arg-type]  # all that it asks of a log
    began = list[tuple[str, Any]]()

    def wait(name: str) -> None:
        future = listening.expect(name)
        began.append((name, future))

    turns.add(lambda: wait("run"), "a")
    turns.add(lambda: wait("another"), "b")
    turns.add(listening.close, "closer")
    turns.add(log.commit, "log")

    def holds() -> None:
        left = [future for futures in listening._waiting.values() for future in futures]
        for name, future in began:
            assert future.done() or future in left, f"{name} is forgotten, and was never told"

    return holds


def clears_what_it_has_not_seen() -> AbstractContextManager[object]:
    """Those who wait are looked up beside the lock, and all are forgotten: also who came in between."""

    def close(self: RunWaits) -> None:
        self._stop()
        futures = [future for waiting in self._waiting.values() for future in waiting]
        with self._lock:
            self._waiting.clear()
        for future in futures:
            waits._finish(future)

    return patch.object(RunWaits, "close", close)


def round_about(turns: Turns) -> Callable[[], None]:
    """Two sessions turn to each other at the same moment: one of them is refused."""
    graph, begun = WaitGraph(lambda: 0.0), list[object]()
    turns.add(lambda: begun.append(graph.begin("a", "b", seconds=9, run_id="r")), "a")
    turns.add(lambda: begun.append(graph.begin("b", "a", seconds=9, run_id="r")), "b")

    def holds() -> None:
        assert sum(isinstance(one, Wait) for one in begun) == 1

    return holds


def keeps_nobody_out() -> AbstractContextManager[object]:
    """The graph of waits has no lock."""
    return patch.object(waits, "threading", SimpleNamespace(Lock=Unlocked))


def one_by_one(turns: Turns) -> Callable[[], None]:
    """Three want to be inside under one name, and one under another."""
    doors, inside, most = OneAtATime(SimpleNamespace(changed=Condition)), Counter[str](), Counter[str]()

    def enter(name: str) -> None:
        with doors.inside(name):
            inside[name] += 1
            most[name] = max(most[name], inside[name])
            turns.turn()
            inside[name] -= 1

    for number, name in enumerate("xxxy"):
        turns.add(partial(enter, name), f"{name}{number}")

    def holds() -> None:
        assert most == {"x": 1, "y": 1}

    return holds


def enters_when_it_was_free() -> AbstractContextManager[object]:
    """Somebody who saw that nobody was inside goes in a moment later."""

    @contextmanager
    def inside(self: OneAtATime, name: str) -> Generator[None]:
        with self._changed:
            self._changed.wait_for(lambda: name not in self._inside)
        with self._changed:
            self._inside.add(name)
        try:
            yield
        finally:
            with self._changed:
                self._inside.discard(name)
                self._changed.notify_all()

    return patch.object(OneAtATime, "inside", inside)


RACES: Final[dict[Race, tuple[ModuleType, ...]]] = {
    letters: (inbox,),
    bounded: (inbox,),
    handed_over: (pool, inbox),
    committed: (group_commit,),
    broken_off: (group_commit,),
    waited: (waits,),
    let_go: (waits,),
    round_about: (waits,),
    one_by_one: (waits,),
}
"""Each race, and the code at whose lines another may get its turn."""

PLANTED: Final[tuple[tuple[Planted, Race], ...]] = (
    (falls_asleep_late, letters),
    (looks_before_it_locks, letters),
    (counts_beside_its_lock, bounded),
    (wakes_who_is_awake, handed_over),
    (puts_beside_its_lock, committed),
    (sleeps_through_its_end, committed),
    (looks_who_is_left_before_it_closes, broken_off),
    (pops_what_it_has_read, waited),
    (clears_what_it_has_not_seen, let_go),
    (keeps_nobody_out, round_about),
    (enters_when_it_was_free, one_by_one),
)


@pytest.mark.clause("L10")
@pytest.mark.parametrize(
    "race",
    every_day(
        {race.__name__: race for race in RACES},
        *(race.__name__ for race in RACES if race not in {committed, letters}),
    ),
)
def test_no_order_of_threads_breaks_the_kernel(race: Race) -> None:
    _holds(race, departures=1 if race in {bounded, handed_over} else 2)


@pytest.mark.nightly
@pytest.mark.clause("L10")
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("race", RACES)
def test_no_order_that_departs_more_often_breaks_the_kernel(race: Race) -> None:
    _holds(race, departures=3)


def _holds(race: Race, *, departures: int) -> None:
    with simulated_threads(), with_turns(*RACES[race]):
        found = explored(race, departures=departures)

    assert found.error is None, f"{found.failed}: {found.error!r}"
    assert found.orders > 1


@pytest.mark.clause("L10")
@pytest.mark.parametrize(("planted", "race"), PLANTED)
def test_a_race_that_is_planted_is_found(planted: Planted, race: Race) -> None:
    here = sys.modules[__name__]
    with simulated_threads(), with_turns(*RACES[race]), with_turns(here, only=planted.__name__), planted():
        found = explored(race, departures=3)

    assert found.error is not None
    assert found.orders > 1  # the plain order shows nothing


def test_an_order_that_failed_fails_again() -> None:
    with simulated_threads(), with_turns(inbox, sys.modules[__name__]), falls_asleep_late():
        one, again = (explored(letters, departures=3) for _ in range(2))

    assert one.failed == again.failed

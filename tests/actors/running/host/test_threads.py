"""A thread is woken for what waits, and one at a time: nobody waits behind a job that blocks, and few threads wake for short ones."""

import threading
from collections.abc import Callable
from functools import partial

from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.threads import MachineThreads, Thread

WAIT_S = 30.0


class Deferred(MachineThreads):
    """Threads of the machine that begin when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def start(self, run: Callable[[], object], *, name: str) -> Thread:  # noqa: ARG002 - as `Threads` has it
        """Keep a thread back."""
        self.waiting.append(run)
        return threading.current_thread()  # nobody joins it

    def begin(self) -> threading.Thread:
        """Let the next thread begin."""
        thread = threading.Thread(target=self.waiting.pop(0), daemon=True)
        thread.start()
        return thread


class NoneLeft(MachineThreads):
    """A machine that has one thread left."""

    def __init__(self) -> None:
        self.started = 0

    def start(self, run: Callable[[], object], *, name: str) -> Thread:
        """Start one thread, and no other."""
        self.started += 1
        if self.started > 1:
            raise RuntimeError("can't start new thread")
        return super().start(run, name=name)


def test_short_jobs_are_done_by_the_thread_that_is_awake() -> None:
    threads = Deferred()
    workers = Workers(8, name="test", threads=threads)
    ran, all_ran = list[int](), threading.Event()
    for number in range(5):
        workers.submit(Job(partial(ran.append, number)))
    workers.submit(Job(all_ran.set))
    assert len(threads.waiting) == 1
    threads.begin()
    assert all_ran.wait(WAIT_S)
    assert ran == [0, 1, 2, 3, 4]
    assert len(threads.waiting) == 1, "it was called for the second job, and those behind it need no other"


def test_jobs_that_block_have_a_thread_each() -> None:
    workers = Workers(8, name="test")
    together = threading.Barrier(9)

    def meet() -> None:
        together.wait(WAIT_S)

    for _ in range(8):
        workers.submit(Job(meet))
    together.wait(WAIT_S)
    workers.stop(finish=True)
    assert workers.join(WAIT_S)


def test_where_no_thread_is_left_those_that_come_back_do_the_rest() -> None:
    workers = Workers(8, name="test", threads=NoneLeft())
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go_on.wait(WAIT_S)

    workers.submit(Job(first))
    assert begun.wait(WAIT_S)
    refused = 0
    for run in (lambda: None, over.set):
        try:
            workers.submit(Job(run))
        except RuntimeError:
            refused += 1
    assert refused == 2
    go_on.set()
    assert over.wait(WAIT_S)

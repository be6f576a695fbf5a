"""The threads that stand in for those of asyncio's pool."""

import asyncio
import os
import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest

from intersession_actors.running.host.own_threads import OwnThreads, off_loop

WAIT = 20

asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")


@pytest.mark.clause("L11")
def test_work_is_done_on_a_thread_in_the_context_of_the_caller() -> None:
    async def asks() -> tuple[str, bool]:
        asked_by.set("me")
        return await off_loop(lambda: (asked_by.get(), threading.current_thread().daemon))

    assert asyncio.run(asks()) == ("me", True)


@pytest.mark.clause("L11")
def test_what_it_raises_is_raised_where_it_is_awaited() -> None:
    async def asks() -> None:
        await off_loop(int, "none")

    with pytest.raises(ValueError, match="none"):
        asyncio.run(asks())


@pytest.mark.clause("L11")
def test_a_loop_has_them_as_its_own_and_ends_them() -> None:
    threads = OwnThreads("mine")

    async def asks() -> str:
        asyncio.get_running_loop().set_default_executor(threads)
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(asks()) == "mine"
    with pytest.raises(RuntimeError, match="stopped"):
        threads.submit(int)


def test_what_was_taken_is_finished_and_what_was_cancelled_is_not_begun() -> None:
    threads, go_on = OwnThreads("mine"), threading.Event()
    held = [threads.submit(go_on.wait, WAIT) for _ in range(32)]
    queued: list[Future[int]] = [threads.submit(int, number) for number in ("1", "2")]

    assert queued[0].cancel()
    go_on.set()
    threads.shutdown()

    assert [future.result(WAIT) for future in held] == [True] * 32
    assert queued[1].result(WAIT) == 2


@pytest.mark.clause("D9")
def test_a_fork_has_threads_of_its_own() -> None:
    async def asks() -> int:
        return await off_loop(os.getpid)

    asyncio.run(asks())
    child = os.fork()
    if child == 0:
        os._exit(0 if asyncio.run(asks()) == os.getpid() else 1)

    assert os.waitpid(child, 0)[1] == 0

"""What blocks an event loop: a call that waits is refused at once and names what to await; an agent that does is told of."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from intersession import CalledOnLoop, Failure, SessionSystem, Turn
from intersession_actors.running.host.calls import Blocking
from support.fakes import ManualClock
from support.running import QUIET, SEES_ALL, WAIT, merged

SAID: dict[str, Any] = {"channel": "webchat", "chat_id": "1", "sender": "p", "text": "hi"}

CALLS: dict[str, Callable[[SessionSystem], object]] = {
    "ainbound": lambda system: system.inbound(**SAID, wait=WAIT),
    "tools.acall": lambda system: system.tools().call(
        "sessions_send", {"sessionKey": "agent:main:main", "message": "x"}
    ),
    "gateway.acall": lambda system: system.gateway.call("agent", {"message": "x", "idempotencyKey": "k"}),
    "gateway.acall ": lambda system: system.gateway.perform("agent.wait", {"runId": "x"}),
    "asyncio.to_thread(system.abort": lambda system: system.abort("x"),
    "asyncio.to_thread(system.unbind_thread": lambda system: system.unbind_thread("agent:main:main"),
    "asyncio.to_thread(system.export_openclaw": lambda system: system.export_openclaw("/nowhere/at/all"),
    "asyncio.to_thread(system.import_framework": lambda system: system.import_framework("langgraph", "/no"),
    "asyncio.to_thread(system.import_openclaw": lambda system: system.import_openclaw("/nowhere"),
}


async def _agent(turn: Turn) -> str:
    await asyncio.sleep(0)
    return turn.message


@pytest.mark.clause("L4")
@pytest.mark.parametrize("instead", CALLS)
async def test_a_call_that_would_block_the_loop_names_what_to_await(log_url: str, instead: str) -> None:
    async with SessionSystem(log_url, agents={"main": _agent}, config=merged(SEES_ALL, QUIET)) as system:
        before = system.log.head()
        with pytest.raises(CalledOnLoop, match="would block the event loop") as refused:
            CALLS[instead](system)
        after = system.log.head()
        answer = await system.ainbound(**SAID, wait=WAIT)

    assert instead.strip() in str(refused.value)
    assert before == after  # nothing was done
    assert answer["reply"] == "hi"


@pytest.mark.clause("L4", "L3")
async def test_an_async_agent_that_blocks_in_a_tool_fails_with_words_that_help(log_url: str) -> None:
    async def agent(turn: Turn) -> str:
        await asyncio.sleep(0)
        return str(turn.tools.call("sessions_list", {}))

    async with SessionSystem(log_url, agents={"main": agent}, config=merged(SEES_ALL, QUIET)) as system:
        answer = await system.ainbound(**SAID, wait=WAIT)

    assert answer["status"] == "error"
    assert "await tools.acall(" in answer["error"]


@pytest.mark.clause("L4")
@pytest.mark.parametrize("at_once", [True, False])
def test_an_async_agent_that_blocks_its_loop_is_told_of_once_a_call(log_url: str, at_once: bool) -> None:
    clock, told = ManualClock(), list[Failure]()

    async def agent(_: Turn) -> str:
        for ms in (3_000, 4_000, 5_000) if at_once else (750,) * 12:
            clock.advance(ms)
            await asyncio.sleep(0)
        return "b"

    with SessionSystem(log_url, agents={"main": agent}, clock=clock, on_failure=told.append) as system:
        answer = system.inbound(**SAID, wait=WAIT)
        counted = system.status()["failures"]

    assert answer["reply"] == "b"
    found = [(one.actor, one.error) for one in told if one.kind == "loop_blocked"]
    assert found == (
        [("agent main", "it took 3.0 s between two awaits, use asyncio.to_thread")] if at_once else []
    )
    assert counted.get("loop_blocked", 0) == int(at_once)


@pytest.mark.clause("L3")
async def test_a_blocked_loop_changes_nothing_of_what_a_coroutine_awaits_raises_and_is_cancelled_by() -> None:
    told: list[tuple[str, float]] = []
    times = iter(range(100))
    blocking = Blocking(lambda: float(next(times)), lambda name, seconds: told.append((name, seconds)))

    async def cancelled() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            raise
        return "never"

    async def raises() -> str:
        await asyncio.sleep(0)
        raise StopIteration

    task = asyncio.create_task(blocking.watched("x", cancelled()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(RuntimeError, match="StopIteration"):
        await blocking.watched("y", raises())
    assert await blocking.watched("z", asyncio.sleep(0, "done")) == "done"
    assert told == [("x", 1.0), ("y", 1.0), ("z", 1.0)]

"""Hosts whose event loops end: with each request, or at some point. No accepted run is lost, cut off or frozen (finding A5)."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_events.facts import RunFailed, RunStarted
from support.hosts_loops import end_loop
from support.running import QUIET, SEES_ALL, WAIT, merged, recorded, wait_for_number

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


def asyncio_run(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """As in a script, or in a view of a WSGI host that bridges to asyncio."""
    return asyncio.run(call())


def in_a_task(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """As behind `wait_for` and `gather`: the call is made in a task of its own."""

    async def request() -> Any:
        return (await asyncio.gather(call(), asyncio.sleep(0)))[0]

    return asyncio.run(request())


def on_a_thread_with_a_loop(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """As `async_to_sync` does it: a thread and a loop for each request."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(call())))
    thread.start()
    thread.join(WAIT)
    return answers[0]


class StoppedBetween:
    """As in a notebook or a synchronous bot: one loop, which runs only while a request is served."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def __call__(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return self.loop.run_until_complete(call())


@pytest.mark.clause("L3", "SEND-3")
@pytest.mark.parametrize("run", [asyncio_run, in_a_task, on_a_thread_with_a_loop, StoppedBetween()])
def test_a_loop_for_each_request_leaves_no_run_behind(log_url: str, run: Run) -> None:
    go_on = threading.Event()

    async def agent(turn: Turn) -> str:
        # Still at work when the request that brought its message has long been answered.
        await asyncio.to_thread(go_on.wait, WAIT)
        return f"re {turn.message}"

    with SessionSystem(
        log_url,
        agents={"main": agent},
        config=merged(SEES_ALL, QUIET, {"session": {"dmScope": "per-peer"}}),
    ) as system:
        accepted = [
            run(lambda n=n: system.ainbound(channel="webchat", chat_id=f"{n}", sender=f"{n}", text=f"{n}"))  # type: ignore[misc]
            for n in range(4)
        ]
        wait_for_number(system, RunStarted, 4)
        go_on.set()
        answers = [system.gateway.call("agent.wait", {"runId": given["runId"]}) for given in accepted]
        started = len(recorded(system, RunStarted))

    assert [answer["status"] for answer in answers] == ["ok"] * 4, answers
    assert [answer["reply"] for answer in answers] == [f"re {n}" for n in range(4)]
    if isinstance(run, StoppedBetween):
        end_loop(run.loop)
    else:
        assert started == 4  # none of them was ever on a loop that ended


@pytest.mark.clause("L3")
def test_requests_that_wait_are_answered_each_on_a_loop_of_its_own(log_url: str) -> None:
    async def agent(turn: Turn) -> str:
        await asyncio.sleep(0)
        return f"re {turn.message}"

    with SessionSystem(log_url, agents={"main": agent}, config=merged(SEES_ALL, QUIET)) as system:
        answers = [
            asyncio.run(system.ainbound(channel="webchat", chat_id="1", sender="p", text=f"{n}", wait=WAIT))
            for n in range(4)
        ]
        failed = recorded(system, RunFailed)

    assert [answer["reply"] for answer in answers] == [f"re {n}" for n in range(4)]
    assert failed == []


@pytest.mark.clause("L3", "S5")
def test_a_run_on_a_loop_that_lived_on_and_then_ended_is_tried_again_on_one_of_ours(log_url: str) -> None:
    """The host promised its loop (`async with`), and ended it without ending the system."""
    began = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def agent(turn: Turn) -> str:
        loops.append(asyncio.get_running_loop())
        began.set()
        if turn.attempt == 1:
            await asyncio.Event().wait()
        return f"attempt {turn.attempt}"

    async def host(system: SessionSystem) -> Any:
        await system.__aenter__()
        given = await system.ainbound(channel="webchat", chat_id="1", sender="p", text="x")
        await asyncio.to_thread(began.wait, WAIT)
        return given["runId"], asyncio.get_running_loop()

    with SessionSystem(log_url, agents={"main": agent}, config=merged(SEES_ALL, QUIET)) as system:
        run_id, hosts = asyncio.run(host(system))
        answer = system.gateway.call("agent.wait", {"runId": run_id})

    assert answer["reply"] == "attempt 2"
    assert loops[0] is hosts
    assert loops[1] is not hosts


async def test_a_loop_that_outlives_a_call_gets_the_agents_and_keeps_them(log_url: str) -> None:
    """A bot that has no `async with`: other loops that come and go do not take its agents away."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def agent(turn: Turn) -> str:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return turn.message

    async def say(text: str) -> None:
        answer = await system.ainbound(channel="webchat", chat_id="1", sender="p", text=text, wait=WAIT)
        assert answer["reply"] == text, answer

    system = SessionSystem(log_url, agents={"main": agent}, config=merged(SEES_ALL, QUIET))
    for text in ("one", "two"):
        await say(text)
    await asyncio.to_thread(lambda: asyncio.run(say("from elsewhere")))
    await say("three")
    await system.aclose()

    here = asyncio.get_running_loop()
    assert loops[0] is not here  # nobody knew yet whether it lives on
    assert loops[1:] == [here, here, here]

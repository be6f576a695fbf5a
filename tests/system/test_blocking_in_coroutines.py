"""A call that waits, made in a coroutine, is refused at once and names what to await (finding D9). It used to hang."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from intersession import CalledOnLoop, SessionSystem, Turn
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


BLOCKS = """
import time
from intersession import SessionSystem

async def main(turn):
    time.sleep(0.15)
    return "b"

with SessionSystem(":memory:", agents={"main": main}) as system:
    print(system.inbound(channel="webchat", chat_id="1", sender="p", text="hi", wait=20)["reply"])
"""


def test_python_tells_of_an_agent_that_blocks_the_loop_where_it_is_asked_to() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS],
        env={**os.environ, "PYTHONASYNCIODEBUG": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == "b\n"
    assert re.search(r"^Executing <Task .* took \d\.\d+ seconds$", done.stderr, re.MULTILINE)

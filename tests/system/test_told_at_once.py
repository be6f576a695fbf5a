"""Where nothing can come of a call, the caller is told so at once: in a forked child, of a damaged session (finding A23)."""

import asyncio
import json
import os
import select
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.owners.streams.commands import Appended
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.runtime.actor import Handler, Ref
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import RunQueued
from intersession_events.log.recorded import Committed, Outcome
from support.running import WAIT, Booth, recorded

MAIN = "agent:main:main"
SAID: dict[str, Any] = {"channel": "x", "chat_id": "1", "sender": "1", "text": "hi"}


def echoed(turn: Turn) -> str:
    return turn.message


CALLS: dict[str, Callable[[SessionSystem], Any]] = {
    "inbound": lambda system: system.inbound(**SAID),
    "inbound that waits": lambda system: system.inbound(**SAID, wait=1),
    "ainbound": lambda system: asyncio.run(system.ainbound(**SAID)),
    "a tool": lambda system: system.tools(MAIN).call("sessions_spawn", {"task": "x"}),
    "a tool in a coroutine": lambda system: asyncio.run(
        system.tools().acall("sessions_send", {"sessionKey": MAIN, "message": "x"})
    ),
    "a method": lambda system: system.gateway.call(
        "agent", {"message": "x", "sessionKey": MAIN, "idempotencyKey": "k"}
    ),
    "unbind_thread": lambda system: system.unbind_thread(MAIN),
}


def said_in_a_fork(work: Callable[[], str]) -> str:
    """Do some work in a forked child, and return what it comes to; a child that hangs is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], WAIT)
        if not ready:
            os.kill(child, signal.SIGKILL)
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.clause("D9")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("call", sorted(CALLS))
def test_a_forked_child_is_told_that_the_system_is_its_parents(booth: Booth, call: str) -> None:
    system = booth.start({"main": echoed})
    assert system.inbound(**SAID, wait=WAIT)["status"] == "ok"

    def work() -> str:
        try:
            return json.dumps(CALLS[call](system))
        except ToolRefused as refused:
            return json.dumps(refused.as_result())
        except StoreUnavailable as error:
            return json.dumps({"code": "unavailable", "error": str(error)})

    told = json.loads(said_in_a_fork(work))

    assert told["code"] == "unavailable"
    assert "fork" in told["error"]
    assert system.inbound(**SAID, wait=WAIT)["status"] == "ok", "its parent goes on"


def _has_queued(outcome: Outcome) -> bool:
    return isinstance(outcome, Committed) and any(
        isinstance(one.event, RunQueued) for one in outcome.recorded
    )


class FailsOnce(PooledRuntime):
    """A runtime in which a session fails, once, as it is to hear that its append is durable."""

    fails = False

    def start(self, handler_class: type[Handler], *args: Any, **given: Any) -> Ref:
        """Start an actor."""
        runtime = self

        class Failing(handler_class):  # type: ignore[valid-type, misc]
            def on_receive(self, message: Any) -> None:
                # Of a message: the end of the run before may be told to whoever waits for it before it is told here.
                if isinstance(message, Appended) and runtime.fails and _has_queued(message.outcome):
                    runtime.fails = False
                    raise MemoryError("no room")
                super().on_receive(message)  # pyright: ignore[reportAttributeAccessIssue]

        return super().start(Failing, *args, **given)


def test_a_door_whose_append_is_under_way_when_the_session_fails_is_told(booth: Booth) -> None:
    """Before: it waited for 30 s, though nobody was there any more to answer it."""
    runtime = FailsOnce()
    system = booth.start({"main": echoed}, runtime=runtime)
    first = system.inbound(**SAID, wait=WAIT)
    runtime.fails = True

    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: system.inbound(**SAID, message_id="m")).result(WAIT)
    again = system.inbound(**SAID, message_id="m", wait=WAIT)

    assert (first["status"], second["code"]) == ("ok", "unavailable")
    assert "not known whether" in second["error"]
    assert again["status"] == "ok", "it was recorded, and the session goes on"
    assert len(recorded(system, RunQueued)) == 2

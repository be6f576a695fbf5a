"""A slow disk, a slow read and an agent that does not come back hold those who wait for them, and nobody else (L4).

By order and by what answers, never by time: what is slow is held until all others have answered.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import SessionSystem, Turn, echo
from intersession_actors.owners.session.commands import CheckSend
from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_actors.running.runtime.runtime import Runtime, ThreadingRuntime
from intersession_events.facts import RunCompleted, SessionPatched
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql, SqlValue
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.running import QUIET, SEES_ALL, WAIT, Gate, merged, wait_for_number

MAIN, OPS = "agent:main:main", "agent:ops:main"
TOKENS = {"session": {"agentToAgent": {"limits": {"tokens": 1_000}}}}
RUNTIMES = pytest.mark.parametrize("runtime", [PooledRuntime, ThreadingRuntime])


class Held:
    """A view that holds the commit of one label until it is let go: a sync that takes as long as a test likes."""

    name = "held"
    shape = 1

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def create(self, sql: Sql) -> None:
        """It keeps nothing."""

    def drop(self, sql: Sql) -> None:
        """It keeps nothing."""

    def apply(self, _sql: Sql, events: Sequence[Recorded]) -> None:
        for item in events:
            if isinstance(item.event, SessionPatched) and item.event.values.get("label") == "held":
                self.reached.set()
                assert self.go_on.wait(WAIT)


class Answers(Handler):
    """An actor of the host's on the runtime of the system."""

    def on_receive(self, message: object) -> object:
        return message


def policy_of(system: SessionSystem, key: str) -> object:
    """Ask a session's actor something that is not recorded; wake it if it sleeps."""
    answers = queue.SimpleQueue[object]()
    system.service.supervisor.tell_session(key, CheckSend(channel=None, answer=answers.put))
    return answers.get(timeout=WAIT)


@RUNTIMES
@pytest.mark.clause("L4")
def test_a_commit_that_takes_long_holds_no_reader_and_no_actor_that_does_not_wait_for_it(
    log_url: str, runtime: Callable[[], Runtime]
) -> None:
    slow, running = Held(), runtime()
    log = log_at(log_url, inline=(*inline_views(), slow))
    agents = {"main": echo(), "ops": echo()}
    with (
        log,
        SessionSystem(log, agents=agents, config=merged(SEES_ALL, QUIET), runtime=running) as system,
        ThreadPoolExecutor() as doors,
    ):
        for agent_id in agents:
            system.inbound(channel="x", chat_id="1", sender="p", text="hi", agent_id=agent_id, wait=WAIT)
        patched = doors.submit(system.gateway.call, "sessions.patch", {"key": MAIN, "label": "held"})
        assert slow.reached.wait(WAIT)
        head = log.head()

        # Readers: a list, a history, the log itself.
        listed = doors.submit(system.tools(OPS).call, "sessions_list", {}).result(WAIT)
        history = doors.submit(system.tools(OPS).call, "sessions_history", {"sessionKey": MAIN}).result(WAIT)
        assert len(listed["sessions"]) == 2
        assert [message["content"] for message in history["messages"]] != []
        assert len(list(log.all())) == head
        # Actors: a session's own, also the one whose append is under way, and one of the host's.
        assert policy_of(system, OPS) is not None
        assert running.start(Answers, name="host").ask("hello").get(timeout=WAIT) == "hello"
        assert not patched.done()

        slow.go_on.set()
        assert patched.result(WAIT)["ok"] is True


@RUNTIMES
@pytest.mark.clause("L4", "L3")
def test_agents_that_hang_spin_or_call_back_in_hold_nobody(
    log_url: str, runtime: Callable[[], Runtime]
) -> None:
    hangs, spinning, stop = Gate(), threading.Event(), threading.Event()

    def spins(_turn: Turn) -> str:
        spinning.set()
        while not stop.is_set():
            pass
        return "dizzy"

    def calls(turn: Turn) -> str:
        sent = turn.tools.call("sessions_send", {"sessionKey": "agent:hangs:main", "message": turn.message})
        return str(sent["reply"])

    agents = {"hangs": hangs.saying("here I am"), "spins": spins, "calls": calls, "main": echo()}
    with (
        SessionSystem(log_url, agents=agents, config=merged(SEES_ALL, QUIET), runtime=runtime()) as system,
        ThreadPoolExecutor() as doors,
    ):

        def say(agent_id: str) -> str:
            said = system.inbound(
                channel="x", chat_id="1", sender="p", text="hi", agent_id=agent_id, wait=WAIT
            )
            return str(said["reply"])

        called, spun = doors.submit(say, "calls"), doors.submit(say, "spins")
        hangs.reached()
        assert spinning.wait(WAIT)

        assert [say("main") for _ in range(3)] == ["hi", "hi", "hi"]
        assert not called.done()
        assert not spun.done()

        stop.set()
        hangs.open()
        assert (called.result(WAIT), spun.result(WAIT)) == ("here I am", "dizzy")


class SlowToRead(PortableLog):
    """A log that holds whoever asks which runs a causal chain has had, until it is let go."""

    reading: "queue.SimpleQueue[int]"
    go_on: threading.Event

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Any]:
        if "WHERE root = ?" in statement:
            self.reading.put(self.head())
            assert self.go_on.wait(WAIT)
        return super().query(statement, parameters)


@pytest.mark.clause("L4", "LOOP-5")
def test_a_chain_that_is_read_slowly_holds_only_the_session_that_goes_on_with_it(log_url: str) -> None:
    gate, settings = Gate(), merged(SEES_ALL, QUIET, TOKENS)
    first = SessionSystem(log_url, agents={"main": gate.saying("late")}, config=settings)
    with first, ThreadPoolExecutor() as doors:
        doors.submit(first.inbound, channel="x", chat_id="1", sender="p", text="hi", agent_id="main")
        gate.reached()
        first.close(grace=0)
        gate.open()

    SlowToRead.reading, SlowToRead.go_on = queue.SimpleQueue(), threading.Event()
    with log_at(log_url, SlowToRead, inline=inline_views()) as log:
        agents = {"main": echo(), "ops": echo()}
        with SessionSystem(log, agents=agents, config=settings) as system:
            # The attempt that was cut off is tried again, with what its chain has used: that is read now.
            SlowToRead.reading.get(timeout=WAIT)
            for _ in range(3):
                said = system.inbound(
                    channel="x", chat_id="2", sender="p", text="yes", agent_id="ops", wait=WAIT
                )
                assert said["reply"] == "yes"
            ended_before = [item.stream for item in log.all() if isinstance(item.event, RunCompleted)]
            SlowToRead.go_on.set()
            wait_for_number(system, RunCompleted, 4)

    assert ended_before == [f"session:{OPS}"] * 3

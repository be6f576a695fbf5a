"""A plugin of pytest (`-p support.at_workers`): every agent of every system is called by a worker beside it, in the same process.

So what tests say of chains, holds, budgets and children is tried with agents at workers, as they are (I6). What goes over a network
goes through the gateway's methods here, as JSON.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import msgspec

from intersession import SessionSystem, ToolRefused
from intersession.worker.calls import Calls
from intersession_actors.outside.agents.agents import Agent, function_of
from intersession_actors.outside.agents.recorded import RecordedAgent
from intersession_actors.rules.config.config import Config
from intersession_events.basics.errors import LogError
from intersession_events.log import work_queue
from support.stub_worker import CREDENTIAL

_start, _close, _register = SessionSystem.start, SessionSystem.close, SessionSystem.register_agent
AGAIN_S = 0.02


class DirectLine:
    """The connection of a worker, without a network."""

    def __init__(self, system: SessionSystem) -> None:
        self._system = system
        self._pool = ThreadPoolExecutor(64)
        self._closed = threading.Event()

    def ask(self, method: str, params: Mapping[str, Any], *, again: bool = True) -> "Future[Any]":
        del again
        given = msgspec.json.decode(msgspec.json.encode(params))
        answer: Future[Any] = Future()

        def ask() -> None:
            while not self._closed.is_set() and not answer.cancelled():
                try:
                    found = self._system.gateway.perform(method, given, caller=CREDENTIAL)
                except ToolRefused as refused:
                    if refused.code in {"unavailable", "busy"}:
                        self._closed.wait(AGAIN_S)
                        continue
                    self._settle(answer, refused)
                    return
                except Exception as error:  # noqa: BLE001 - told to whoever asked
                    self._settle(answer, error)
                    return
                self._settle(answer, msgspec.json.decode(msgspec.json.encode(found)))
                return

        with suppress(RuntimeError):
            self._pool.submit(ask)
        return answer

    def _settle(self, answer: "Future[Any]", came: object) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        if isinstance(came, Exception):
            answer.set_exception(came)
        else:
            answer.set_result(came)

    def close(self) -> None:
        self._closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


class BesideWorker:
    """Has the agents of a system."""

    def __init__(self, system: SessionSystem, agents: Mapping[str, Agent]) -> None:
        self.agents = dict(agents)
        self._system = system
        self._work = system.log.work.to_take
        self.line = DirectLine(system)
        self.calls = Calls(
            self._work,
            cast("Any", self.line),
            self.agents,
            {},
            name="beside",
            config=lambda: system.config,
            seats=64,
            hosts_loop=system._parts.hosts_loop,
        )
        self._ended = threading.Event()
        self.announce()
        for run in (self._taking, self._beating):
            threading.Thread(target=run, daemon=True).start()

    def add(self, agent_id: str, agent: Agent) -> None:
        self.agents[agent_id] = agent
        self.calls._executor.register(agent_id, agent)
        self.announce()

    def announce(self) -> None:
        said = {agent: msgspec.json.encode(self.calls.window(agent)).decode() for agent in self.agents}
        self._work.announce(
            work_queue.Worker(name="beside", host="here", version="1", agents=said, channels={}, seats=64)
        )
        workers = self._system._parts.workers
        assert workers is not None
        workers.desk.look()

    def _taking(self) -> None:
        while not self._ended.is_set():
            try:
                for offer in self._work.take("beside", 64, 1.0):
                    self.calls.begin(offer, time.monotonic())
            except LogError:
                self._ended.wait(AGAIN_S)

    def _beating(self) -> None:
        while not self._ended.wait(0.1):
            with suppress(LogError):
                for lost in self._work.renew("beside", self.calls.under_way):
                    self.calls.lose(lost)

    def close(self) -> None:
        self._ended.set()
        self.line.close()
        self.calls.stop(0.0)


_workers: dict[int, BesideWorker] = {}


def start(self: SessionSystem) -> None:
    if self._started:
        return
    given = {
        agent_id: agent for agent_id, agent in self._agents.items() if not isinstance(agent, RecordedAgent)
    }
    kept = dict(self._agents)
    for agent_id in given:
        del kept[agent_id]
    whole, self._agents = self._agents, kept
    try:
        _start(self)
    finally:
        self._agents = whole
    if self.log.forked is not None:
        for agent_id, agent in given.items():
            _register(self, agent_id, agent)
    elif given:
        _workers[id(self)] = BesideWorker(self, given)


def register(self: SessionSystem, agent_id: str, agent: Agent) -> None:
    worker = _workers.get(id(self))
    if self.log.forked is not None or worker is None:
        _register(self, agent_id, agent)
        return
    function_of(f"agents[{agent_id!r}]", agent)
    self._settings.config = self.config.with_agents([agent_id])
    self._agents[agent_id] = agent
    worker.add(agent_id, agent)


def close(self: SessionSystem, grace: float | None = None) -> None:
    _close(self, grace)
    worker = _workers.pop(id(self), None)
    if worker is not None:
        worker.close()


Config.expects_workers = property(lambda _: True)  # type: ignore[assignment, method-assign] # pyright: ignore[reportAttributeAccessIssue]
SessionSystem.start, SessionSystem.close, SessionSystem.register_agent = start, close, register  # type: ignore[method-assign]

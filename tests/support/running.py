"""A system under test: on a real file, with agents that stop where a test wants them, waited for by what its log says."""

import queue
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Self, TypeVar

from intersession import Failure, SessionSystem
from intersession_actors.outside.agents.turn import Turn
from intersession_events.basics import ids
from intersession_events.facts import (
    Event,
    ExchangeClosed,
    MessageRecorded,
    SpawnClosed,
    generation_of,
    message_in,
)
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.views.run_outcomes.replies import Replies, told_in
from support.fakes import ManualClock, look_at_clock
from support.soaking import until

WAIT = 20.0
"""Seconds a test waits for what has to come; it comes in milliseconds, or never."""

E = TypeVar("E")
Said = TypeVar("Said")

SEES_ALL: dict[str, Any] = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "runs": {"shutdownGraceSeconds": 0},
}
"""A configuration in which every session sees and reaches every other one."""

QUIET: dict[str, Any] = {"session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}}
"""A configuration in which a send is one run and nothing after it."""


def merged(*configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return configurations laid over each other, the last one on top."""
    result: dict[str, Any] = {}
    for config in configs:
        for name, value in config.items():
            below = result.get(name)
            result[name] = (
                merged(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
            )
    return result


class Booth:
    """Starts systems on one log, one after the other, as a process that stops and starts again does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._open: list[SessionSystem] = []

    def start(
        self,
        agents: Mapping[str, Any],
        channels: Mapping[str, Any] | None = None,
        *configs: Mapping[str, Any],
        **given: Any,
    ) -> SessionSystem:
        """Start a system in which all see all, unless `configs` say otherwise."""
        system = SessionSystem(
            self.url, agents=agents, channels=channels or {}, config=merged(SEES_ALL, *configs), **given
        )
        self._open.append(system)
        return system

    def close(self) -> None:
        """Stop what is still running."""
        for system in self._open:
            system.close(grace=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Gate:
    """Where an agent stops until a test lets it go on, within its patience in seconds."""

    def __init__(self, patience: float = WAIT) -> None:
        self._patience = patience
        self._reached: queue.SimpleQueue[Turn] = queue.SimpleQueue()
        self._open = threading.Event()

    def stop(self, turn: Turn) -> None:
        """Say that the agent is here, and wait until the gate is open."""
        self._reached.put(turn)
        if not self._open.wait(self._patience):
            raise TimeoutError("nobody opened the gate")

    def saying(self, text: str, step: str | None = None) -> Callable[[Turn], str]:
        """Return an agent that stops here, and says a text when it goes on; at one step alone, if that is given."""
        return self.before(lambda _: text, step)

    def before(self, agent: Callable[[Turn], Said], step: str | None = None) -> Callable[[Turn], Said]:
        """Return an agent that stops here before it does what another one does."""

        def stopping(turn: Turn) -> Said:
            if step in {None, turn.step}:
                self.stop(turn)
            return agent(turn)

        return stopping

    def reached(self) -> Turn:
        """Wait until an agent is here; return its turn."""
        return self._reached.get(timeout=WAIT)

    def open(self) -> None:
        """Let the agent go on, and every one after it."""
        self._open.set()


def recorded(system: SessionSystem, kind: type[E], stream: str | None = None) -> list[E]:
    """Return all events of a kind, in order, of one stream if it is given, with the texts of the runs that they name."""
    events = list(system.log.all())
    return [
        item.event
        for item in parts_in(map(Replies(events).with_texts, events))
        if isinstance(item.event, kind) and stream in {None, item.stream}
    ]


def said_in(event: Event) -> MessageRecorded | None:
    """Return the message that an event brings into a transcript, alike for all events that bring one."""
    message, generation = message_in(event), generation_of(event)
    if message is None or generation is None or isinstance(event, MessageRecorded):
        return event if isinstance(event, MessageRecorded) else None
    return MessageRecorded(session_id=generation, message=message)


def all_said(system: SessionSystem, stream: str | None = None) -> list[MessageRecorded]:
    """Return all messages of transcripts, in order, whichever events brought them; of one stream if it is given."""
    found = (said_in(item.event) for item in system.log.all() if stream in {None, item.stream})
    return [one for one in found if one is not None]


def wait_for(system: SessionSystem, kind: type[E], where: Callable[[E], bool] | None = None) -> E:
    """Wait until an event of a kind is in the log, and return it."""
    for item in parts_in(system.follow(0, timeout=WAIT)):
        if isinstance(item.event, kind) and (where is None or where(item.event)):
            return item.event
    raise AssertionError(f"no {kind.__name__} came: {[item.topic for item in system.log.all()]}")


def wait_for_number(system: SessionSystem, kind: type[E], number: int) -> None:
    """Wait until there are that many events of a kind."""
    for item in parts_in(system.follow(0, timeout=WAIT)):
        number -= isinstance(item.event, kind)
        if number == 0:
            return
    raise AssertionError(f"{number} more {kind.__name__} did not come")


def wait_until_done(system: SessionSystem) -> None:
    """Wait until no exchange, spawn or delivery is open: what follows an answer is told by threads of its own."""
    flows = system.service.flows
    until(lambda: not (flows.open_exchanges() or flows.open_spawns() or flows.open_deliveries()), within=WAIT)


def pass_time_until(system: SessionSystem, clock: ManualClock, ms: int, kind: type[E], number: int = 1) -> E:
    """Move the clock on, step by step, until there are that many events of a kind; return the last of these.

    It stands while a channel is called: on a busy machine that lasts several steps, and the call would be given up as too late.
    """
    calls = system._parts.caller._running
    for _ in range(400):
        pass_time(system, clock, ms)
        came = (item.event for item in parts_in(system.follow(0, timeout=0.05)))
        found = next(islice((event for event in came if isinstance(event, kind)), number - 1, None), None)
        if found is not None:
            return found
        until(lambda: not calls, within=WAIT)
    raise AssertionError(f"no {number} {kind.__name__} came: {[item.topic for item in system.log.all()]}")


def pass_time(system: SessionSystem, clock: ManualClock, ms: int) -> None:
    """Move the clock, and let what falls due on the way happen."""
    clock.advance(ms)
    look_at_clock(system._parts.timers)


def exchange_of(system: SessionSystem, run_id: str) -> str:
    """Return the stream of the exchange that a send began, by the run it answered."""
    return ids.exchange_stream(ids.derive(system.log.log_id, "exchange", run_id))


def spawn_of(system: SessionSystem, run_id: str) -> str:
    """Return the stream of the spawn, by the run it answered."""
    return ids.spawn_stream(ids.derive(system.log.log_id, "spawn", run_id))


def closed_exchange(system: SessionSystem, run_id: str) -> list[Any]:
    """Wait until an exchange is closed and return its events, with the texts of its runs."""
    return _closed(system, exchange_of(system, run_id), ExchangeClosed)


def closed_spawn(system: SessionSystem, run_id: str) -> list[Any]:
    """Wait until a spawn is closed and return its events."""
    return _closed(system, spawn_of(system, run_id), SpawnClosed)


def _closed(system: SessionSystem, stream: str, kind: type[Any]) -> list[Any]:
    found: list[Recorded] = []
    for item in parts_in(system.follow(0, timeout=WAIT)):
        if item.stream == stream:
            found.append(item)
            if isinstance(item.event, kind):
                return [one.event for one in told_in(system.log, found)]
    raise AssertionError(f"{stream} did not close: {[type(one.event).__name__ for one in found]}")


def one(events: list[Any], kind: type[E]) -> E:
    """Return the one event of a kind among others."""
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


def texts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return role and text of each message of a history."""
    return [(message["role"], _text(message["content"])) for message in result["messages"]]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


class Heard:
    """A host's `on_failure`, asked for what it heard."""

    def __init__(self) -> None:
        self._failures: queue.SimpleQueue[Failure] = queue.SimpleQueue()
        self.kinds: list[str] = []

    def __call__(self, failure: Failure) -> None:
        self.kinds.append(failure.kind)
        self._failures.put(failure)

    def next(self, kind: str) -> Failure:
        """Wait for the next failure of a kind; the others before it are passed over."""
        while True:
            failure = self._failures.get(timeout=WAIT)
            if failure.kind == kind:
                return failure


def wait_until(system: SessionSystem, happened: Callable[[], bool]) -> None:
    """Wait until something is so that comes with an event."""
    while True:
        head = system.log.head()  # before it is looked: what comes meanwhile is not waited for
        if happened():
            return
        assert system.log.wait_for(head + 1, timeout=WAIT) or happened()


def at_rest(system: SessionSystem) -> None:
    """Wait until nothing is under way any more."""
    flows, runs = system.service.flows, system.service.runs
    for _ in system.follow(0, timeout=WAIT):
        if not (flows.open_deliveries() or flows.open_exchanges() or flows.open_spawns() or runs.open_runs()):
            return
    raise AssertionError("it goes on and on")


def speak(system: SessionSystem, text: str = "hi", **given: Any) -> dict[str, Any]:
    """Let Ann say something in her chat, and wait for the answer; `given` says what is otherwise."""
    said = {"channel": "telegram", "chat_id": "42", "sender": "ann", "text": text, "wait": WAIT, **given}
    return {**system.inbound(**said)}


def ended(system: SessionSystem, run_id: str, timeout_ms: int = 20_000) -> dict[str, Any]:
    """Wait for the end of a run, and return it as `agent.wait` has it."""
    return {**system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": timeout_ms})}


def asked(system: SessionSystem, to: str, text: str) -> dict[str, Any]:
    """Have the operator ask a session something, and return the end of its run."""
    sent = {"sessionKey": to, "message": text, "idempotencyKey": text[:30] + to}
    return ended(system, system.gateway.call("chat.send", sent)["runId"])

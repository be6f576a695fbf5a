"""A conversation of two agents to fork, and forks of it: made, opened, carried on to their end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from intersession import MemoryChannel, Reply, SessionSystem, Turn
from intersession_actors.hindsight.forking.agents import AgentSpecs
from intersession_actors.hindsight.forking.carrying import Carried, Stopping, carry_on
from intersession_actors.hindsight.forking.making import MadeFork, Wanted, make_fork
from intersession_actors.hindsight.forking.outcomes import agent_ids
from intersession_actors.outside.agents.recording import Recording
from intersession_actors.running.runtime.clock import Clock
from intersession_events.basics import ids
from intersession_events.basics.machine import random_id
from intersession_events.facts import ForkEdit, Usage
from intersession_events.stores.sqlite.log import SqliteLog
from support.running import SEES_ALL, closed_exchange, merged

DESK = "agent:desk:main"
CONFIG = merged(
    SEES_ALL,
    {"agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]}},
    {"session": {"agentToAgent": {"maxPingPongTurns": 4}}},
)
WAIT = 20.0


def asks(turn: Turn) -> str | Reply:
    """The agent of `main`: it asks the desk on behalf of a person, and is never content."""
    if turn.step == "message":
        call = turn.record_call("weather", {"city": "Oslo"})
        turn.record_result(call, "weather", {"degrees": 3})
        said = turn.tools.call("sessions_send", {"agentId": "desk", "message": "when does it leave?"})
        return Reply(f"the desk says {said.get('reply')}", usage=Usage(input=10, output=3))
    return Reply("are you sure?", usage=Usage(input=5, output=1, cost_micros=7))


def answers(turn: Turn) -> str | Reply:
    """The agent of the desk."""
    match turn.step:
        case "message" | "compaction":
            return "at nine"
        case "reply":
            return Reply("quite sure", usage=Usage(input=4, output=2, cost_micros=5))
        case "announce":
            return "it leaves at nine"


class Conversation(NamedTuple):
    """A conversation that is over: a person asked main, and main asked the desk. Both ids."""

    system: SessionSystem
    run: str
    exchange: str

    @property
    def log(self) -> SqliteLog:
        """Its log."""
        log = self.system.log
        assert isinstance(log, SqliteLog)
        return log


def conversation(path: Path, config: Mapping[str, Any] = CONFIG, clock: Clock | None = None) -> Conversation:
    """Have it; a person spoke to the desk before, so that its announce has a route."""
    system = SessionSystem(
        path / "source.db",
        agents={"main": asks, "desk": answers},
        channels={"x": MemoryChannel()},
        config=config,
        clock=clock,
    )
    system.inbound(channel="x", chat_id="2", text="hello", sender="ben", agent_id="desk", deliver=False)
    answer = system.inbound(channel="x", chat_id="1", text="when?", sender="ann", wait=WAIT)
    (stream,) = system.log.streams("exchange:")
    (accepted, *_) = system.log.stream(stream)
    closed_exchange(system, getattr(accepted.event, "run_id"))  # noqa: B009 - it is the one that accepts
    wait_at_rest(system)
    return Conversation(system, answer["runId"], stream.removeprefix("exchange:"))


def wait_at_rest(system: SessionSystem) -> None:
    """Wait until nothing is open any more."""
    carry_on(system.service, "", timeout=WAIT)


class Played(NamedTuple):
    """A fork that was carried on. Its system is closed."""

    made: MadeFork
    carried: Carried
    system: SessionSystem


def play(
    talk: Conversation,
    run: str,
    at: str | int,
    *edits: ForkEdit,
    agents: Mapping[str, Any] | None = None,
    otherwise: Any = None,
    loose: bool = False,
    channels: Mapping[str, Any] | None = None,
    directory: Path | None = None,
) -> Played:
    """Fork a run, open the fork with agents by SPEC (`*` for all others), and carry it on."""
    made = make_fork(
        talk.log,
        Wanted(run, at, edits),
        fork_id=random_id(),
        now_ms=talk.system.service.clock.now_ms(),
        directory=directory,
    )
    stopping = Stopping(otherwise)
    specs = AgentSpecs(
        named={"asks": asks, "answers": answers},
        recording=lambda: Recording.of(talk.log),
        after=made.position,
        loose=loose,
    )
    given = dict(agents or {})
    every = given.pop("*", None)
    for agent_id in agent_ids(talk.system.service.reader):
        if every is not None:
            given.setdefault(agent_id, every)
    made_agents = {name: specs.agent(name, spec, stopping) for name, spec in given.items()}
    system = SessionSystem(made.path, agents=made_agents, channels=channels or {}, config=CONFIG)
    try:
        carried = carry_on(system.service, made.run, stopping=stopping, timeout=WAIT)
    finally:
        system.close(grace=0)
    return Played(made, carried, system)


def said(log: Any, exchange: str) -> Sequence[tuple[str, str | None]]:
    """Return what was said in an exchange, event by event, without ids."""
    events = log.stream(ids.exchange_stream(exchange))
    return [(one.topic, getattr(one.event, "text", getattr(one.event, "reason", None))) for one in events]

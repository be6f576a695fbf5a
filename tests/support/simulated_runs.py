"""Runs of a simulated system: two people ask an agent that sends, spawns and waits, and all of that at once."""

import hashlib
from concurrent.futures import Future

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.outside.channels.channels import MemoryChannel
from intersession_actors.rules.answers import InboundAnswer
from intersession_actors.running.simulation.simulated import SimulatedRuntime

CONFIG = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "session": {"agentToAgent": {"maxPingPongTurns": 2}},
}


def asks(turn: Turn) -> str:
    """Sends, spawns and waits as a plain function."""
    if turn.step != "message":
        return f"{turn.step}"
    sent = turn.tools.call(
        "sessions_send", {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 30}
    )
    turn.tools.call("sessions_spawn", {"task": "look", "agentId": "b"})
    return f"b says {sent.get('reply')}"


async def lists(turn: Turn) -> str:
    """Awaits its tools on the simulation's loop."""
    found = await turn.tools.acall("sessions_list", {})
    return f"fine, {found['count']} sessions"


def ask(
    runtime: SimulatedRuntime, system: SessionSystem, who: str, wait: float = 0.0
) -> Future[InboundAnswer]:
    """Have a person say something, beside all else that goes on."""
    return runtime.spawn(
        lambda: system.inbound(channel="chat", chat_id=who, sender=who, agent_id="a", text="ask", wait=wait)
    )


def simulated(store: str, seed: int, *, early: float = 0.0) -> tuple[SimulatedRuntime, SessionSystem]:
    runtime = SimulatedRuntime(seed, early=early)
    system = SessionSystem(
        store,
        runtime=runtime,
        agents={"a": asks, "b": lists},
        channels={"chat": MemoryChannel()},
        config=CONFIG,
    )
    return runtime, system


def run_of(store: str, seed: int, *, early: float = 0.0) -> str:
    """Have two people ask at once, run to the end, and return a digest of the log's rows."""
    runtime, system = simulated(store, seed, early=early)
    with system:
        asked = [ask(runtime, system, who, 300) for who in ("u1", "u2")]
        assert runtime.run_until(lambda: all(one.done() for one in asked))
        runtime.run_for(3600)
        if not early:
            assert [one.result()["status"] for one in asked] == ["ok", "ok"]
        digest = hashlib.sha256()
        for row in system.log.rows(after=0, limit=100_000):
            digest.update(repr(row).encode())
    return digest.hexdigest()

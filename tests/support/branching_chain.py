"""A causal chain of six branches that end about the same time, under guards over what the chain may use (LOOP-5)."""

from pathlib import Path
from typing import Any

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.outside.agents.turn import Reply, Turn
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.facts import Usage
from intersession_events.log.recorded import Recorded
from support.running import SEES_ALL, merged

LIMITS: dict[str, dict[str, int]] = {
    "tokens": {"tokens": 5},
    "money": {"costMicros": 5},
    "money before tokens": {"costMicros": 5, "tokens": 11},
    "runs": {"runs": 9},
    "runs and money": {"runs": 9, "costMicros": 16},
}


def branches(
    file: Path, seed: int, limits: dict[str, int], tool: str = "sessions_send"
) -> tuple[str, list[Recorded]]:
    """Record a chain of six branches that end about the same time, each of which uses some of what the chain may."""
    runtime = SimulatedRuntime(seed)

    def begins(turn: Turn) -> str:
        if ":subagent:" in turn.session_key or turn.step != "message":
            return "fine"
        for number in range(6):
            asked: dict[str, Any] = {"task": "look", "agentId": "abc"[number % 3]}
            if tool == "sessions_send":
                asked = {"sessionKey": f"agent:{'abc'[number % 3]}:main", "message": "x", "timeoutSeconds": 0}
            turn.tools.call(tool, asked)
        return "NO_REPLY"

    def answers(_: Turn) -> Reply:
        runtime.pause(0.001)
        return Reply("dear", usage=Usage(input=5, cost_micros=5))

    agents = {"main": begins, "a": answers, "b": answers, "c": answers}
    config = merged(
        SEES_ALL,
        {
            "session": {"agentToAgent": {"limits": limits}},
            "agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxChildrenPerAgent": 50}}},
        },
    )
    with SessionSystem(file, runtime=runtime, agents=agents, config=config) as system:
        system.inbound(channel="chat", chat_id="7", sender="ann", text="hi", agent_id="main", wait=60)
        runtime.run_for(60)
        return system.log.log_id, list(system.log.all())

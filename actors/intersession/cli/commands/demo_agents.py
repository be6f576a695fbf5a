"""The agents of `intersession demo`: plain functions with fixed replies, without keys or network.

`host` makes the system the demo runs; it serves the file the demo left just as well:

    intersession send --agents intersession.cli.commands.demo_agents:host --agent research "…" --store FILE
"""

from collections.abc import Mapping
from typing import Final

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.outside.agents.turn import AgentFunction, Reply, Turn
from intersession_actors.outside.channels.channels import Channel, MemoryChannel
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Usage

RESEARCH: Final = "agent:research:main"
CONFIG: Final[Mapping[str, JsonObject]] = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "agents": {"list": [{"id": "main", "default": True}, {"id": "research"}]},
}

QUESTION: Final = "Is the lake crossing open on Saturday? I'd bring the van."
ORDER: Final = "Good. Please have somebody work out what the detour would cost us."
GREETING: Final = "Post what you find out in here, please."

_LOOP: Final = {
    1: "Does that hold for a van of 3.2 tonnes, or only for cars?",
    2: "Up to 3.5 tonnes. Above that it is the northern road.",
    3: "And if the wind picks up again?",
    4: "Then it closes at 17 m/s. The forecast for Saturday says 6 to 9.",
    5: "Then Saturday works. I'll tell Ada to be there before noon.",
}
_ANNOUNCE: Final = "Lake crossing: open on Saturday for up to 3.5 tonnes, wind 6 to 9 m/s. Asked by main."
_TASK: Final = "Work out what the northern detour costs with a van: distance, hours, fuel."


def main_agent(turn: Turn) -> str | Reply:
    """Talk to Ada, ask research for facts, hand out work."""
    if SessionKey.parse(turn.session_key).is_subagent:
        return _worker(turn)
    if turn.step == "reply":
        return _of_loop(turn)
    if turn.step == "announce":
        return Reply.skip()
    if turn.message == QUESTION:
        answer = turn.tools.call(
            "sessions_send", {"sessionKey": RESEARCH, "message": "Is the lake crossing open on Saturday?"}
        )
        return f"I asked research: {answer.get('reply') or answer.get('error')}"
    if turn.message == ORDER:
        spawned = turn.tools.call("sessions_spawn", {"task": _TASK, "label": "detour"})
        return "I have put a helper on it." if spawned["status"] == "accepted" else str(spawned.get("error"))
    return f"You said: {turn.message}"


def research_agent(turn: Turn) -> str | Reply:
    """Answer the demo's questions, and announce the result to the people of this agent's session."""
    match turn.step:
        case "announce":
            return _ANNOUNCE
        case "reply":
            return _of_loop(turn)
        case "message" if turn.message == GREETING:
            return "Will do."
        case "message" | "compaction":
            return Reply(
                "Yes: the ferry runs from 07:00, and the bridge is open.",
                usage=Usage(input=412, output=18, total_tokens=430),
                model="demo",
            )


def _worker(turn: Turn) -> str | Reply:
    if turn.step == "announce":
        return "The detour is 84 km longer: about 70 minutes, and 11 litres of fuel."
    return Reply("84 km, 70 min, 11 l.", usage=Usage(input=187, output=12, total_tokens=199), model="demo")


def _of_loop(turn: Turn) -> str | Reply:
    origin = turn.asked.provenance
    words = _LOOP.get(origin.turn or 0) if origin is not None else None
    return Reply.skip() if words is None else words


AGENTS: Final[Mapping[str, AgentFunction]] = {"main": main_agent, "research": research_agent}


_SOON: Final[Mapping[str, JsonObject]] = {
    "tools": CONFIG["tools"],
    "agents": {**CONFIG["agents"], "defaults": {"subagents": {"archiveAfterMinutes": 1 / 60}}},
    "runs": {"idleSeconds": 1},
    "views": {"afterSeconds": 0},
}
"""What takes minutes or an hour otherwise, or begins in a while."""


def host(store: str | None, *, channel: Channel | None = None, in_fast_motion: bool = False) -> SessionSystem:
    """Return a running system with the demo's agents on a log; its two channels are one in memory, or the given one.

    In fast motion, sessions sleep and sub-agents are archived after a second instead of after minutes.
    """
    way_out = channel or MemoryChannel(idempotent=True)
    channels = {"telegram": way_out, "discord": way_out}
    return SessionSystem(store, agents=AGENTS, channels=channels, config=_SOON if in_fast_motion else CONFIG)

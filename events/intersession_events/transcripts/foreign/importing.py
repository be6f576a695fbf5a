"""Reads what another framework keeps of its agents, for an import; the kinds that there are (IN-1)."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

from intersession_events.basics.errors import ImportFailed
from intersession_events.transcripts.foreign.langgraph import read_langgraph
from intersession_events.transcripts.foreign.openai_agents import read_openai_agents
from intersession_events.transcripts.openclaw.reading.files import is_agent_id
from intersession_events.transcripts.openclaw.reading.state import OpenClawState

Framework = Literal["langgraph", "openai-agents"]

FRAMEWORKS: Final[Mapping[str, Callable[[str, str], OpenClawState]]] = {
    "langgraph": read_langgraph,
    "openai-agents": read_openai_agents,
}
"""How each framework's database is read. A reader brings it into the form of an OpenClaw state; the rest is one import."""


def read_framework(framework: str, where: str, agent: str | None = None) -> OpenClawState:
    """Read the database of a framework, at a path or a `postgresql://` URL; its sessions are those of `agent`.

    Raises:
        ImportFailed: there is no such framework or agent, or the database can't be read.
        MissingExtra: a server needs the extra `postgres`.
    """
    if framework not in FRAMEWORKS:
        raise ImportFailed(
            f"{framework!r} can't be imported; from is one of {', '.join(get_args(Framework))}"
        )
    if agent is not None and not is_agent_id(agent):
        raise ImportFailed(f"{agent[:64]!r} is no agent's id; use a-z, 0-9, - and _, at most 64")
    return FRAMEWORKS[framework](where, agent or framework)

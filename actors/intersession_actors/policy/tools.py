"""Which of the session tools an agent gets. Pure (SPAWN-7)."""

from collections.abc import Collection, Iterable
from typing import Final

from intersession_actors.config import (
    SESSION_TOOLS,
    AgentTools,
    Config,
    ToolProfile,
    ToolRules,
    ToolSettings,
    names_tool,
)

_ON_SESSIONS: Final = ("sessions_list", "sessions_history", "sessions_send", "sessions_search")

_PROFILES: Final[dict[ToolProfile, tuple[str, ...]]] = {
    "minimal": ("session_status",),
    "coding": (*_ON_SESSIONS, "sessions_spawn", "session_status"),
    "messaging": (*_ON_SESSIONS, "session_status"),
    "full": ("*",),
}


def tools_for(
    config: Config,
    agent_id: str,
    tools: Iterable[str],
    *,
    subagent: bool = False,
    withheld: Collection[str] = SESSION_TOOLS,
    sandboxed: bool = False,
    may_spawn: bool = True,
) -> tuple[str, ...]:
    """Return those of `tools` that a session of this agent gets, in their order.

    `tools` and the agent's own settings narrow, one after the other; a `deny` anywhere is final. A sub-agent does not get what
    is `withheld` from it, unless its settings say so. `may_spawn` False takes `sessions_spawn` away whatever they say (SPAWN-3).
    """
    own = config.agent(agent_id).tools if agent_id in config.agent_ids else AgentTools()
    rules: list[ToolRules | ToolSettings | AgentTools] = [config.tools, own]
    if sandboxed:
        rules += [config.tools.sandbox.tools, own.sandbox.tools]
    kept = [tool for tool in tools if all(_gives(rule, tool) for rule in rules)]
    if subagent:
        kept = [tool for tool in kept if _child_gets(config.tools.subagents.tools, tool, withheld)]
    return tuple(tool for tool in kept if may_spawn or tool != "sessions_spawn")


def _gives(rules: ToolRules | ToolSettings | AgentTools, tool: str) -> bool:
    if names_tool(rules.deny, tool):
        return False
    profile = None if isinstance(rules, ToolRules) else rules.profile
    lists = [rules.allow, None if profile is None else _PROFILES[profile]]
    return names_tool(rules.also_allow, tool) or all(
        given is None or names_tool(given, tool) for given in lists
    )


def _child_gets(rules: ToolRules, tool: str, withheld: Collection[str]) -> bool:
    if names_tool(rules.deny, tool):
        return False
    if names_tool(rules.also_allow, tool) or (rules.allow is not None and names_tool(rules.allow, tool)):
        return True
    return rules.allow is None and tool not in withheld

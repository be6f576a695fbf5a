"""Which of the tools a caller has: by its agent's settings, and as a sub-agent (SPAWN-3, SPAWN-7). Pure."""

from collections.abc import Sequence

from intersession_actors.config import Config
from intersession_actors.policy import Requester, tools_for
from intersession_actors.tools.registry import TOOLS


def tools_offered(
    config: Config, requester: Requester, among: Sequence[str] = tuple(TOOLS)
) -> tuple[str, ...]:
    """Return the names of the tools that a caller has, in their order; the operator has all."""
    key = requester.key
    if key is None:
        return tuple(among)
    return tools_for(
        config,
        key.agent_id,
        among,
        subagent=key.is_spawned,
        withheld=[name for name, tool in TOOLS.items() if not tool.for_children],
        sandboxed=requester.sandboxed,
        may_spawn=not is_too_deep(config, requester),
    )


def is_too_deep(config: Config, requester: Requester) -> bool:
    """Whether this is a sub-agent that starts none of its own (SPAWN-3)."""
    deepest = config.agents.defaults.subagents.max_spawn_depth
    return requester.key is not None and requester.key.is_spawned and requester.spawn_depth >= deepest

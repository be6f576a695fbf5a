"""The `tools` part of a configuration: what the session tools may see and reach."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from intersession_actors.rules.config.settings import AtLeastOne, Count, Settings, ToolRules

Visibility = Literal["self", "tree", "agent", "all"]
ToolProfile = Literal["minimal", "coding", "messaging", "full"]

SESSION_TOOLS: Final = (
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_search",
    "sessions_spawn",
    "agents_list",
)
"""The tools on sessions; a sub-agent does not get them of itself."""

TOOL_NAMES: Final = (*SESSION_TOOLS, "session_status")
TOOL_GROUPS: Final = {"group:sessions": TOOL_NAMES, "group:openclaw": ("*",)}
"""Names in settings that stand for several tools."""


def tool_pattern(text: str) -> str:
    """Return a name or glob of a setting as it is compared with the names of tools, which are lower-case."""
    return text.strip().lower()


def names_tool(patterns: Sequence[str], tool: str) -> bool:
    """Whether names, globs and groups of a setting name a tool."""
    given = [tool_pattern(pattern) for pattern in patterns]
    spelled = [name for pattern in given for name in TOOL_GROUPS.get(pattern, (pattern,))]
    return any(fnmatchcase(tool, name) for name in spelled)


class SessionVisibility(Settings, frozen=True, kw_only=True):
    """How far a session sees (VIS-1)."""

    visibility: Visibility = "tree"


class AgentReach(Settings, frozen=True, kw_only=True):
    """Whether sessions of one agent reach those of another, and which; `allow` [] lets nobody (VIS-2)."""

    enabled: bool = False
    allow: tuple[str, ...] | None = None


class AttachmentRules(Settings, frozen=True, kw_only=True):
    """What may be handed to a sub-agent (ATT-1). Sizes in bytes."""

    enabled: bool = False
    max_files: AtLeastOne = 50
    max_file_bytes: Count = 1_048_576
    max_total_bytes: Count = 5_242_880
    retain_on_session_keep: bool = False


class SpawnTool(Settings, frozen=True, kw_only=True):
    """Settings of `sessions_spawn`."""

    attachments: AttachmentRules = AttachmentRules()


class ToolsOf(Settings, frozen=True, kw_only=True):
    """Which tools sub-agents (SPAWN-7), or sandboxed sessions, get."""

    tools: ToolRules = ToolRules()


class ToolSettings(Settings, frozen=True, kw_only=True):
    """What the tools may see and reach, and which tools agents get."""

    sessions: SessionVisibility = SessionVisibility()
    agent_to_agent: AgentReach = AgentReach()
    sessions_spawn: SpawnTool = msgspec.field(default=SpawnTool(), name="sessions_spawn")
    subagents: ToolsOf = ToolsOf()
    profile: ToolProfile | None = None
    sandbox: ToolsOf = ToolsOf()
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class AgentTools(Settings, frozen=True, kw_only=True):
    """Which tools one agent gets, within what `tools` gives."""

    profile: ToolProfile | None = None
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    sandbox: ToolsOf = ToolsOf()

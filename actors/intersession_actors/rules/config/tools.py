"""The `tools` and `agents` parts of a configuration: which agents there are, and what session tools may see and reach."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.config.settings import (
    AtLeastOne,
    Count,
    Minutes,
    ModelChoice,
    Seconds,
    Settings,
    Text,
    ThinkingLevel,
    ToolRules,
)
from intersession_events.basics.plain_json import JsonObject

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

LED_TOOLS: Final = ("subagents", "sessions_yield", "session_status")
"""The tools that lead sub-agents."""

OPTIONAL_TOOLS: Final = (*LED_TOOLS, "read_file")
"""The tools that a session has only where its settings name them."""

TOOL_NAMES: Final = (*SESSION_TOOLS, *OPTIONAL_TOOLS)
TOOL_GROUPS: Final = {"group:sessions": TOOL_NAMES, "group:openclaw": ("*",)}
"""Names in settings that stand for several tools."""


def tool_pattern(text: str) -> str:
    """Return a setting's tool name or glob in the form for comparison with the names of tools, which are lower-case."""
    return text.strip().lower()


def names_tool(patterns: Sequence[str], tool: str) -> bool:
    """Whether names, globs and groups of a setting match a tool."""
    given = [tool_pattern(pattern) for pattern in patterns]
    spelled = [name for pattern in given for name in TOOL_GROUPS.get(pattern, (pattern,))]
    return any(fnmatchcase(tool, name) for name in spelled)


class SessionVisibility(Settings, frozen=True, kw_only=True):
    """How far a session sees (VIS-1)."""

    visibility: Visibility = "tree"


class AgentReach(Settings, frozen=True, kw_only=True):
    """Whether sessions of one agent reach those of another, and which; `allow` [] means none (VIS-2)."""

    enabled: bool = False
    allow: tuple[str, ...] | None = None


class AttachmentRules(Settings, frozen=True, kw_only=True):
    """The limits of files for a sub-agent (ATT-1). Sizes in bytes."""

    enabled: bool = False
    max_files: AtLeastOne = 50
    max_file_bytes: Count = 1_048_576
    max_total_bytes: Count = 5_242_880
    retain_on_session_keep: bool = False


class SpawnTool(Settings, frozen=True, kw_only=True):
    """Settings of `sessions_spawn`."""

    attachments: AttachmentRules = AttachmentRules()


class ToolsOf(Settings, frozen=True, kw_only=True):
    """The tools of sub-agents (SPAWN-7), or of sandboxed sessions."""

    tools: ToolRules = ToolRules()


class RulesOfProvider(ToolRules, frozen=True, kw_only=True):
    """Which tools a provider's models get (TOOLS-1)."""

    profile: ToolProfile | None = None


class AskRoute(Settings, frozen=True, kw_only=True):
    """The chat in which people are asked to approve tool calls (ASK-3)."""

    channel: Text
    to: Text
    account: Text | None = None
    thread: Text | None = None


class ToolSettings(Settings, frozen=True, kw_only=True):
    """The visibility and reach of tools, which tools agents get, and which calls wait for a person.

    `ask` are globs over the names of tools; a call that nobody released within `ask_timeout_seconds` is refused, 0 is no
    limit. `ask_route` is where people are asked, in place of the session's own route (ASK). `by_provider` narrows the tools of
    a provider's models, by `provider` or `provider/id`, `tools_by_sender` those of a run that a person's message led to, by
    `channel:id`, `id:ID` or `*` (TOOLS).
    """

    sessions: SessionVisibility = SessionVisibility()
    agent_to_agent: AgentReach = AgentReach()
    sessions_spawn: SpawnTool = msgspec.field(default=SpawnTool(), name="sessions_spawn")
    subagents: ToolsOf = ToolsOf()
    profile: ToolProfile | None = None
    sandbox: ToolsOf = ToolsOf()
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    by_provider: dict[Text, RulesOfProvider] = msgspec.field(default_factory=dict[str, RulesOfProvider])
    tools_by_sender: dict[Text, ToolRules] = msgspec.field(default_factory=dict[str, ToolRules])
    ask: tuple[Text, ...] = ()
    ask_timeout_seconds: Seconds = 1800
    ask_route: AskRoute | None = None


class AgentTools(Settings, frozen=True, kw_only=True):
    """Which tools one agent gets, within `tools`; of `ask` it has those of `tools` as well."""

    profile: ToolProfile | None = None
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    by_provider: dict[Text, RulesOfProvider] = msgspec.field(default_factory=dict[str, RulesOfProvider])
    tools_by_sender: dict[Text, ToolRules] = msgspec.field(default_factory=dict[str, ToolRules])
    ask: tuple[Text, ...] = ()
    sandbox: ToolsOf = ToolsOf()


SandboxMode = Literal["off", "non-main", "all"]
SessionToolsVisibility = Literal["spawned", "all"]


class SubagentDefaults(Settings, frozen=True, kw_only=True):
    """How sub-agents run and how many (SPAWN). Times of 0 are no limit.

    `require_agent_id`: a spawn has to name the agent. `announce_details`: what is announced in a chat has the stats line, with ids and paths, and the text of errors (SPAWN-10).
    """

    max_spawn_depth: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    max_children_per_agent: AtLeastOne = 5
    archive_after_minutes: Minutes = 60
    run_timeout_seconds: Seconds = 0
    model: Text | ModelChoice | None = None
    thinking: ThinkingLevel | None = None
    allow_agents: tuple[str, ...] | None = None
    require_agent_id: bool = False
    announce_details: bool = False


class SandboxDefaults(Settings, frozen=True, kw_only=True):
    """Which sessions are sandboxed (SPAWN-5), and how far those see (VIS-5)."""

    mode: SandboxMode = "off"
    session_tools_visibility: SessionToolsVisibility = "spawned"


CompactionMode = Literal["default", "safeguard", "off"]


class Compaction(Settings, frozen=True, kw_only=True):
    """How older turns of a session are summarised, once it is longer than its model's window (CTX-5).

    `default` and `safeguard` do the same here. `reserve_tokens`, and at least `reserve_tokens_floor`, are kept free of what there
    is room for, a quarter of it at most. `keep_recent_tokens` of the newest turns stay as they are, a quarter of the rest at most.
    `agent` writes the summaries in the place of the session's own, `model` is the one that it is asked to use.
    """

    mode: CompactionMode = "default"
    reserve_tokens: Annotated[int, msgspec.Meta(ge=0)] = 16_384
    reserve_tokens_floor: Annotated[int, msgspec.Meta(ge=0)] = 0
    keep_recent_tokens: Annotated[int, msgspec.Meta(ge=0)] = 20_000
    custom_instructions: str | None = None
    agent: Text | None = None
    model: Text | None = None
    timeout_seconds: Seconds = 180


class AgentDefaults(Settings, frozen=True, kw_only=True):
    """The defaults of every agent.

    `models`, where it is not empty, are the only models that can be asked for, by `provider/id`. `context_tokens` is how many
    tokens of its model's window an agent may use at most (CTX-1). `worker`: workers alone call it (WORK-4).
    """

    model: Text | ModelChoice | None = None
    models: dict[str, JsonObject] = msgspec.field(default_factory=dict[str, JsonObject])
    timeout_seconds: Seconds = 600
    workspace: Text | None = None
    thinking_default: ThinkingLevel | None = None
    context_tokens: AtLeastOne | None = None
    compaction: Compaction = Compaction()
    subagents: SubagentDefaults = SubagentDefaults()
    sandbox: SandboxDefaults = SandboxDefaults()
    worker: bool = False


class AgentSubagents(Settings, frozen=True, kw_only=True):
    """The sub-agents that one agent may start (SPAWN-2), and its own settings as a sub-agent."""

    allow_agents: tuple[str, ...] | None = None
    require_agent_id: bool | None = None
    model: Text | ModelChoice | None = None
    thinking: ThinkingLevel | None = None


class AgentSandbox(Settings, frozen=True, kw_only=True):
    """Which sessions of one agent are sandboxed; missing fields have the defaults."""

    mode: SandboxMode | None = None
    session_tools_visibility: SessionToolsVisibility | None = None


class AgentSettings(Settings, frozen=True, kw_only=True):
    """One agent. `worker`: workers alone call it, and this process never does, whatever model it has (WORK-4)."""

    id: Text
    default: bool = False
    name: str | None = None
    workspace: Text | None = None
    model: Text | ModelChoice | None = None
    thinking_default: ThinkingLevel | None = None
    context_tokens: AtLeastOne | None = None
    compaction: Compaction | None = None
    subagents: AgentSubagents = AgentSubagents()
    sandbox: AgentSandbox = AgentSandbox()
    tools: AgentTools = AgentTools()
    worker: bool | None = None


class Agents(Settings, frozen=True, kw_only=True):
    """All agents, and their defaults."""

    defaults: AgentDefaults = AgentDefaults()
    list: tuple[AgentSettings, ...] = ()

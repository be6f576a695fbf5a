"""The `agents` part of a configuration: which agents there are, and their settings."""

from typing import Annotated, Literal

import msgspec

from intersession_actors.rules.config.settings import (
    AtLeastOne,
    Minutes,
    ModelChoice,
    Seconds,
    Settings,
    Text,
    ThinkingLevel,
)
from intersession_actors.rules.config.tools import AgentTools
from intersession_events.basics.plain_json import JsonObject

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


class AgentDefaults(Settings, frozen=True, kw_only=True):
    """What holds for every agent that does not say otherwise.

    `models`, where it is not empty, are the only models that can be asked for, by `provider/id`. `context_tokens` is how many
    tokens of its model's window an agent may use at most (CTX-1).
    """

    model: Text | ModelChoice | None = None
    models: dict[str, JsonObject] = msgspec.field(default_factory=dict[str, JsonObject])
    timeout_seconds: Seconds = 600
    workspace: Text | None = None
    thinking_default: ThinkingLevel | None = None
    context_tokens: AtLeastOne | None = None
    subagents: SubagentDefaults = SubagentDefaults()
    sandbox: SandboxDefaults = SandboxDefaults()


class AgentSubagents(Settings, frozen=True, kw_only=True):
    """What one agent's sub-agents may be (SPAWN-2), and what it runs with as one."""

    allow_agents: tuple[str, ...] | None = None
    require_agent_id: bool | None = None
    model: Text | ModelChoice | None = None
    thinking: ThinkingLevel | None = None


class AgentSandbox(Settings, frozen=True, kw_only=True):
    """Which sessions of one agent are sandboxed; what is not given is the default's."""

    mode: SandboxMode | None = None
    session_tools_visibility: SessionToolsVisibility | None = None


class AgentSettings(Settings, frozen=True, kw_only=True):
    """One agent."""

    id: Text
    default: bool = False
    name: str | None = None
    workspace: Text | None = None
    model: Text | ModelChoice | None = None
    thinking_default: ThinkingLevel | None = None
    context_tokens: AtLeastOne | None = None
    subagents: AgentSubagents = AgentSubagents()
    sandbox: AgentSandbox = AgentSandbox()
    tools: AgentTools = AgentTools()


class Agents(Settings, frozen=True, kw_only=True):
    """Every agent there is, and what holds for all of them."""

    defaults: AgentDefaults = AgentDefaults()
    list: tuple[AgentSettings, ...] = ()

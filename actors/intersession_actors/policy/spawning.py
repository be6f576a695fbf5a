"""May this session start that sub-agent, and with what? Pure (SPAWN-2 to SPAWN-5)."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, get_args

import msgspec

from intersession_actors.config import Config, ThinkingLevel, milliseconds, primary_of
from intersession_actors.errors import RefusalCode, RefusalStatus, status_of
from intersession_actors.policy.access import Requester
from intersession_actors.policy.models import find_model, model_names
from intersession_events.errors import InvalidKey
from intersession_events.facts import ready
from intersession_events.keys import parse_agent_id

THINKING_LEVELS: Final[tuple[ThinkingLevel, ...]] = get_args(ThinkingLevel)


@ready
class SpawnWish(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, as typed."""

    agent_id: str | None = None
    model: str | None = None
    thinking: str | None = None
    sandbox: Literal["inherit", "require"] = "inherit"
    run_timeout_seconds: float | None = None
    mode: Literal["run", "session"] | None = None
    thread: bool = False
    cleanup: Literal["delete", "keep"] = "keep"


class SpawnAllowed(msgspec.Struct, frozen=True, kw_only=True):
    """It may, with these values in force. Times in milliseconds, 0 is no limit, and never for `archive_after_ms`."""

    agent_id: str
    depth: int
    sandboxed: bool
    mode: Literal["run", "session"]
    cleanup: Literal["delete", "keep"] = "keep"
    model: str | None
    thinking: ThinkingLevel | None
    run_timeout_ms: int
    archive_after_ms: int


class SpawnRefused(msgspec.Struct, frozen=True, kw_only=True):
    """It may not; nothing was done."""

    code: RefusalCode
    error: str

    @property
    def status(self) -> RefusalStatus:
        """Whether it is an `error`, or `forbidden` by a setting."""
        return status_of(self.code)


def judge_spawn(
    config: Config, requester: Requester, wish: SpawnWish, *, running: int = 0
) -> SpawnAllowed | SpawnRefused:
    """Decide whether a sub-agent may be started, and with what; `running` is how many the requester has already."""
    own = requester.key.agent_id if requester.key else config.default_agent
    try:
        agent_id = own if wish.agent_id is None else parse_agent_id(wish.agent_id)
    except InvalidKey as error:
        return SpawnRefused(code="invalid_request", error=f"agentId: {error}")
    mode = wish.mode or ("session" if wish.thread else "run")
    sandboxed = config.sandboxed(agent_id, main=False)
    return (
        _bad_mode(wish, mode)
        or _too_deep(config, requester)
        or _too_many(config, running)
        or _not_named(config, requester, wish)
        or _not_allowed(config, requester, own, agent_id)
        or _not_sandboxed(requester, wish, sandboxed=sandboxed)
        or _bad_thinking(wish)
        or _bad_model(config, wish)
        or _allowed(config, requester, wish, agent_id, mode, sandboxed=sandboxed)
    )


class ListedAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that may be started. `configured`: there is one of this id."""

    id: str
    configured: bool
    name: str | None = None


class AgentsList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of `agents_list`."""

    requester: str
    allow_any: bool
    agents: tuple[ListedAgent, ...]


def agents_list(
    config: Config, requester_agent: str | None, knows: Callable[[str], bool] = lambda _: True
) -> AgentsList:
    """Return the agents that may be started: the requester's own first, then the others by id (SPAWN-2).

    `requester_agent` None is the operator, who may start any. Others that the requester may not know of (`knows`) are left out.
    """
    requester = config.default_agent if requester_agent is None else requester_agent
    allow_any = requester_agent is None or "*" in _allow_list(config, requester)
    others = sorted(filter(knows, {*_startable(config, requester, anyone=allow_any)} - {requester}))
    return AgentsList(
        requester=requester,
        allow_any=allow_any,
        agents=tuple(_listed(config, agent_id) for agent_id in (requester, *others)),
    )


def _listed(config: Config, agent_id: str) -> ListedAgent:
    configured = agent_id in config.agent_ids
    name = config.agent(agent_id).name if configured else None
    return ListedAgent(id=agent_id, configured=configured, name=name or None)


def _allow_list(config: Config, agent_id: str) -> tuple[str, ...]:
    """Return the agents that an agent may start beside itself, as configured; its own list, else the default one."""
    own = config.agent(agent_id).subagents.allow_agents if agent_id in config.agent_ids else None
    listed = config.agents.defaults.subagents.allow_agents if own is None else own
    return tuple(item.lower() for item in listed or ())


def _startable(config: Config, agent_id: str, *, anyone: bool) -> Sequence[str]:
    named = [item for item in _allow_list(config, agent_id) if item != "*"]
    return [*named, *config.agent_ids] if anyone else named


def _bad_mode(wish: SpawnWish, mode: Literal["run", "session"]) -> SpawnRefused | None:
    if mode == "session" and not wish.thread:
        return SpawnRefused(code="invalid_request", error='mode: "session" needs a thread, give thread: true')
    if mode == "session" and wish.cleanup == "delete":
        return SpawnRefused(
            code="invalid_request", error='cleanup: "delete" can\'t go with mode "session", use "keep"'
        )
    return None


def _too_deep(config: Config, requester: Requester) -> SpawnRefused | None:
    is_child = requester.key is not None and requester.key.is_spawned
    depth = max(requester.spawn_depth, 1) if is_child else requester.spawn_depth
    allowed = config.agents.defaults.subagents.max_spawn_depth
    if depth < allowed:
        return None
    return SpawnRefused(
        code="subagent_spawn",
        error=(
            f"task: a sub-agent at depth {depth} can't start another, report back what is left to do "
            f"(agents.defaults.subagents.maxSpawnDepth is {allowed})"
        ),
    )


def _too_many(config: Config, running: int) -> SpawnRefused | None:
    allowed = config.agents.defaults.subagents.max_children_per_agent
    if running < allowed:
        return None
    return SpawnRefused(
        code="spawn_limit",
        error=(
            f"task: {running} sub-agents are running, wait until one has ended "
            f"(agents.defaults.subagents.maxChildrenPerAgent is {allowed})"
        ),
    )


def _not_named(config: Config, requester: Requester, wish: SpawnWish) -> SpawnRefused | None:
    if wish.agent_id is not None or requester.key is None:
        return None
    agent_id = requester.key.agent_id
    own = config.agent(agent_id).subagents.require_agent_id if agent_id in config.agent_ids else None
    if not (config.agents.defaults.subagents.require_agent_id if own is None else own):
        return None
    return SpawnRefused(
        code="agent_not_allowed",
        error="agentId: has to be given here, name the agent to start (agents.list[].subagents.requireAgentId)",
    )


def _not_allowed(config: Config, requester: Requester, own: str, agent_id: str) -> SpawnRefused | None:
    anyone = requester.key is None or "*" in _allow_list(config, own)
    others = filter(requester.may_know_agent, _startable(config, own, anyone=anyone))
    startable = {own, *others} & {own, *config.agent_ids}
    if agent_id in startable:
        return None
    return SpawnRefused(
        code="agent_not_allowed",
        error=(
            f"agentId: this agent may not be started from here, use one of {', '.join(sorted(startable))} "
            "(agents.list[].subagents.allowAgents)"
        ),
    )


def _not_sandboxed(requester: Requester, wish: SpawnWish, *, sandboxed: bool) -> SpawnRefused | None:
    if sandboxed:
        return None
    setting = "agents.list[].sandbox.mode"
    if requester.sandboxed:
        return SpawnRefused(
            code="sandbox_inherit",
            error=f"agentId: a sandboxed session can't start an agent that is not sandboxed, use one that is ({setting})",
        )
    if wish.sandbox == "require":
        return SpawnRefused(
            code="sandbox_required",
            error=f'sandbox: "require" and this agent is not sandboxed, use one that is ({setting})',
        )
    return None


def _bad_thinking(wish: SpawnWish) -> SpawnRefused | None:
    if wish.thinking is None or wish.thinking in THINKING_LEVELS:
        return None
    error = f"thinking: there is no such level, use one of {', '.join(THINKING_LEVELS)}"
    return SpawnRefused(code="invalid_thinking", error=error)


def _bad_model(config: Config, wish: SpawnWish) -> SpawnRefused | None:
    if wish.model is None or find_model(config, wish.model) is not None:
        return None
    known = ", ".join(model_names(config)) or "provider/id"
    return SpawnRefused(code="invalid_model", error=f"model: it is not configured, use one of {known}")


def _allowed(
    config: Config,
    requester: Requester,
    wish: SpawnWish,
    agent_id: str,
    mode: Literal["run", "session"],
    *,
    sandboxed: bool,
) -> SpawnAllowed:
    default = config.agents.defaults.subagents
    own = config.agent(agent_id).subagents if agent_id in config.agent_ids else None
    asked = find_model(config, wish.model) if wish.model is not None else None
    thinking: ThinkingLevel | None = None
    for level in THINKING_LEVELS:
        thinking = level if level == wish.thinking else thinking
    seconds = default.run_timeout_seconds if wish.run_timeout_seconds is None else wish.run_timeout_seconds
    keeps_on = mode == "session" or wish.cleanup == "delete"
    return SpawnAllowed(
        agent_id=agent_id,
        depth=requester.spawn_depth + 1,
        sandboxed=sandboxed,
        mode=mode,
        cleanup=wish.cleanup,
        model=asked
        or (own and primary_of(own.model))
        or primary_of(default.model)
        or config.model_of(agent_id),
        thinking=thinking or (own and own.thinking) or default.thinking,
        run_timeout_ms=milliseconds(seconds),
        archive_after_ms=0 if keeps_on else milliseconds(default.archive_after_minutes * 60),
    )

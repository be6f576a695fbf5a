"""Whether a session may start a sub-agent, and with which settings. Pure (SPAWN-2 to SPAWN-5)."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, get_args

import msgspec

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.settings import ThinkingLevel, milliseconds, primary_of
from intersession_actors.rules.errors import (
    Denial,
    Judgement,
    Known,
    Question,
    RefusalCode,
    RefusalStatus,
    status_of,
)
from intersession_actors.rules.policy.access import Requester, may_act_for, settings_between, sight_of
from intersession_actors.rules.policy.windows import find_model, model_names
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import parse_agent_id
from intersession_events.facts import ready

THINKING_LEVELS: Final[tuple[ThinkingLevel, ...]] = get_args(ThinkingLevel)


@ready
class SpawnWish(msgspec.Struct, frozen=True, kw_only=True):
    """The request, as typed."""

    agent_id: str | None = None
    model: str | None = None
    thinking: str | None = None
    sandbox: Literal["inherit", "require"] = "inherit"
    run_timeout_seconds: float | None = None
    mode: Literal["run", "session"] | None = None
    thread: bool = False
    cleanup: Literal["delete", "keep"] = "keep"
    context: Literal["isolated", "fork"] = "isolated"


class SpawnAllowed(msgspec.Struct, frozen=True, kw_only=True):
    """Allowed, with these settings. Times in milliseconds, 0 is no limit, and never for `archive_after_ms`.

    `judged` is what was asked and known.
    """

    agent_id: str
    depth: int
    sandboxed: bool
    mode: Literal["run", "session"]
    cleanup: Literal["delete", "keep"] = "keep"
    model: str | None
    thinking: ThinkingLevel | None
    run_timeout_ms: int
    archive_after_ms: int
    judged: Judgement


class SpawnRefused(msgspec.Struct, frozen=True, kw_only=True):
    """Refused, without any effect. `judged` has the question and inputs, unless the request was unreadable."""

    code: RefusalCode
    error: str
    judged: Judgement | None = None

    @property
    def status(self) -> RefusalStatus:
        """Whether it is an `error`, or `forbidden` by a setting."""
        return status_of(self.code)


class StartSubagent(Question, frozen=True, kw_only=True):
    """Start a sub-agent. `agent_id` is the named agent, None if none is named."""

    agent_id: str | None = None
    sandbox: Literal["inherit", "require"] = "inherit"
    mode: Literal["run", "session"] = "run"
    thread: bool = False
    cleanup: Literal["delete", "keep"] = "keep"
    context: Literal["isolated", "fork"] = "isolated"


class Nursery(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the requester, and the settings in force that concern the request.

    `requester` None is the operator; `own` is the agent of its session. `running` are the sub-agents that it has at work. `allow` is
    the list of agents that `own` may start beside itself, as configured. Of the agent that is named: whether it is
    `configured` and `child_sandboxed`; of the model and the level of thinking that are named: whether there is none (`no_model`,
    `no_thinking`). `closed` are the settings that keep what is said to `own` from the named agent (CHILD-6).
    """

    requester: str | None = None
    own: str | None = None
    sandboxed: bool = False
    spawn_depth: int = 0
    within: tuple[str, ...] | None = None
    max_spawn_depth: int = 1
    running: int = 0
    max_children: int = 5
    require_agent_id: bool = False
    allow: tuple[str, ...] = ()
    own_sandboxed: bool = False
    configured: bool = True
    child_sandboxed: bool = False
    no_model: bool = False
    no_thinking: bool = False
    closed: tuple[str, ...] = ()


def judge_start(asked: StartSubagent, known: Nursery) -> Denial | None:
    """Decide whether a sub-agent may be started; None allows it."""
    if asked.mode == "session" and (not asked.thread or asked.cleanup == "delete"):
        return Denial("invalid_request")
    if _depth(known) >= known.max_spawn_depth:
        return Denial("subagent_spawn", ("agents.defaults.subagents.maxSpawnDepth",))
    if known.running >= known.max_children:
        return Denial("spawn_limit", ("agents.defaults.subagents.maxChildrenPerAgent",))
    if asked.agent_id is None and known.requester is not None and known.require_agent_id:
        return Denial("agent_not_allowed", ("agents.list[].subagents.requireAgentId",))
    if not _may_start(asked, known):
        return Denial("agent_not_allowed", ("agents.list[].subagents.allowAgents",))
    if not _is_sandboxed(asked, known) and (known.sandboxed or asked.sandbox == "require"):
        code: RefusalCode = "sandbox_inherit" if known.sandboxed else "sandbox_required"
        return Denial(code, ("agents.list[].sandbox.mode",))
    if asked.context == "fork" and known.requester is None:
        return Denial("invalid_request")
    if asked.context == "fork" and known.closed and asked.agent_id not in {None, known.own}:
        return Denial("forbidden", known.closed)
    if known.no_thinking:
        return Denial("invalid_thinking")
    return Denial("invalid_model") if known.no_model else None


def _depth(known: Nursery) -> int:
    is_child = known.requester is not None and SessionKey.recorded(known.requester).is_spawned
    return max(known.spawn_depth, 1) if is_child else known.spawn_depth


def _is_sandboxed(asked: StartSubagent, known: Nursery) -> bool:
    return known.own_sandboxed if asked.agent_id in {None, known.own} else known.child_sandboxed


def _may_start(asked: StartSubagent, known: Nursery) -> bool:
    if asked.agent_id is None or asked.agent_id == known.own:
        return True
    if not known.configured or (known.within is not None and not may_act_for(known.within, asked.agent_id)):
        return False
    allowed = [item.lower() for item in known.allow]
    return known.requester is None or "*" in allowed or asked.agent_id in allowed


def asked_to_start(
    config: Config, requester: Requester, wish: SpawnWish, *, running: int = 0
) -> tuple[StartSubagent, Nursery]:
    """Return the question and inputs for a start; `running` is the requester's present number of sub-agents.

    Raises:
        InvalidKey: the agent's id is invalid.
    """
    own = requester.key.agent_id if requester.key else config.default_agent
    named = None if wish.agent_id is None else parse_agent_id(wish.agent_id)
    default = config.agents.defaults.subagents
    must_name = config.agent(own).subagents.require_agent_id
    asked = StartSubagent(
        agent_id=named,
        sandbox=wish.sandbox,
        mode=wish.mode or ("session" if wish.thread else "run"),
        thread=wish.thread,
        cleanup=wish.cleanup,
        context=wish.context,
    )
    known = Nursery(
        requester=None if requester.key is None else str(requester.key),
        own=own,
        sandboxed=requester.sandboxed,
        spawn_depth=requester.spawn_depth,
        within=requester.within,
        max_spawn_depth=default.max_spawn_depth,
        running=running,
        max_children=default.max_children_per_agent,
        require_agent_id=bool(default.require_agent_id if must_name is None else must_name),
        allow=_allow_list(config, own),
        configured=named is None or named in config.agent_ids,
        own_sandboxed=config.sandboxed(own, main=False),
        child_sandboxed=named is not None and config.sandboxed(named, main=False),
        no_model=wish.model is not None and find_model(config, wish.model) is None,
        no_thinking=wish.thinking is not None and wish.thinking not in THINKING_LEVELS,
        closed=()
        if wish.context == "isolated" or named in {None, own}
        else settings_between(sight_of(config, requester), own, named or own),
    )
    return asked, known


def judge_spawn(
    config: Config, requester: Requester, wish: SpawnWish, *, running: int = 0
) -> SpawnAllowed | SpawnRefused:
    """Decide whether a sub-agent may be started, and with which settings; `running` is the requester's present number of them."""
    try:
        asked, known = asked_to_start(config, requester, wish, running=running)
    except InvalidKey as error:
        return SpawnRefused(code="invalid_request", error=f"agentId: {error}")
    denial = judge_start(asked, known)
    if denial is None:
        return _allowed(config, requester, wish, asked, known)
    told = _error(config, requester, denial, asked, known)
    return SpawnRefused(code=denial.code, error=told, judged=Judgement(asked, known))


class ListedAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that may be started. `configured`: the configuration has it."""

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
    name = config.agent(agent_id).name
    return ListedAgent(id=agent_id, configured=agent_id in config.agent_ids, name=name or None)


def _allow_list(config: Config, agent_id: str) -> tuple[str, ...]:
    """Return the agents that an agent may start beside itself, as configured; its own list, else the default one."""
    own = config.agent(agent_id).subagents.allow_agents
    listed = config.agents.defaults.subagents.allow_agents if own is None else own
    return tuple(listed or ())


def _startable(config: Config, agent_id: str, *, anyone: bool) -> Sequence[str]:
    named = [item.lower() for item in _allow_list(config, agent_id) if item != "*"]
    return [*named, *config.agent_ids] if anyone else named


def _error(  # noqa: C901 - one case a code
    config: Config, requester: Requester, denial: Denial, asked: StartSubagent, known: Nursery
) -> str:
    """Return what a caller is told of a sub-agent that may not be started."""
    setting = "".join(denial.settings)
    match denial.code:
        case "subagent_spawn":
            return (
                f"task: a sub-agent at depth {_depth(known)} can't start another, report back what is left to do "
                f"({setting} is {known.max_spawn_depth})"
            )
        case "spawn_limit":
            return (
                f"task: {known.running} sub-agents are running, wait until one has ended "
                f"({setting} is {known.max_children})"
            )
        case "agent_not_allowed" if setting.endswith("requireAgentId"):
            return f"agentId: has to be given here, name the agent to start ({setting})"
        case "agent_not_allowed":
            own = known.own or ""
            anyone = requester.key is None or "*" in _allow_list(config, own)
            others = filter(requester.may_know_agent, _startable(config, own, anyone=anyone))
            startable = {own, *others} & {own, *config.agent_ids}
            return (
                f"agentId: this agent may not be started from here, use one of {', '.join(sorted(startable))} "
                f"({setting})"
            )
        case "sandbox_inherit":
            what = "a sandboxed session can't start an agent that is not sandboxed"
            return f"agentId: {what}, use one that is ({setting})"
        case "sandbox_required":
            return f'sandbox: "require" and this agent is not sandboxed, use one that is ({setting})'
        case "invalid_thinking":
            return f"thinking: there is no such level, use one of {', '.join(THINKING_LEVELS)}"
        case "invalid_model":
            return (
                f"model: it is not configured, use one of {', '.join(model_names(config)) or 'provider/id'}"
            )
        case "forbidden":
            return (
                f"context: a fork gives agent {asked.agent_id} what was said to agent {known.own}, which is closed to it "
                f'({", ".join(denial.settings)}); use "isolated", and put what it needs in the task'
            )
        case _ if asked.context == "fork" and known.requester is None:
            return 'context: "fork" needs a session whose transcript the child begins with, call as one (sessionKey)'
        case _ if not asked.thread:
            return 'mode: "session" needs a thread, give thread: true'
        case _:
            return 'cleanup: "delete" can\'t go with mode "session", use "keep"'


def _allowed(
    config: Config, requester: Requester, wish: SpawnWish, to_start: StartSubagent, known: Nursery
) -> SpawnAllowed:
    agent_id = to_start.agent_id or known.own or config.default_agent
    default = config.agents.defaults.subagents
    own = config.agent(agent_id).subagents
    asked = find_model(config, wish.model) if wish.model is not None else None
    thinking: ThinkingLevel | None = None
    for level in THINKING_LEVELS:
        thinking = level if level == wish.thinking else thinking
    seconds = default.run_timeout_seconds if wish.run_timeout_seconds is None else wish.run_timeout_seconds
    keeps_on = to_start.mode == "session" or wish.cleanup == "delete"
    return SpawnAllowed(
        agent_id=agent_id,
        depth=requester.spawn_depth + 1,
        sandboxed=_is_sandboxed(to_start, known),
        mode=to_start.mode,
        cleanup=wish.cleanup,
        model=asked or primary_of(own.model) or primary_of(default.model) or config.model_of(agent_id),
        thinking=thinking or own.thinking or default.thinking,
        run_timeout_ms=milliseconds(seconds),
        archive_after_ms=0 if keeps_on else milliseconds(default.archive_after_minutes * 60),
        judged=Judgement(to_start, known),
    )

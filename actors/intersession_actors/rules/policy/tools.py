"""Which of the session tools an agent gets. Pure (SPAWN-7)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.settings import ToolRules, primary_of
from intersession_actors.rules.config.tools import (
    LED_TOOLS,
    OPTIONAL_TOOLS,
    SESSION_TOOLS,
    AgentTools,
    RulesOfProvider,
    ToolProfile,
    ToolSettings,
    names_tool,
)
from intersession_actors.rules.errors import Denial, Known, Question
from intersession_actors.rules.policy.access import Requester

_ON_SESSIONS: Final = ("sessions_list", "sessions_history", "sessions_send", "sessions_search")

_WITHHELD: Final = tuple(sorted(SESSION_TOOLS))

_PROFILES: Final[dict[ToolProfile, tuple[str, ...]]] = {
    "minimal": ("session_status",),
    "coding": (*_ON_SESSIONS, "sessions_spawn", *LED_TOOLS),
    "messaging": (*_ON_SESSIONS, "session_status"),
    "full": ("*",),
}


class UseTool(Question, frozen=True, kw_only=True):
    """Call a tool."""

    tool: str


class Rules(Known, frozen=True, kw_only=True):
    """The rules for tools in one place of the settings."""

    profile: ToolProfile | None = None
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


_NO_RULES: Final = Rules()


class Workshop(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the settings in force, for a session that is sandboxed or not.

    `everyone` and `own` narrow, one after the other, those of `sandbox` and `own_sandbox` for a sandboxed session, and those for
    the `provider` of its model and for the `sender` whose message led to it (TOOLS). `withheld`
    are the tools that a sub-agent does not get (`subagent`), unless `subagents` says so. `missing`: there is no such tool.
    `deepest` is how deep a sub-agent may be that starts others, `spawn_depth` how deep this one is.
    """

    everyone: Rules = _NO_RULES
    own: Rules = _NO_RULES
    sandbox: Rules = _NO_RULES
    own_sandbox: Rules = _NO_RULES
    provider: tuple[Rules, ...] = ()
    sender: tuple[Rules, ...] = ()
    subagent: bool = False
    subagents: Rules = _NO_RULES
    withheld: tuple[str, ...] = _WITHHELD
    spawn_depth: int = 0
    deepest: int = 1
    missing: bool = False


def workshop_of(config: Config, requester: Requester, withheld: Iterable[str] = SESSION_TOOLS) -> Workshop:
    """Return the inputs that decide which tools a session has."""
    key = requester.key
    if key is None:
        return Workshop()
    agent = config.agent(key.agent_id)
    own = agent.tools
    provider: tuple[Rules, ...] = ()
    if config.tools.by_provider or own.by_provider:
        model = requester.model or primary_of(agent.model) or primary_of(config.agents.defaults.model)
        provider = (*_of_model(config.tools.by_provider, model), *_of_model(own.by_provider, model))
    sender: tuple[Rules, ...] = ()
    if config.tools.tools_by_sender or own.tools_by_sender:
        sender = (
            *_of_sender(config.tools.tools_by_sender, requester.sender),
            *_of_sender(own.tools_by_sender, requester.sender),
        )
    inside = requester.sandboxed
    return Workshop(
        everyone=_rules(config.tools),
        own=_rules(own),
        sandbox=_rules(config.tools.sandbox.tools) if inside else _NO_RULES,
        own_sandbox=_rules(own.sandbox.tools) if inside else _NO_RULES,
        provider=provider,
        sender=sender,
        subagent=key.is_spawned,
        subagents=_rules(config.tools.subagents.tools) if key.is_spawned else _NO_RULES,
        withheld=tuple(sorted(withheld)) if key.is_spawned else _WITHHELD,
        spawn_depth=requester.spawn_depth,
        deepest=config.agents.defaults.subagents.max_spawn_depth,
    )


def judge_tool(asked: UseTool, known: Workshop) -> Denial | None:
    """Decide whether a session has a tool; None allows it.

    The settings narrow, one after the other; a `deny` anywhere is final. A sub-agent does not get what is withheld from it,
    unless its settings say so. One that is too deep has no `sessions_spawn`, whatever they say (SPAWN-3).
    """
    if known.missing:
        return Denial("not_supported")
    if asked.tool == "sessions_spawn" and _is_too_deep(known):
        return Denial("subagent_spawn", ("agents.defaults.subagents.maxSpawnDepth",))
    in_force = (known.everyone, known.own, known.sandbox, known.own_sandbox, *known.provider, *known.sender)
    if asked.tool in OPTIONAL_TOOLS and not any(_names(rules, asked.tool) for rules in in_force):
        return Denial("not_supported", ("tools.alsoAllow",))
    for rules in in_force:
        if rules != _NO_RULES and not _gives(rules, asked.tool):
            return Denial("not_supported")
    if known.subagent and not _child_gets(known.subagents, asked.tool, known.withheld):
        return Denial("not_supported")
    return None


def is_own_denied(tool: str, known: Workshop) -> bool:
    """Whether a tool of the agent's own is kept from this model, or this person (TOOLS)."""
    return not all(_gives(rules, tool.lower()) for rules in (*known.provider, *known.sender))


def _of_model(settings: Mapping[str, RulesOfProvider], model: str | None) -> Iterator[Rules]:
    """Yield the rules for a model; of one that nobody knows all hold, since any may be meant."""
    for name, rules in settings.items():
        asked = name.strip().lower()
        known = (model or "").lower()
        if model is None or asked in {known, known.partition("/")[0]}:
            yield _rules(rules)


def _of_sender(settings: Mapping[str, ToolRules], sender: str | None) -> Iterator[Rules]:
    """Yield the rules for a person: those by name, else those for everybody; none for a run that no person began."""
    if sender is None or not settings:
        return
    names = (sender, f"id:{sender.partition(':')[2]}", "*")
    rules = next((settings[name] for name in names if name in settings), None)
    if rules is not None:
        yield _rules(rules)


def _is_too_deep(known: Workshop) -> bool:
    """Whether this is a sub-agent that starts none of its own (SPAWN-3)."""
    return known.subagent and known.spawn_depth >= known.deepest


def _rules(settings: ToolRules | RulesOfProvider | ToolSettings | AgentTools) -> Rules:
    profile = settings.profile if isinstance(settings, RulesOfProvider | ToolSettings | AgentTools) else None
    return Rules(profile=profile, allow=settings.allow, also_allow=settings.also_allow, deny=settings.deny)


def _names(rules: Rules, tool: str) -> bool:
    """Whether settings name a tool that is given to nobody else (CHILD-2)."""
    profile = () if rules.profile is None else _PROFILES[rules.profile]
    return names_tool((*rules.also_allow, *(rules.allow or ()), *profile), tool)


def _gives(rules: Rules, tool: str) -> bool:
    if names_tool(rules.deny, tool):
        return False
    lists = [rules.allow, None if rules.profile is None else _PROFILES[rules.profile]]
    return names_tool(rules.also_allow, tool) or all(
        given is None or names_tool(given, tool) for given in lists
    )


def _child_gets(rules: Rules, tool: str, withheld: Collection[str]) -> bool:
    if names_tool(rules.deny, tool):
        return False
    if names_tool(rules.also_allow, tool) or (rules.allow is not None and names_tool(rules.allow, tool)):
        return True
    return rules.allow is None and tool not in withheld

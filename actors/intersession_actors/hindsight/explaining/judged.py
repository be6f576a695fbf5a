"""Explains why a door stayed closed: it is judged again, by what its record says, with one thing changed after the other."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final, NamedTuple

from msgspec.structs import replace

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.explanation import Explanation, Input, Instead
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_actors.hindsight.replaying.redeciding.judging_again import judged_in
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.access import SeeSession, Sight
from intersession_actors.rules.policy.budgets import Spend, Spending, judge_spending
from intersession_actors.rules.policy.chain import CarryOn, Chain, WaitFor, Waits, judge_chain
from intersession_actors.rules.policy.judgements import denial_of
from intersession_actors.rules.policy.sending import Speak, Speech
from intersession_actors.rules.policy.spawning import Nursery, StartSubagent
from intersession_actors.rules.policy.tools import Rules, UseTool, Workshop
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonValue
from intersession_events.facts import MessageRecorded, SessionImported, SessionPatched
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span, backwards

_DEEPEST: Final = 5
"""The highest `maxSpawnDepth` that a configuration can say."""

_OVERRIDE: Final = "sendPolicy"
_POLICY: Final = "session.sendPolicy"
_DEPTH: Final = "agents.defaults.subagents.maxSpawnDepth"
_CHILDREN: Final = "agents.defaults.subagents.maxChildrenPerAgent"
_ALLOWED: Final = "agents.defaults.subagents.allowAgents"
_ALLOWED_ONE: Final = "agents.list[].subagents.allowAgents"
_SANDBOX: Final = "agents.defaults.sandbox.mode"
_LIMITS: Final = "session.agentToAgent.limits."

_OPENING: Final[Mapping[str, tuple[str, str, JsonValue]]] = {
    "tools.sessions.visibility": ("visibility", "all", "all"),
    "tools.agentToAgent.enabled": ("agent_to_agent", "true", True),
    "tools.agentToAgent.allow": ("allow", "not given, or matches both agents", None),
    "agents.defaults.sandbox.sessionToolsVisibility": ("sandboxed_see", "all", "all"),
}
"""The settings that keep sessions closed, in the order in which they are tried: the field, and what opens it."""

_TOOLS: Final[Mapping[str, str]] = {
    "everyone": "tools",
    "own": "agents.list[].tools",
    "sandbox": "tools.sandbox.tools",
    "own_sandbox": "agents.list[].tools.sandbox.tools",
}


class _Change(NamedTuple):
    change: str
    judgement: Judgement
    setting: str | None = None
    value: JsonValue = None


def explain_judged(
    reader: Reader, in_force: InForce, whole: Explanation, recorded: Recorded, code: str
) -> Explanation:
    """Return an explanation with what a door's rule knew, and what would have had it say something else than `code`.

    Where the event has no record of that, or one that can't be read, it is the same explanation.
    """
    try:
        judgement = judged_in(recorded, in_force.listed)
        denial = None if judgement is None else denial_of(judgement)
    except (InvalidKey, TypeError, ValueError):
        return whole
    if judgement is None:
        return whole
    inputs = (*whole.inputs, *_inputs(reader, in_force, judgement, whole.position))
    if denial is None or denial.code != code:
        return replace(whole, inputs=inputs, as_decided=False)
    instead = [*_instead(judgement, in_force, whole)]
    if _is_of_spawn(recorded):  # a child that was never there has no setting that could be another one
        instead = [one for one in instead if one.setting != _OVERRIDE]
    return replace(whole, inputs=inputs, instead=tuple(instead) or whole.instead, as_decided=True)


def _is_of_spawn(recorded: Recorded) -> bool:
    event = recorded.event
    return isinstance(event, MessageRecorded) and event.message.tool_name == "sessions_spawn"


def _instead(judgement: Judgement, in_force: InForce, whole: Explanation) -> Iterator[Instead]:
    match (judgement.asked, judgement.known):
        case SeeSession() as asked, Sight() as sight:
            if whole.code in {"forbidden", "not_visible"}:
                yield from _openings(asked, sight)
        case Speak() as asked, Speech() as known:
            yield from _others(judgement, _of_speech(asked, known), "allow")
        case CarryOn() as asked, Chain() as chain:
            yield from _others(judgement, _of_chain(asked, chain))
        case StartSubagent() as asked, Nursery() as nursery:
            yield from _others(judgement, _of_spawn(asked, nursery, in_force, whole.position))
        case UseTool() as asked, Workshop() as workshop:
            yield from _others(judgement, _of_tool(asked, workshop))
        case _:
            return


def _others(judgement: Judgement, changes: Iterable[_Change], allowed: str = "allowed") -> Iterator[Instead]:
    said = denial_of(judgement)
    for made in changes:
        other = denial_of(made.judgement)
        if (other and other.code) != (said and said.code):
            verdict = allowed if other is None else other.code
            yield Instead(change=made.change, verdict=verdict, setting=made.setting, value=made.value)


def _openings(asked: SeeSession, sight: Sight) -> Iterator[Instead]:
    """Yield the smallest sets of settings that would have opened the session, each as one change."""
    for number in range(1, len(_OPENING) + 1):
        found = [
            names
            for names in combinations(_OPENING, number)
            if denial_of(
                Judgement(asked, replace(sight, **{_OPENING[name][0]: _OPENING[name][2] for name in names}))
            )
            is None
        ]
        for names in found:
            yield Instead(
                change=" and ".join(f"{name} is {_OPENING[name][1]}" for name in names),
                verdict="allowed",
                setting=names[0] if number == 1 else None,
            )
        if found:
            return
    yield Instead(change="a session that is there: no setting would show this one")


def _of_speech(asked: Speak, known: Speech) -> Iterator[_Change]:
    for override in ("allow", None):
        if known.override != override:
            what = "is allow" if override else "is cleared"
            other = Judgement(asked, replace(known, override=override))
            yield _Change(f"the session's own sendPolicy {what}", other, _OVERRIDE, override)
    for at, rule in enumerate(known.rules):
        if rule.action == "deny":
            name = f"{_POLICY}.rules[{at}]"
            other = Judgement(asked, replace(known, rules=known.rules[:at] + known.rules[at + 1 :]))
            yield _Change(f"{name} is not there", other, name)
    if known.default == "deny":
        name = f"{_POLICY}.default"
        yield _Change(f"{name} is allow", Judgement(asked, replace(known, default="allow")), name, "allow")


def _of_chain(asked: CarryOn, chain: Chain) -> Iterator[_Change]:
    tripped = judge_chain(asked, chain)
    if tripped is not None:
        more = tripped.value + 1
        limits = replace(chain.limits, **{_limit(tripped.setting): more})
        other = Judgement(asked, replace(chain, limits=limits))
        yield _Change(f"{tripped.setting} is at least {more}, or 0 for none", other, tripped.setting, more)


def _limit(setting: str) -> str:
    return {"costMicros": "cost_micros", "wallSeconds": "wall_seconds"}.get(
        setting.removeprefix(_LIMITS), setting.removeprefix(_LIMITS)
    )


def _of_spawn(asked: StartSubagent, known: Nursery, in_force: InForce, position: int) -> Iterator[_Change]:
    if asked.agent_id is not None:
        change = "agentId is left out: an agent starts its own kind"
        yield _Change(change, Judgement(replace(asked, agent_id=None), known))
    if known.no_model:
        yield _Change("model is left out", Judgement(asked, replace(known, no_model=False)))
    if known.no_thinking:
        yield _Change("thinking is left out", Judgement(asked, replace(known, no_thinking=False)))
    if asked.sandbox == "require":
        yield _Change('sandbox is "inherit"', Judgement(replace(asked, sandbox="inherit"), known))
    if asked.context == "fork":
        yield _Change('context is "isolated"', Judgement(replace(asked, context="isolated"), known))
    if known.closed:
        opened = Judgement(asked, replace(known, closed=()))
        yield _Change(f"{' and '.join(known.closed)} let both agents through", opened, known.closed[0])
    deeper = max(known.spawn_depth, 1) + 1
    if deeper <= _DEEPEST:
        other = Judgement(asked, replace(known, max_spawn_depth=deeper))
        yield _Change(f"{_DEPTH} is {deeper}", other, _DEPTH, deeper)
    more = known.running + 1
    other = Judgement(asked, replace(known, max_children=more))
    yield _Change(f"{_CHILDREN} is {more}", other, _CHILDREN, more)
    if known.running:
        other = Judgement(asked, replace(known, running=known.running - 1))
        yield _Change("one of its sub-agents ends first", other)
    if asked.agent_id is not None:
        name = _allowing(in_force, known.own, position)
        other = Judgement(asked, replace(known, allow=(*known.allow, asked.agent_id)))
        yield _Change(f"{name} has {asked.agent_id}", other, name)
    other = Judgement(asked, replace(known, child_sandboxed=True, own_sandboxed=True))
    yield _Change(f"{_SANDBOX} is all", other, _SANDBOX, "all")


def _allowing(in_force: InForce, own: str | None, position: int) -> str:
    """Return the setting that says which agents another one may start."""
    config = in_force.at(position)
    is_own = own is not None and config.agent(own).subagents.allow_agents is not None
    return _ALLOWED_ONE if is_own else _ALLOWED


def _of_tool(asked: UseTool, known: Workshop) -> Iterator[_Change]:
    for field, name in _TOOLS.items():
        rules: Rules = getattr(known, field)
        given = {
            "deny": replace(rules, deny=()),
            "allow": replace(rules, allow=None),
            "profile": replace(rules, profile=None),
        }
        for inner, wider in given.items():
            if wider != rules:
                setting = f"{name}.{inner}"
                change = f"{setting} is not there, or has {asked.tool}"
                yield _Change(change, Judgement(asked, replace(known, **{field: wider})), setting)
    if known.subagent:
        setting = "tools.subagents.tools.alsoAllow"
        more = replace(known.subagents, also_allow=(*known.subagents.also_allow, asked.tool), deny=())
        yield _Change(
            f"{setting} has {asked.tool}", Judgement(asked, replace(known, subagents=more)), setting
        )
        deeper = known.spawn_depth + 1
        other = Judgement(asked, replace(known, deepest=deeper))
        yield _Change(f"{_DEPTH} is {deeper}", other, _DEPTH, deeper)


# --- what was known


def _inputs(  # noqa: C901 - one case a judgement
    reader: Reader, in_force: InForce, judgement: Judgement, position: int
) -> Iterator[Input]:
    def setting(name: str, value: JsonValue) -> Input:
        return replace(in_force.setting(name, position), value=value)

    match (judgement.asked, judgement.known):
        case SeeSession(), Sight() as sight:
            for name, (field, _, _) in _OPENING.items():
                value = getattr(sight, field)
                yield setting(name, [*value] if isinstance(value, tuple) else value)
        case Speak() as asked, Speech() as known:
            yield Input(name="session", value=asked.key, set_by="log")
            yield Input(name="channel", value=known.channel, set_by="session")
            at = None if known.override is None else _set_at(reader, asked.key, position)
            yield Input(name=_OVERRIDE, value=known.override, set_by="session", position=at)
            yield in_force.setting(_POLICY, position)
        case CarryOn() as asked, Chain() as chain:
            tripped = judge_chain(asked, chain)
            if tripped is not None:
                yield setting(tripped.setting, tripped.allowed)
                yield Input(name=f"{tripped.setting}.used", value=tripped.value, set_by="log")
            yield Input(name="chain", value=[*chain.path], set_by="log")
        case Spend(), Spending(counted=counted):
            full = judge_spending(counted)
            if full is not None:
                yield setting(full.setting, full.allowed)
                yield Input(name=f"{full.setting}.used", value=full.used, set_by="log")
        case WaitFor() as wait, Waits() as waits:
            yield Input(name="chain", value=[wait.target, *(whom for _, whom in waits.waits)], set_by="log")
        case StartSubagent(), Nursery() as nursery:
            yield setting(_DEPTH, nursery.max_spawn_depth)
            yield setting(_CHILDREN, nursery.max_children)
            yield setting(_ALLOWED, [*nursery.allow])
            yield in_force.setting(_SANDBOX, position)
            yield Input(name="depth", value=nursery.spawn_depth, set_by="session")
            yield Input(name="running", value=nursery.running, set_by="log")
            for closed in nursery.closed:
                yield in_force.setting(closed, position)
        case _:
            return


def _set_at(reader: Reader, key: str, position: int) -> int | None:
    """Return where a session's own setting was last changed before a place."""
    for recorded in backwards(reader.log, Span(to=position), session_stream(key)):
        match recorded.event:
            case SessionPatched(values=values) if _OVERRIDE in values:
                return recorded.position
            case SessionImported(send_policy=str()):
                return recorded.position
            case _:
                pass
    return None

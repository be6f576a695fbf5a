"""Explains why a sub-agent was not started: the rules are asked again, with one thing changed after the other."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from intersession_actors.config import Config
from intersession_actors.errors import RefusalCode
from intersession_actors.explaining.explanation import Explanation, Input, Instead
from intersession_actors.explaining.settings import InForce
from intersession_actors.policy import Requester, SpawnRefused, SpawnWish, judge_spawn
from intersession_actors.service import Reader
from intersession_events.plain_json import JsonObject, JsonValue
from intersession_projections.flows import SpawnSummary
from intersession_projections.places import Then

SPAWNING: Final = frozenset[RefusalCode](
    {
        "agent_not_allowed",
        "subagent_spawn",
        "spawn_limit",
        "sandbox_inherit",
        "sandbox_required",
        "invalid_model",
        "invalid_thinking",
    }
)
"""The codes with which the rules of spawns refuse."""

_DEPTH: Final = "agents.defaults.subagents.maxSpawnDepth"
_CHILDREN: Final = "agents.defaults.subagents.maxChildrenPerAgent"
_ALLOWED: Final = "agents.defaults.subagents.allowAgents"
_SANDBOX: Final = "agents.defaults.sandbox.mode"


class _Asked(NamedTuple):
    """What the rules of spawns looked at."""

    config: Config
    requester: Requester
    wish: SpawnWish
    running: int

    def verdict(self) -> str:
        """Return what they say: the code of a refusal, or `allowed`."""
        said = judge_spawn(self.config, self.requester, self.wish, running=self.running)
        return said.code if isinstance(said, SpawnRefused) else "allowed"


class _Change(NamedTuple):
    change: str
    asked: _Asked
    setting: str | None = None
    value: JsonValue = None


def explain_spawn_refused(
    reader: Reader,
    in_force: InForce,
    position: int,
    whole: Explanation,
    *,
    requester: str | None,
    arguments: JsonObject,
) -> Explanation:
    """Explain why a sub-agent was not started, as far as the log has what the rules looked at; else return it as it is."""
    config = in_force.at(position)
    then = Reader(reader.log, config=lambda: config, clock=reader.clock)
    try:
        wish = msgspec.convert(_wished(arguments), SpawnWish)
    except msgspec.ValidationError:
        return whole
    by = then.requester(requester, as_of=position - 1)
    asked = _Asked(config, by, wish, _running(reader, requester, position - 1))
    said = asked.verdict()
    inputs = (*whole.inputs, *_inputs(in_force, asked, position))
    if said != whole.code:
        return replace(whole, inputs=inputs, as_decided=False)
    instead = tuple(
        Instead(change=made.change, verdict=other, setting=made.setting, value=made.value)
        for made in _changes(asked)
        if (other := made.asked.verdict()) != said
    )
    return replace(whole, inputs=inputs, instead=instead or whole.instead, as_decided=True)


_WISHES: Final = {
    "agentId": "agent_id",
    "model": "model",
    "thinking": "thinking",
    "sandbox": "sandbox",
    "mode": "mode",
    "thread": "thread",
    "cleanup": "cleanup",
}


def _wished(arguments: JsonObject) -> JsonObject:
    return {name: arguments[given] for given, name in _WISHES.items() if arguments.get(given) is not None}


def _running(reader: Reader, requester: str | None, at: int) -> int:
    """Return how many children of a session were at work at a position."""
    flows = Then(reader.log, at).open_flows() if requester is not None else []
    return sum(
        isinstance(flow, SpawnSummary) and flow.requester == requester and flow.status is None
        for flow in flows
    )


def _inputs(in_force: InForce, asked: _Asked, position: int) -> Iterator[Input]:
    for name in (_DEPTH, _CHILDREN, _ALLOWED, _SANDBOX):
        yield in_force.setting(name, position)
    yield Input(name="depth", value=asked.requester.spawn_depth, set_by="session")
    yield Input(name="running", value=asked.running, set_by="log")


def _changes(asked: _Asked) -> Iterator[_Change]:
    yield from _other_wishes(asked)
    config, wish = asked.config, asked.wish
    subagents = config.agents.defaults.subagents
    deeper = max(asked.requester.spawn_depth, 1) + 1
    if deeper <= _DEEPEST:
        yield _Change(
            f"{_DEPTH} is {deeper}",
            asked._replace(config=_defaults(config, subagents=replace(subagents, max_spawn_depth=deeper))),
            _DEPTH,
            deeper,
        )
    more = asked.running + 1
    yield _Change(
        f"{_CHILDREN} is {more}",
        asked._replace(config=_defaults(config, subagents=replace(subagents, max_children_per_agent=more))),
        _CHILDREN,
        more,
    )
    if asked.running:
        yield _Change("one of its sub-agents ends first", asked._replace(running=asked.running - 1))
    if wish.agent_id is not None:
        own = asked.requester.key.agent_id if asked.requester.key is not None else config.default_agent
        name, allowing = _allowing(config, own, wish.agent_id)
        yield _Change(f"{name} has {wish.agent_id}", asked._replace(config=allowing), name)
    sandboxed = _defaults(config, sandbox=replace(config.agents.defaults.sandbox, mode="all"))
    yield _Change(f"{_SANDBOX} is all", asked._replace(config=sandboxed), _SANDBOX, "all")


_DEEPEST: Final = 5


def _other_wishes(asked: _Asked) -> Iterator[_Change]:
    wish = asked.wish
    others = {
        "agentId is left out: an agent starts its own kind": replace(wish, agent_id=None),
        "model is left out": replace(wish, model=None),
        "thinking is left out": replace(wish, thinking=None),
        'sandbox is "inherit"': replace(wish, sandbox="inherit"),
    }
    for change, other in others.items():
        if other != wish:
            yield _Change(change, asked._replace(wish=other))


def _allowing(config: Config, own: str, agent_id: str) -> tuple[str, Config]:
    """Return a configuration in which one agent may start another, and the setting that says so."""
    entry = config.agent(own) if own in config.agent_ids else None
    if entry is None or entry.subagents.allow_agents is None:
        subagents = config.agents.defaults.subagents
        allowed = (*(subagents.allow_agents or ()), agent_id)
        return _ALLOWED, _defaults(config, subagents=replace(subagents, allow_agents=allowed))
    allowed = (*entry.subagents.allow_agents, agent_id)
    other = replace(entry, subagents=replace(entry.subagents, allow_agents=allowed))
    agents = tuple(other if one.id == entry.id else one for one in config.agents.list)
    return "agents.list[].subagents.allowAgents", replace(config, agents=replace(config.agents, list=agents))


def _defaults(config: Config, **changed: msgspec.Struct) -> Config:
    agents = config.agents
    return replace(config, agents=replace(agents, defaults=replace(agents.defaults, **changed)))

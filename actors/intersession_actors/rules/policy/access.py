"""Which requester may see and reach which session: the one judgement, for every tool over every door. Pure (VIS, HIST-6)."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal

import msgspec

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.tools import SessionToolsVisibility, Visibility
from intersession_actors.rules.errors import Denial, Known, Question
from intersession_events.basics.keys.key import SessionKey

Operation = Literal["list", "history", "send", "spawn", "status", "search"]

_REMEMBERED: Final = 4_096
"""A list asks of each of its rows which agents its settings let in; these are few."""
_DOING: dict[Operation, str] = {
    "list": "listing",
    "history": "reading",
    "send": "sending to",
    "spawn": "starting",
    "status": "looking at",
    "search": "searching",
}


class SeeSession(Question, frozen=True, kw_only=True):
    """See or reach a session. `key` is the resolved key, None for an unknown session.

    `by_key`: the text itself was a key. Only then may the answer say that the door is closed: by id or by label, the name of
    the setting would tell that the session is there. `other`: it has to be another session than the requester's own.
    """

    operation: Operation = "send"
    key: str | None = None
    by_key: bool = True
    other: bool = False


class ListSessions(Question, frozen=True, kw_only=True):
    """List or search the sessions visible to a requester. That is never denied; others are left out."""

    operation: Operation = "list"


class Sight(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the caller, the settings in force, and the session's state.

    `requester` None is the operator, who sees all (VIS-6). `agent_id` works in the requester's session, where that is not the
    key's own agent. `within` is as in `Requester`. `allow` None lets every agent, () none. `exists`: there is such a session, or
    the call may open it (SEND-2); `earlier`: what was named is a generation of it that is over. `in_tree`: the requester spawned
    it, directly or not. `labelled` is how many sessions have the label that was named.
    """

    requester: str | None = None
    agent_id: str | None = None
    sandboxed: bool = False
    within: tuple[str, ...] | None = None
    visibility: Visibility = "tree"
    agent_to_agent: bool = False
    allow: tuple[str, ...] | None = None
    sandboxed_see: SessionToolsVisibility = "spawned"
    exists: bool = True
    earlier: bool = False
    in_tree: bool = False
    labelled: int = 1

    @property
    def agent(self) -> str:
        """The agent that works in the requester's session."""
        if self.agent_id is not None or self.requester is None:
            return self.agent_id or ""
        return SessionKey.recorded(self.requester).agent_id

    def may_reach(self, key: str) -> bool:
        """Whether a session is within the caller's credential."""
        return self.within is None or key == self.requester or _any_fits(self.within, key)


class Requester(msgspec.Struct, frozen=True, kw_only=True):
    """The caller. `key` None is the operator, who sees all (VIS-6); `agent_id` is then the default agent.

    `spawn_depth` counts the spawns above it. `within` are globs over canonical keys: beside itself, such a session sees and reaches
    no more than these name, whatever settings allow. It has them where a limited credential acts as it; None is no limit.
    """

    key: SessionKey | None
    agent_id: str
    sandboxed: bool = False
    spawn_depth: int = 0
    within: tuple[str, ...] | None = None
    sender: str | None = None
    """The person whose message led to the run that calls, as `channel:id` (TOOLS-2)."""
    model: str | None = None
    """The model that its run, or its session, asks for (TOOLS-1)."""

    def may_know_agent(self, agent_id: str) -> bool:
        """Whether sessions of an agent can be within its credential."""
        return self.within is None or may_act_for(self.within, agent_id)


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions that one requester sees now: computed once, then asked for every row of a list."""

    everything: bool
    key: str
    agent_id: str
    tree: bool
    own_agent: bool
    other_agent: Callable[[str], bool]
    within: Callable[[str], bool] | None = None
    """What limits all of this: no session beyond it is seen."""

    def sees(self, *, key: str, agent_id: str, in_tree: bool) -> bool:
        """Whether an existing session is visible, by canonical key and its agent."""
        if self.everything or key == self.key:
            return True
        if self.within is not None and not self.within(key):
            return False
        return (in_tree and self.tree) or self.sees_agent(agent_id)

    def sees_agent(self, agent_id: str) -> bool:
        """Whether every session of an agent is visible, of those that are `within` its limits."""
        return self.everything or (
            self.own_agent if agent_id == self.agent_id else self.other_agent(agent_id)
        )


def sight_of(config: Config, requester: Requester) -> Sight:
    """Return the inputs for a requester's sight, by the settings in force."""
    key, agent_id = requester.key, requester.agent_id
    return Sight(
        requester=None if key is None else str(key),
        agent_id=None if key is None or key.agent_id == agent_id else agent_id,
        sandboxed=requester.sandboxed,
        within=requester.within,
        visibility=config.tools.sessions.visibility,
        agent_to_agent=config.tools.agent_to_agent.enabled,
        allow=config.tools.agent_to_agent.allow,
        sandboxed_see=(None if key is None else config.agent(agent_id).sandbox.session_tools_visibility)
        or config.agents.defaults.sandbox.session_tools_visibility,
    )


def effective_visibility(sight: Sight) -> Visibility:
    """Return how far a requester sees: a sandboxed one no further than its tree (VIS-5)."""
    clamped = sight.sandboxed and sight.sandboxed_see == "spawned"
    return "tree" if clamped and sight.visibility != "self" else sight.visibility


def reach_of(sight: Sight) -> Reach:
    """Compute what a requester sees (VIS-2). Each level contains the one before it."""
    if sight.requester is None:
        return Reach(
            everything=True, key="", agent_id="", tree=True, own_agent=True, other_agent=lambda _agent: True
        )
    level, own = effective_visibility(sight), sight.agent
    crossing = level == "all" and sight.agent_to_agent and _matches(own, sight.allow)

    return Reach(
        everything=False,
        key=sight.requester,
        agent_id=own,
        tree=level != "self",
        own_agent=level in {"agent", "all"},
        other_agent=lambda other: crossing and _matches(other, sight.allow),
        within=None if sight.within is None else sight.may_reach,
    )


def judge_access(asked: SeeSession, sight: Sight) -> Denial | None:
    """Decide whether a requester may do this to a session (HIST-6); None allows it.

    Oneself and what is visible: allowed. Another agent's key that settings keep closed: forbidden, the same whether
    the session exists or not. Everything else is not visible, the same for absent and invisible; so is all that a credential
    does not name, whatever settings say of it. What is visible is not always to be reached: not by a label that several have, not
    in a generation that is over, and not by the session itself.
    """
    if sight.labelled > 1:
        return Denial("ambiguous_label")
    if asked.key is None or not sight.may_reach(asked.key):
        return Denial("not_visible")
    agent_id = SessionKey.recorded(asked.key).agent_id
    if reach_of(sight).sees(key=asked.key, agent_id=agent_id, in_tree=sight.in_tree):
        if not sight.exists:
            return Denial("not_visible")
        if sight.earlier and asked.operation != "history":
            return Denial("old_generation")
        return Denial("self_send") if asked.other and asked.key == sight.requester else None
    if sight.requester is not None and asked.by_key and agent_id != sight.agent:
        return Denial("forbidden", tuple(_closing(sight, agent_id)))
    return Denial("not_visible")


def not_visible(given: str) -> str:
    """Return the one text for a missing or invisible session, with the name exactly as it was typed."""
    return f"session not visible: {given}"


def may_act_as(patterns: Sequence[str], key: SessionKey) -> bool:
    """Whether a credential may claim to be a session: globs over canonical keys (VIS-6)."""
    return _any_fits(patterns, str(key))


def may_act_for(patterns: Sequence[str], agent_id: str) -> bool:
    """Whether a credential may claim to be any session of an agent at all: whether a glob can match a key with that beginning."""
    begin = f"agent:{agent_id}:"
    return any(fnmatchcase(begin, pattern[:end]) for pattern in patterns for end in range(len(pattern) + 1))


def _any_fits(patterns: Sequence[str], key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def closed(asked: SeeSession, sight: Sight) -> str:
    """Return the error for a session of another agent that settings close: each of them, and what would open it."""
    todo = {} if asked.key is None else _closing(sight, SessionKey.recorded(asked.key).agent_id)
    needed = " and ".join(f"{setting} {how}" for setting, how in todo.items())
    return f"{_DOING[asked.operation]} another agent's session is closed, it needs {needed}"


def _closing(sight: Sight, agent_id: str) -> dict[str, str]:
    """Return every setting that keeps another agent's sessions closed, and what would open it."""
    todo: dict[str, str] = {}
    if effective_visibility(sight) != sight.visibility:
        todo["agents.defaults.sandbox.sessionToolsVisibility"] = (
            "to be all for a sandboxed session (it is spawned)"
        )
    if sight.visibility != "all":
        todo["tools.sessions.visibility"] = f"to be all (it is {sight.visibility})"
    opens = {
        "tools.agentToAgent.enabled": "to be true (it is false)",
        "tools.agentToAgent.allow": "to match both agents",
    }
    return todo | {setting: opens[setting] for setting in settings_between(sight, sight.agent, agent_id)}


def settings_between(sight: Sight, agent_id: str, other: str) -> tuple[str, ...]:
    """Return the settings of `tools.agentToAgent` that keep what is said to one agent from another."""
    closed = [] if sight.agent_to_agent else ["tools.agentToAgent.enabled"]
    if not (_matches(agent_id, sight.allow) and _matches(other, sight.allow)):
        closed.append("tools.agentToAgent.allow")
    return tuple(closed)


@lru_cache(_REMEMBERED)
def _matches(agent_id: str, patterns: tuple[str, ...] | None) -> bool:
    # Agent ids are lower case, so a pattern is folded to have a chance.
    return patterns is None or any(fnmatchcase(agent_id, pattern.lower()) for pattern in patterns)

"""Who may see and reach which session: the one decision, for every tool over every door. Pure (VIS, HIST-6)."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

import msgspec

from intersession_actors.config import Config, SessionToolsVisibility, Visibility
from intersession_events.keys import SessionKey

Operation = Literal["list", "history", "send", "spawn", "status", "search"]

_DOING: dict[Operation, str] = {
    "list": "listing",
    "history": "reading",
    "send": "sending to",
    "spawn": "starting",
    "status": "looking at",
    "search": "searching",
}


class AccessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decide. `allow` None lets every agent, () none."""

    visibility: Visibility = "tree"
    agent_to_agent: bool = False
    allow: tuple[str, ...] | None = None
    sandboxed_see: SessionToolsVisibility = "spawned"


class Requester(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. `key` None is the operator, who sees all (VIS-6); `agent_id` is then the default agent.

    `spawn_depth` counts the spawns above it. `within` are globs over canonical keys: beside itself, such a session sees and reaches
    no more than these name, whatever settings allow. It has them where a limited credential acts as it; None is no limit.
    """

    key: SessionKey | None
    agent_id: str
    sandboxed: bool = False
    spawn_depth: int = 0
    within: tuple[str, ...] | None = None

    def may_reach(self, key: str) -> bool:
        """Whether a session is not beyond what its credential names."""
        return self.within is None or key == str(self.key) or _any_fits(self.within, key)

    def may_know_agent(self, agent_id: str) -> bool:
        """Whether sessions of an agent can be within what its credential names."""
        return self.within is None or may_act_for(self.within, agent_id)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The session that is asked for.

    `given` is the text as typed. `key` is what it resolved to, None where it resolved to nothing. `exists`: there
    is such a session, or the call may open it (SEND-2). `in_tree`: the requester spawned it, directly or not.
    `by_key`: the text itself was a key. Only then may the answer say that the door is closed: by id or by label, the
    name of the setting would tell that the session is there.
    """

    given: str
    key: SessionKey | None
    exists: bool
    in_tree: bool = False
    by_key: bool = True


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """The requester may."""


class Forbidden(msgspec.Struct, frozen=True, kw_only=True):
    """Settings keep another agent's sessions closed, whether this one exists or not."""

    error: str
    settings: tuple[str, ...]
    code: Literal["forbidden"] = "forbidden"


class NotVisible(msgspec.Struct, frozen=True, kw_only=True):
    """The session is absent or invisible; the answer does not say which."""

    error: str
    code: Literal["not_visible"] = "not_visible"


Verdict = Allowed | Forbidden | NotVisible


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What one requester sees now: worked out once, then asked for every row of a list."""

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
        """Whether every session of an agent is visible, of those that are `within` what limits all of this."""
        return self.everything or (
            self.own_agent if agent_id == self.agent_id else self.other_agent(agent_id)
        )


def access_settings(config: Config, agent_id: str | None) -> AccessSettings:
    """Return the settings that hold for a requester of this agent (None: the operator)."""
    own = config.agent(agent_id).sandbox if agent_id in config.agent_ids else None
    default = config.agents.defaults.sandbox.session_tools_visibility
    return AccessSettings(
        visibility=config.tools.sessions.visibility,
        agent_to_agent=config.tools.agent_to_agent.enabled,
        allow=config.tools.agent_to_agent.allow,
        sandboxed_see=(own and own.session_tools_visibility) or default,
    )


def effective_visibility(requester: Requester, settings: AccessSettings) -> Visibility:
    """Return how far a requester sees: a sandboxed one no further than its tree (VIS-5)."""
    clamped = requester.sandboxed and settings.sandboxed_see == "spawned"
    return "tree" if clamped and settings.visibility != "self" else settings.visibility


def reach_of(requester: Requester, settings: AccessSettings) -> Reach:
    """Work out what a requester sees (VIS-2). Each level contains the one before it."""
    if requester.key is None:
        return Reach(
            everything=True, key="", agent_id="", tree=True, own_agent=True, other_agent=lambda _agent: True
        )
    level = effective_visibility(requester, settings)
    crossing = level == "all" and settings.agent_to_agent and _matches(requester.agent_id, settings.allow)

    @cache
    def other_agent(other: str) -> bool:
        return crossing and _matches(other, settings.allow)

    return Reach(
        everything=False,
        key=str(requester.key),
        agent_id=requester.agent_id,
        tree=level != "self",
        own_agent=level in {"agent", "all"},
        other_agent=other_agent,
        within=None if requester.within is None else requester.may_reach,
    )


def judge(requester: Requester, target: Target, operation: Operation, settings: AccessSettings) -> Verdict:
    """Decide whether a requester may do this to a session (HIST-6).

    Oneself and what is visible: allowed. Another agent's key that settings keep closed: forbidden, the same whether
    the session exists or not. Everything else is not visible, the same for absent and invisible; so is all that a credential
    does not name, whatever settings say of it.
    """
    key = target.key
    if key is None or not requester.may_reach(str(key)):
        return NotVisible(error=not_visible(target.given))
    reach = reach_of(requester, settings)
    if reach.sees(key=str(key), agent_id=key.agent_id, in_tree=target.in_tree):
        return Allowed() if target.exists else NotVisible(error=not_visible(target.given))
    if requester.key is not None and target.by_key and key.agent_id != requester.agent_id:
        return _closed(requester, key.agent_id, operation, settings)
    return NotVisible(error=not_visible(target.given))


def not_visible(given: str) -> str:
    """Return the one text for a session that is absent or invisible, with the name exactly as it was typed."""
    return f"session not visible: {given}"


def may_act_as(patterns: Sequence[str], key: SessionKey) -> bool:
    """Whether a credential may claim to be a session: globs over canonical keys (VIS-6)."""
    return _any_fits(patterns, str(key))


def may_act_for(patterns: Sequence[str], agent_id: str) -> bool:
    """Whether a credential may claim to be any session of an agent at all: whether a glob fits anything that begins so."""
    begin = f"agent:{agent_id}:"
    return any(fnmatchcase(begin, pattern[:end]) for pattern in patterns for end in range(len(pattern) + 1))


def _any_fits(patterns: Sequence[str], key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _closed(requester: Requester, agent_id: str, operation: Operation, settings: AccessSettings) -> Forbidden:
    """Name every setting that keeps another agent's sessions closed, and what would open it."""
    todo: dict[str, str] = {}
    if effective_visibility(requester, settings) != settings.visibility:
        todo["agents.defaults.sandbox.sessionToolsVisibility"] = (
            "to be all for a sandboxed session (it is spawned)"
        )
    if settings.visibility != "all":
        todo["tools.sessions.visibility"] = f"to be all (it is {settings.visibility})"
    if not settings.agent_to_agent:
        todo["tools.agentToAgent.enabled"] = "to be true (it is false)"
    if not (_matches(requester.agent_id, settings.allow) and _matches(agent_id, settings.allow)):
        todo["tools.agentToAgent.allow"] = "to match both agents"
    needed = " and ".join(f"{setting} {how}" for setting, how in todo.items())
    return Forbidden(
        error=f"sessionKey: {_DOING[operation]} another agent's session is closed, it needs {needed}",
        settings=tuple(todo),
    )


def _matches(agent_id: str, patterns: Sequence[str] | None) -> bool:
    # Agent ids are lower case, so a pattern is folded to have a chance.
    return patterns is None or any(fnmatchcase(agent_id, pattern.lower()) for pattern in patterns)

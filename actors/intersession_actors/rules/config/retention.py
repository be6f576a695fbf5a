"""For how long words and files are kept, by kind of session and by agent (FORGET-4)."""

import re
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from intersession_actors.rules.config.check import Findings
from intersession_actors.rules.config.settings import Settings, Text
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import Family, SessionKey, valid_agent_id
from intersession_events.facts import ready

_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}

_DURATION: Final = re.compile(r"[1-9][0-9]{0,4}[mhd]")
KINDS: Final[tuple[Family, ...]] = get_args(Family)
Duration = Text
"""A length of time: minutes, hours or days, as `90m`, `12h`, `400d`."""

What = Literal["messages", "toolResults", "thinking", "files"]


class Rule(NamedTuple):
    """A rule as it is told, and how old something gets under it, in milliseconds."""

    name: str
    most_ms: int


class KeepFor(Settings, frozen=True, kw_only=True):
    """How old something gets before it is erased: all words, results of tools, a model's thinking, contents of files.

    None: for ever, or as a wider rule says.
    """

    messages: Duration | None = None
    tool_results: Duration | None = None
    thinking: Duration | None = None
    files: Duration | None = None

    def given(self, kind: What) -> Duration | None:
        """Return what is given for a kind; what all words may, results of tools may at most."""
        match kind:
            case "messages":
                return self.messages
            case "toolResults":
                return self.tool_results or self.messages
            case "thinking":
                return self.thinking  # with all words it goes in any case
            case "files":
                return self.files or self.messages


@ready
class Retention(KeepFor, frozen=True, kw_only=True):
    """The same for all sessions, and what else holds for kinds of sessions, and for agents, which go before."""

    by_kind: dict[str, KeepFor] = msgspec.field(default_factory=dict[str, KeepFor])
    by_agent: dict[str, KeepFor] = msgspec.field(default_factory=dict[str, KeepFor])

    @property
    def has_rules(self) -> bool:
        """Whether anything is ever erased by age."""
        return self != Retention()

    def shortest_ms(self, *kinds: What) -> int | None:
        """Return the shortest time that anything of some kinds is kept, in milliseconds; None if all of it is kept."""
        rules = (self, *self.by_kind.values(), *self.by_agent.values())
        given = [one for kept in rules for kind in kinds if (one := kept.given(kind))]
        return min(map(_ms, given), default=None)

    def rule(self, session_key: str | None, kind: What) -> Rule | None:
        """Return the rule for what is of a session; None as its key: for what is of none."""
        for where, kept in self._for(session_key):
            given = kept.given(kind)
            if given is not None:
                return Rule(f"{kind}{where} {given}", _ms(given))
        return None

    def _for(self, session_key: str | None) -> list[tuple[str, KeepFor]]:
        found: list[tuple[str, KeepFor]] = []
        if session_key is not None:
            try:
                key = SessionKey.recorded(session_key)
            except InvalidKey:
                return [("", self)]
            if (own := self.by_agent.get(key.agent_id)) is not None:
                found.append((f" of {key.agent_id}", own))
            if (own := self.by_kind.get(key.family)) is not None:
                found.append((f" of {key.family}", own))
        return [*found, ("", self)]


def check_retention(retention: Retention, findings: Findings) -> None:
    """Refuse an invalid length of time, kind of session or agent id. An agent may be one that a host registers."""
    rules: list[tuple[str, KeepFor]] = [("retention", retention)]
    for kind, kept in retention.by_kind.items():
        rules.append((f"retention.byKind.{kind}", kept))
        if kind not in KINDS:
            findings.refuse(
                f"retention.byKind.{kind}", f"{kind!r} is no kind of session; use one of {', '.join(KINDS)}"
            )
    for agent_id, kept in retention.by_agent.items():
        rules.append((f"retention.byAgent.{agent_id}", kept))
        if not valid_agent_id(agent_id):
            findings.refuse(
                f"retention.byAgent.{agent_id}",
                f"{agent_id!r} is no agent id; use [a-z0-9][a-z0-9_-]{{0,63}}",
            )
    for path, kept in rules:
        for name, given in (
            ("messages", kept.messages),
            ("toolResults", kept.tool_results),
            ("thinking", kept.thinking),
            ("files", kept.files),
        ):
            if given is not None and _DURATION.fullmatch(given) is None:
                findings.refuse(
                    f"{path}.{name}", f"{given!r} is no length of time; give one such as 90m, 12h or 400d"
                )


def _ms(given: Duration) -> int:
    return int(given[:-1]) * _UNITS_MS[given[-1]]

"""The base of every part of a configuration, and value types that parts share."""

from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.gate.limits import CREDENTIAL
from intersession_events.facts import ready

MAX_SECONDS: Final = 31_536_000
"""A year: the longest time that a setting can name, well below where waits overflow."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]
Minutes = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS / 60)]
Hours = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS / 3600)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
NameText = Annotated[str, msgspec.Meta(min_length=1, max_length=CREDENTIAL.most)]

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "adaptive", "xhigh"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of a part of the configuration: frozen, the original's names in the file, unknown keys refused.

    A value of None is one that was not given. null in a file is refused.
    """


class ModelChoice(Settings, frozen=True, kw_only=True):
    """A model and its fallbacks, as `provider/id`."""

    primary: Text | None = None
    fallbacks: tuple[Text, ...] = ()


class ToolRules(Settings, frozen=True, kw_only=True):
    """Which tools an agent gets: globs over tool names. `deny` wins; `allow`, if given, is the whole choice."""

    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@ready
class ThreadBindings(Settings, frozen=True, kw_only=True):
    """Threads of a channel that belong to a session (SPAWN-12). Hours of 0 are no limit."""

    enabled: bool | None = None
    idle_hours: Hours | None = None
    max_age_hours: Hours | None = None
    spawn_subagent_sessions: bool | None = None


class ChannelDelivery(Settings, frozen=True, kw_only=True):
    """The target of a channel's texts: a URL, and private hosts that it may lead to. A text longer than `max_chars` is sent in parts.

    `worker`: workers alone call it.
    """

    deliver: Text | None = None
    max_chars: AtLeastOne | None = None
    allow_hosts: tuple[Text, ...] = ()
    worker: bool = False


def primary_of(model: str | ModelChoice | None) -> str | None:
    """Return the model to use first."""
    return model.primary if isinstance(model, ModelChoice) else model


def milliseconds(seconds: float) -> int:
    """Return a time in the log's unit."""
    return round(seconds * 1000)

"""The `session` part of a configuration: keys, exchanges between sessions, and the send policy."""

from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.config.settings import (
    Count,
    Minutes,
    Seconds,
    Settings,
    Text,
    ThreadBindings,
    milliseconds,
)
from intersession_events import facts
from intersession_events.basics.keys.key import Kind

Scope = Literal["per-sender", "global"]
DmScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]
Dialect = Literal["channel", "provider", "surface"]
OneWay = Kind | Literal["subagent"]
SendAction = Literal["allow", "deny"]
_CONFIGS: Final = 16
"""Settings of a host that are remembered as events carry them: each send asks for them several times."""


class ChainLimits(Settings, frozen=True, kw_only=True):
    """The guards over a whole causal chain (LOOP-5); 0 turns one off."""

    hops: Count = 8
    revisits: Count = 4
    runs: Count = 64
    tokens: Count = 0
    cost_micros: Count = 0
    wall_seconds: Count = 3600


class Exchanges(Settings, frozen=True, kw_only=True):
    """The settings of exchanges between two sessions: `session.agentToAgent` (LOOP, ANN-2, LIVE-1)."""

    max_ping_pong_turns: Annotated[int, msgspec.Meta(ge=0, le=5)] = 5
    turn_timeout_seconds: Seconds = 60
    one_way: tuple[OneWay, ...] = ()
    announce: Literal["always", "routed"] = "always"
    hold: facts.HoldSetting = "off"
    limits: ChainLimits = ChainLimits()


class SendMatch(Settings, frozen=True, kw_only=True):
    """The conditions of a send policy's rule; a missing one matches everything (POL-1).

    `key_prefix` is compared with the key and with what follows its agent id, `raw_key_prefix` with the key only.
    """

    channel: Text | None = None
    chat_type: facts.ChatType | None = None
    key_prefix: Text | None = None
    raw_key_prefix: Text | None = None


class SendRule(Settings, frozen=True, kw_only=True):
    """One rule of the send policy."""

    action: SendAction
    match: SendMatch = SendMatch()


class SendPolicy(Settings, frozen=True, kw_only=True):
    """Which sessions may send outside (POL-1): a matching deny, else a matching allow, else the default, else allow."""

    default: SendAction | None = None
    rules: tuple[SendRule, ...] = ()


class Reset(Settings, frozen=True, kw_only=True):
    """When conversations begin anew by the clock (RESET-1): at an hour of the day in a zone, after idling, or either.

    `idle_minutes` of 0 is never, as is a `mode` that was not given.
    """

    mode: Literal["daily", "idle"] | None = None
    at_hour: Annotated[int, msgspec.Meta(ge=0, le=23)] | None = None
    idle_minutes: Minutes | None = None
    tz: Text | None = None


class ResetByType(Settings, frozen=True, kw_only=True):
    """The same for direct chats, for groups and channels, and for threads."""

    direct: Reset | None = None
    group: Reset | None = None
    thread: Reset | None = None


class SessionSettings(Settings, frozen=True, kw_only=True):
    """The names of sessions, and how they talk to each other and outside."""

    main_key: Text = "main"
    scope: Scope = "per-sender"
    dm_scope: DmScope = "main"
    dialect: Dialect = "channel"
    identity_links: dict[str, tuple[Text, ...]] = msgspec.field(default_factory=dict[str, tuple[Text, ...]])
    agent_to_agent: Exchanges = Exchanges()
    send_policy: SendPolicy = SendPolicy()
    thread_bindings: ThreadBindings = ThreadBindings()
    reset: Reset = Reset()
    reset_by_type: ResetByType = ResetByType()
    reset_by_channel: dict[str, Reset] = msgspec.field(default_factory=dict[str, Reset])
    reset_triggers: tuple[Text, ...] = ("/new", "/reset")
    idle_minutes: Minutes | None = None

    def person(self, channel: str, sender: str) -> str:
        """Return the name of a person: the one that `identityLinks` joins several by, else `channel:sender`."""
        address = f"{channel}:{sender}"
        links = self.identity_links.items()
        return next((name for name, peers in links if address in peers or sender in peers), address)

    @property
    def limits(self) -> facts.Limits:
        """The guards over a causal chain, as events carry them."""
        return _limits(self.agent_to_agent.limits)

    @property
    def exchange(self) -> facts.ExchangeSettings:
        """The settings that an exchange accepted now keeps to its end (CFG-3)."""
        return _exchange(self.agent_to_agent)


@lru_cache(_CONFIGS)
def _limits(configured: ChainLimits) -> facts.Limits:
    return facts.lean(msgspec.convert(configured, facts.Limits, from_attributes=True), facts.NO_OTHER_LIMITS)


@lru_cache(_CONFIGS)
def _exchange(configured: Exchanges) -> facts.ExchangeSettings:
    return facts.lean(
        facts.ExchangeSettings(
            max_turns=configured.max_ping_pong_turns,
            turn_timeout_ms=milliseconds(configured.turn_timeout_seconds),
            announce=configured.announce,
            hold=configured.hold,
            limits=_limits(configured.limits),
        ),
        facts.USUAL_SETTINGS,
    )

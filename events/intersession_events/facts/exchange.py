"""What can have happened in an exchange: all that one `sessions_send` starts. Stream `exchange:<id>`.

The primary run, the reply-back loop turn by turn, the end of the loop and why, the announce, holds and releases, the close.
"""

from typing import ClassVar, Final, Literal

from intersession_events.facts.base import Fact, Said, Whole
from intersession_events.facts.chain import NO_OTHER_LIMITS, Budget, Limits
from intersession_events.facts.message import Usage
from intersession_events.facts.parts import (
    AnnounceDecided,
    AnnounceRequested,
    Deciding,
    ExchangeClosed,
    ExchangeHeld,
    HoldBefore,
    LoopEnd,
    LoopEnded,
    TurnRequested,
)
from intersession_events.facts.session import Route

__all__ = [
    "USUAL_SETTINGS",
    "ExchangeAccepted",
    "ExchangeEvent",
    "ExchangeReleased",
    "ExchangeSettings",
    "HoldRequested",
    "HoldSetting",
    "HoldWithdrawn",
    "Release",
    "ReplyKind",
    "RunStatus",
    "TurnEnded",
]

RunStatus = Literal["ok", "error", "timeout", "aborted", "interrupted"]
HoldSetting = Literal["off", "reply", "every-turn", "announce"]
"""What the setting `session.agentToAgent.hold` can be."""
ReplyKind = Literal["text", "skip", "nothing"]
Release = Literal["go_on", "edit", "drop", "end"]


class ExchangeSettings(Fact, frozen=True, kw_only=True):
    """The values in force when the exchange was accepted; they hold for it to its end (CFG-3)."""

    max_turns: Whole = 5
    turn_timeout_ms: Whole = 60_000
    announce: Literal["always", "routed"] = "always"
    limits: Limits = NO_OTHER_LIMITS
    hold: HoldSetting = "off"


USUAL_SETTINGS: Final = ExchangeSettings()
"""Those where nothing else is configured; as one value, which is not stored."""


class ExchangeAccepted(Fact, frozen=True, kw_only=True):
    """A message was accepted for another session; from here on nothing of it lives only in memory (SEND-3).

    `message` stands here only in an import, which may show no such run: the run `run_id` has it. `requester` is None for a call of
    the operator. `route` is the target's at this moment (ANN-2). `loop`
    False means that no reply-back loop follows, and `loop_reason` why. `request_digest` is the SHA-256 of the
    request, so that one idempotency key can't carry two messages (SEND-11); `asked_digest` is that of the
    request as it was typed, so that it is known again when what it names is gone. `budget` is how far its
    causal chain has come, this target last, and what that may use. `send_rule`
    is the send policy's that allowed it, `visibility` how far the requester could see (VIS-1, clamped as
    VIS-5 says; None for the operator): both are judged again where they count later, and recorded again there
    (CFG-3). `target_version` is how far the target's stream had come when the send was judged, 0 where the
    target was not there.
    """

    topic: ClassVar[str] = "exchange_accepted.1"

    exchange_id: str
    run_id: str
    target: str
    target_session_id: str
    message_id: str
    message: Said | None = None
    settings: ExchangeSettings = USUAL_SETTINGS
    caller: str = "operator"
    requester: str | None = None
    requester_session_id: str | None = None
    requester_channel: str | None = None
    requester_run_id: str | None = None
    target_channel: str | None = None
    route: Route | None = None
    loop: bool = True
    loop_reason: LoopEnd | None = None
    idempotency_key: str | None = None
    request_digest: str | None = None
    timeout_ms: Whole = 0
    budget: Budget | None = None
    send_rule: str | None = None
    visibility: str | None = None
    inferred: bool = False
    evidence: Said | None = None
    asked_digest: str | None = None
    target_version: Whole | None = None

    @property
    def hops(self) -> int:
        """The sends and spawns on the way, this one too."""
        return 1 if self.budget is None else self.budget.hops


class TurnEnded(Deciding, frozen=True, kw_only=True):
    """A run of the exchange ended: turn 0 is the target's first run, the others are of the loop.

    `said` is what kind of reply it was: a text, the word that ends the loop, or no text. `text`, `error` and `usage` are the
    run's. Its session has them: they stand here only in an import, which may show no such run. `in_transcript`: the text is that of
    the last message of the run.
    """

    topic: ClassVar[str] = "turn_ended.1"

    turn: Whole
    speaker: str
    run_id: str
    status: RunStatus = "ok"
    said: ReplyKind = "text"
    in_transcript: bool = True
    text: Said | None = None
    error: Said | None = None
    usage: Usage | None = None


class HoldRequested(Fact, frozen=True, kw_only=True):
    """Somebody wants the exchange to stop before a text goes on, and to wait for a release (LIVE-1). The last word holds."""

    topic: ClassVar[str] = "hold_requested.1"

    before: HoldBefore
    by: str


class HoldWithdrawn(Fact, frozen=True, kw_only=True):
    """The exchange is not to stop after all: it was released before it had come to where it would have."""

    topic: ClassVar[str] = "hold_withdrawn.1"

    by: str


class ExchangeReleased(Deciding, frozen=True, kw_only=True):
    """Somebody let a held exchange go on: with the text, with another one (`edit`, `text`), without it, or not at all.

    `held_ms` is how long it was held, which no limit of its causal chain counts. `for_good`: it is not held again.
    """

    topic: ClassVar[str] = "exchange_released.1"

    hold_id: str
    action: Release
    by: str
    held_ms: Whole = 0
    text: Said | None = None
    for_good: bool = False


ExchangeEvent = (
    ExchangeAccepted
    | TurnEnded
    | TurnRequested
    | LoopEnded
    | AnnounceRequested
    | AnnounceDecided
    | HoldRequested
    | HoldWithdrawn
    | ExchangeHeld
    | ExchangeReleased
    | ExchangeClosed
)
"""What the stream of an exchange says: its events, and what follows in them."""

"""What can have happened in an exchange: all that one `sessions_send` starts. Stream `exchange:<id>`.

The primary run, the reply-back loop turn by turn, the end of the loop and why, the announce, holds and releases, the close.
"""

from typing import Literal

from intersession_events.facts.base import Fact
from intersession_events.facts.chain import Budget, Limits
from intersession_events.facts.message import Usage
from intersession_events.facts.session import Route

LoopEnd = Literal[
    "reply_skip",
    "no_text",
    "turn_limit",
    "turn_failed",
    "turn_timeout",
    "policy_denied",
    "one_way",
    "no_requester",
    "no_agent",
    "requester_gone",
    "target_gone",
    "hop_limit",
    "revisit_limit",
    "run_limit",
    "token_limit",
    "cost_limit",
    "wall_limit",
    "aborted",
    "dropped",
    "ended",
    "inferred",
]
CloseReason = Literal[
    "announced",
    "silent",
    "no_route",
    "no_reply",
    "run_failed",
    "announce_failed",
    "announce_denied",
    "delivery_unknown",
    "withheld",
    "target_gone",
    "aborted",
    "dropped",
    "ended",
    "inferred",
]
RunStatus = Literal["ok", "error", "timeout", "aborted", "interrupted"]
HoldBefore = Literal["next", "reply", "every-turn", "announce"]
"""Before what an exchange is to stop: whichever text goes on next, the next reply, every text, the announce."""
HoldSetting = Literal["off", "reply", "every-turn", "announce"]
"""What the setting `session.agentToAgent.hold` can be."""
HeldText = Literal["reply", "announce"]
HoldSource = Literal["setting", "session", "run", "rule"]
"""What ordered a hold: the configuration, a session that is held, this exchange, or a rule of the host's."""
Release = Literal["go_on", "edit", "drop", "end"]


class ExchangeSettings(Fact, frozen=True, kw_only=True):
    """The values in force when the exchange was accepted; they hold for it to its end (CFG-3)."""

    max_turns: int = 5
    turn_timeout_ms: int = 60_000
    announce: Literal["always", "routed"] = "always"
    limits: Limits = Limits()
    hold: HoldSetting = "off"


class ExchangeAccepted(Fact, frozen=True, kw_only=True):
    """A message was accepted for another session; from here on nothing of it lives only in memory (SEND-3).

    `requester` is None for a call of the operator. `route` is the target's at this moment (ANN-2). `loop`
    False means that no reply-back loop follows, and `loop_reason` why. `request_digest` is the SHA-256 of the
    request, so that one idempotency key can't carry two messages (SEND-11); `asked_digest` is that of the
    request as it was typed, so that it is known again when what it names is gone. `chain` are the sessions
    the causal chain has passed through, this target last; `root` is the run it began with, `chain_started_ms`
    when, and the other `chain_…` fields what it had cost up to here; `budget` is what it may use. `send_rule`
    is the send policy's that allowed it, `visibility` how far the requester could see (VIS-1, clamped as
    VIS-5 says; None for the operator): both are judged again where they count later, and recorded again there
    (CFG-3). `target_version` is how far the target's stream had come when the send was judged, 0 where the
    target was not there.
    """

    exchange_id: str
    run_id: str
    target: str
    target_session_id: str
    message_id: str
    message: str
    settings: ExchangeSettings = ExchangeSettings()
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
    timeout_ms: int = 0
    chain: tuple[str, ...] = ()
    hops: int = 1
    root: str | None = None
    chain_started_ms: int = 0
    chain_runs: int = 0
    chain_tokens: int = 0
    chain_cost_micros: int = 0
    budget: Budget | None = None
    send_rule: str | None = None
    visibility: str | None = None
    inferred: bool = False
    evidence: str | None = None
    asked_digest: str | None = None
    target_version: int | None = None


class PrimaryEnded(Fact, frozen=True, kw_only=True):
    """The target's first run ended. `text` is its reply; None is no text."""

    run_id: str
    status: RunStatus
    text: str | None = None
    error: str | None = None
    usage: Usage | None = None


class TurnRequested(Fact, frozen=True, kw_only=True):
    """Turn `turn` of the loop was asked of `speaker`; its message and run are in the same append."""

    turn: int
    speaker: str
    run_id: str
    message_id: str


class TurnReplied(Fact, frozen=True, kw_only=True):
    """The turn's run ended. `text` is the reply; None where there was none."""

    turn: int
    speaker: str
    run_id: str
    status: RunStatus
    text: str | None = None
    error: str | None = None
    usage: Usage | None = None


class LoopEnded(Fact, frozen=True, kw_only=True):
    """No further turn will be asked for, and why. `limit` names the setting that tripped, `note` the rest.

    `used` is how much of it the causal chain had used, where it is a guard over one: in runs, tokens, millionths of money or
    seconds.
    """

    reason: LoopEnd
    turns: int
    limit: str | None = None
    note: str | None = None
    used: int | None = None


class AnnounceRequested(Fact, frozen=True, kw_only=True):
    """The announcing session was asked for its announce text (ANN-1, SPAWN-9)."""

    speaker: str
    run_id: str
    message_id: str


class AnnounceDecided(Fact, frozen=True, kw_only=True):
    """What will be announced.

    `text` None is silence, `why` says of which kind; `limit` is the setting that kept the turn for it from
    being asked. With a `delivery_id` the outbox has it: the delivery's first event is in the same append.
    `stats` is the stats line of a sub-agent's announce, where `text` is for people and leaves it out.
    `edited_by` is who wrote the text instead of the agent (LIVE-1).
    """

    text: str | None = None
    why: Literal[
        "text", "announce_skip", "no_text", "run_failed", "not_routed", "child_failed", "limit", "dropped"
    ] = "text"
    limit: str | None = None
    delivery_id: str | None = None
    run_id: str | None = None
    usage: Usage | None = None
    stats: str | None = None
    edited_by: str | None = None


class HoldRequested(Fact, frozen=True, kw_only=True):
    """Somebody wants the exchange to stop before a text goes on, and to wait for a release (LIVE-1). The last word holds."""

    before: HoldBefore
    by: str


class HoldWithdrawn(Fact, frozen=True, kw_only=True):
    """The exchange is not to stop after all: it was released before it had come to where it would have."""

    by: str


class ExchangeHeld(Fact, frozen=True, kw_only=True):
    """The exchange has stopped, and waits for a release (LIVE-1).

    `text` is what would go on: the words of `speaker`, for the session `to`; None where they would go to a channel. `turn` is the turn that
    they are from, 0 for the reply of the first run; `next_turn` the one that they would be given with, None where none would follow:
    then `next_end` says why the loop would end, `next_limit` which setting tripped, `next_used` how much was used, and `next_note` the
    rest, as `LoopEnded` does.
    `by` ordered it, `order` tells this order from others, `note` is what a rule said. `run_id` and `usage` are of the announce turn.
    """

    hold_id: str
    step: HeldText
    text: str
    speaker: str
    since_ms: int
    before: HoldBefore
    source: HoldSource
    by: str
    order: str
    to: str | None = None
    turn: int = 0
    next_turn: int | None = None
    note: str | None = None
    run_id: str | None = None
    usage: Usage | None = None
    next_end: LoopEnd | None = None
    next_limit: str | None = None
    next_note: str | None = None
    next_used: int | None = None


class ExchangeReleased(Fact, frozen=True, kw_only=True):
    """Somebody let a held exchange go on: with the text, with another one (`edit`, `text`), without it, or not at all.

    `held_ms` is how long it was held, which no limit of its causal chain counts. `for_good`: it is not held again.
    """

    hold_id: str
    action: Release
    by: str
    held_ms: int = 0
    text: str | None = None
    for_good: bool = False


class ExchangeClosed(Fact, frozen=True, kw_only=True):
    """The exchange is over, and how. `limit` is the setting that ended it, where one did; `used` is as in `LoopEnded`."""

    reason: CloseReason
    note: str | None = None
    limit: str | None = None
    used: int | None = None


ExchangeEvent = (
    ExchangeAccepted
    | PrimaryEnded
    | TurnRequested
    | TurnReplied
    | LoopEnded
    | AnnounceRequested
    | AnnounceDecided
    | HoldRequested
    | HoldWithdrawn
    | ExchangeHeld
    | ExchangeReleased
    | ExchangeClosed
)

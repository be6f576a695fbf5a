"""What can have happened in an exchange: all that one `sessions_send` starts. Stream `exchange:<id>`.

The primary run, the reply-back loop turn by turn, the end of the loop and why, the announce, holds and releases, the close.
"""

from typing import ClassVar, Final, Literal

import msgspec

from intersession_events.basics.ids import exchange_stream
from intersession_events.facts.base import NO_OTHER_LIMITS, Fact, Limits, Mark, Said, Whole, Work
from intersession_events.facts.parts import (
    AnnounceDecided,
    AnnounceRequested,
    Deciding,
    ExchangeClosed,
    ExchangeHeld,
    FlowAccepted,
    FlowAnswered,
    LoopEnded,
    TurnRequested,
)
from intersession_events.facts.reasons import HELD_BEFORE, RELEASES, STATUSES, HoldBefore, LoopEnd, Release
from intersession_events.facts.words import OF_RUN, Frame, Words

__all__ = [
    "USUAL_SETTINGS",
    "ExchangeAccepted",
    "ExchangeEvent",
    "ExchangeReleased",
    "ExchangeSettings",
    "HoldRequested",
    "HoldSetting",
    "HoldWithdrawn",
    "TurnEnded",
]

HoldSetting = Literal["off", "reply", "every-turn", "announce"]
"""What the setting `session.agentToAgent.hold` can be."""


class ExchangeSettings(Fact, frozen=True, kw_only=True):
    """The values in force when the exchange was accepted; they hold for it to its end (CFG-3)."""

    max_turns: Whole = 5
    turn_timeout_ms: Whole = 60_000
    announce: Literal["always", "routed"] = "always"
    limits: Limits = NO_OTHER_LIMITS
    hold: HoldSetting = "off"


USUAL_SETTINGS: Final = ExchangeSettings()
"""Those where nothing else is configured; as one value, which is not stored."""


class ExchangeAccepted(FlowAccepted, frozen=True, kw_only=True):
    """A message was accepted for another session; nothing of it lives only in memory any more (SEND-3).

    `message` stands here only in an import, which may lack such a run: the run `run_id` has it. `route` is the target's at
    this moment (ANN-2). Without a `loop` no reply-back loop follows, for `loop_reason`. `request_digests` are the SHA-256 of
    the request, so that one idempotency key can't carry two messages (SEND-11), and of the request as it was typed, so
    that it is known again when the sessions it names are gone; an erasure takes them (ERASE-4). Earlier logs have them as
    `request_digest` and `asked_digest`. `send_rule` is the rule of the send policy
    that allowed it, `visibility` the requester's (VIS-1, clamped as VIS-5 says; None for the operator): both are judged
    again where they count later, and recorded there (CFG-3). `target_version` is the version of the target's stream when
    the send was judged, 0 for a target that was not there.
    """

    topic: ClassVar[str] = "exchange_accepted.1"
    begins: ClassVar[Work | None] = "exchange"

    exchange_id: str
    target: str
    target_session_id: str
    message: Said | None = None
    settings: ExchangeSettings = USUAL_SETTINGS
    target_channel: str | None = None
    loop: bool = True
    loop_reason: LoopEnd | None = None
    timeout_ms: Whole = 0
    send_rule: str | None = None
    visibility: str | None = None
    asked_digest: str | None = None
    target_version: Whole | None = None

    @property
    def digests(self) -> tuple[str | None, ...]:
        return self.request_digests or (self.request_digest, self.asked_digest)

    @property
    def hops(self) -> int:
        """The sends and spawns on the way, this one too."""
        return 1 if self.budget is None else self.budget.hops

    @property
    def asked(self) -> str:
        return self.target

    @property
    def asked_text(self) -> str | None:
        return self.message

    @property
    def stream(self) -> str:
        return exchange_stream(self.exchange_id)

    def with_text(self, text: str) -> "ExchangeAccepted":
        return msgspec.structs.replace(self, message=text)

    def frame(self) -> Frame:
        return Frame(sides=(self.asker, self.target), max_turns=self.settings.max_turns)

    def in_words(self, at: Frame) -> Words:
        asker, asked = at.asker, at.asked
        return Words(
            self.asker, self.target, self.message or OF_RUN, "asks", self.message, "said",
            step=f"{asker} asks {asked}",
            after=f"after the start: {asker} has asked {asked}, {asked} has not answered yet",
        )  # fmt: skip


class TurnEnded(FlowAnswered, frozen=True, kw_only=True):
    """A run of the exchange ended: turn 0 is the target's first run, the others are of the loop.

    `said` is the kind of its reply: a text, the word that ends the loop, or no text.
    """

    topic: ClassVar[str] = "turn_ended.1"

    turn: Whole
    speaker: str

    def in_words(self, at: Frame) -> Words:
        asker, asked = at.asker, at.asked
        if self.turn == 0:
            who, other, step, what, turn = (
                asked,
                asker,
                f"the primary reply of {asked}",
                "the primary reply",
                "replies",
            )
        else:
            what = f"turn {self.turn}"
            who, turn = at.named(self.speaker), f"{what} of {at.max_turns}" if at.max_turns else what
            other, step = asked if who == asker else asker, f"{what} of {who}"
        words = self._answer(self.speaker, at.other(self.speaker), turn)
        return words._replace(step=step, after=f"after {what}: {self._has(who)}, {other} has not yet")

    def _has(self, speaker: str) -> str:
        if self.status != "ok":
            return f"{speaker} has not answered: it {STATUSES[self.status]}"
        return (
            f"{speaker} has answered" if self.said != "nothing" else f"{speaker} has answered without a text"
        )


class HoldRequested(Fact, frozen=True, kw_only=True):
    """A caller orders the exchange to stop before a text goes on, and to wait for a release (LIVE-1). The last order holds."""

    topic: ClassVar[str] = "hold_requested.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    before: HoldBefore
    by: str

    def in_words(self, at: Frame) -> Words:
        return Words(
            self.by, None, f"hold before {self.before}", f"wants it held before {HELD_BEFORE[self.before]}"
        )


class HoldWithdrawn(Fact, frozen=True, kw_only=True):
    """The order is taken back: the exchange was released before it had stopped."""

    topic: ClassVar[str] = "hold_withdrawn.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    by: str

    def in_words(self, at: Frame) -> Words:
        return Words(self.by, None, "hold withdrawn", "wants it held no more")


class ExchangeReleased(Deciding, frozen=True, kw_only=True):
    """A caller let a held exchange go on: with the text, with another one (`edit`, `text`), without it, or not at all.

    `held_ms` is the time that it was held, which no limit of its causal chain counts. `for_good`: it is not held again.
    """

    topic: ClassVar[str] = "exchange_released.1"
    mark: ClassVar[Mark | None] = "note"

    hold_id: str
    action: Release
    by: str
    held_ms: Whole = 0
    text: Said | None = None
    for_good: bool = False

    def in_words(self, at: Frame) -> Words:
        how = RELEASES[self.action]
        return Words(
            self.by, None, self.action if self.text is None else f"{self.action}: {self.text}", how,
            self.text, "note" if self.text is None else "said",
            step=f"a release ({self.action})",
            after=f"after the release: whoever released it {how}",
        )  # fmt: skip


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

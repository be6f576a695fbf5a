"""What can have happened to a text on its way to a channel: the outbox. Stream `delivery:<id>` (ANN-3)."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from intersession_events.facts.base import ERASED_JSON, Budget, Fact, Mark, Remark, Said, Source, Whole, Work
from intersession_events.facts.message import FileBlock
from intersession_events.facts.message_words import with_files
from intersession_events.facts.session import Route
from intersession_events.facts.words import Frame, Words

__all__ = [
    "DeliveryAttempt",
    "DeliveryDecided",
    "DeliveryDenied",
    "DeliveryDone",
    "DeliveryEvent",
    "DeliveryFact",
    "DeliveryFailed",
    "DeliveryPartDone",
    "DeliveryRetried",
    "DeliveryStarted",
    "DeliveryState",
    "DeliveryUnknown",
    "DeliveryWithheld",
    "Purpose",
    "delivery_named",
]

Purpose = Literal[
    "auto_reply", "announce", "spawn_announce", "command_reply", "send", "failure_notice", "approval"
]

DeliveryState = Literal["decided", "started", "retrying", "done", "failed", "unknown", "denied", "withheld"]

STATES: Final[Mapping[DeliveryState, str]] = {
    "decided": "waiting",
    "started": "on its way",
    "retrying": "tried again soon",
    "done": "delivered",
    "failed": "not delivered",
    "unknown": "perhaps delivered",
    "denied": "forbidden by the send policy",
    "withheld": "withheld: would deliver",
}
"""What became of a text, in a few words, for lists and tables."""

_SENDS: Final[Mapping[Purpose, str]] = {
    "announce": "announces",
    "spawn_announce": "announces",
    "failure_notice": "tells that there is no answer",
    "approval": "asks for approval of a call",
}


def _receipt(receipt: str | None) -> str:
    return "" if receipt is None else f", its receipt: {receipt}"


class DeliveryFact(Fact, frozen=True, kw_only=True):
    """An event of a text on its way to a channel."""

    leads_to: ClassVar[DeliveryState]

    delivery_id: str

    @property
    def state(self) -> DeliveryState:
        """How the delivery stands behind it."""
        return self.leads_to

    @property
    def trouble(self) -> str | None:
        """Why the text did not arrive, or may not have, as far as somebody said it."""
        return None


class DeliveryAttempt(DeliveryFact, frozen=True, kw_only=True):
    """An event of one attempt to deliver the text."""

    attempt: Whole = 1


class DeliveryDecided(DeliveryFact, frozen=True, kw_only=True):
    """A text is to be delivered. `key` is the idempotency key of all attempts.

    `session_key` is the session that sends it (its send policy decides), `run_id` the run that produced it, `owner` the
    stream of the exchange or spawn that waits for the outcome. `budget` is that of its causal chain: what the channel
    tells another session belongs to the same chain. `by` is the caller of `send`, for a text that no run produced. `files` go with
    the text (FILE-6). `edits` is the receipt of the message that was begun while the answer was said, which this text edits; `null`
    where the receipt is not known (STREAM-5).
    """

    topic: ClassVar[str] = "delivery_decided.1"
    leads_to: ClassVar[DeliveryState] = "decided"
    begins: ClassVar[Work | None] = "delivery"

    session_key: str
    route: Route
    text: Said
    key: str
    purpose: Purpose
    run_id: str | None = None
    owner: str | None = None
    budget: Budget | None = None
    by: str | None = None
    files: tuple[FileBlock, ...] = ()
    edits: Source | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"edits": None if self.edits is None else ERASED_JSON}

    def frame(self) -> Frame:
        return Frame(place=self.route.text)

    def in_words(self, at: Frame) -> Words:
        how = _SENDS.get(self.purpose, "sends")
        if self.by is not None:
            how = f"{how}, as {self.by} asks"
        step = f"a text of {at.asker} is to go to {at.asked}"
        text = with_files(self.text, self.files)
        return Words(self.session_key, self.route.text, text, how, text, "said", step)


class DeliveryStarted(DeliveryAttempt, frozen=True, kw_only=True):
    """The channel is about to be called. `rule` is the rule of the send policy that allows the text now (CFG-3)."""

    topic: ClassVar[str] = "delivery_started.1"
    in_stories: ClassVar[bool] = False
    leads_to: ClassVar[DeliveryState] = "started"

    rule: str | None = None

    def in_words(self, at: Frame) -> Words:
        step = f"{at.asked} is given the text of {at.asker}"
        return Words(None, None, f"attempt {self.attempt}", step=step)


class DeliveryPartDone(DeliveryAttempt, frozen=True, kw_only=True):
    """The channel took a part of a text that is longer than it takes at once. `receipt` is as in `DeliveryDone`.

    `sent` is the number of characters of the text that it has: the next part begins behind them, in a later attempt too.
    """

    topic: ClassVar[str] = "delivery_part_done.1"
    leads_to: ClassVar[DeliveryState] = "started"
    mark: ClassVar[Mark | None] = "note"

    sent: Whole
    receipt: Source | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"receipt": None if self.receipt is None else ERASED_JSON}

    def in_words(self, at: Frame) -> Words:
        how = f"Delivered to {at.place} as far as character {self.sent}."
        brief = f"taken as far as character {self.sent}{_receipt(self.receipt)}"
        return Words(None, None, brief, how, step=f"{at.asked} has a part of the text of {at.asker}")


class DeliveryDone(DeliveryAttempt, frozen=True, kw_only=True):
    """The channel took the text, or its last part. `receipt` is the source text of the channel's JSON, if any."""

    topic: ClassVar[str] = "delivery_done.1"
    leads_to: ClassVar[DeliveryState] = "done"
    mark: ClassVar[Mark | None] = "note"
    ends: ClassVar[Work | None] = "delivery"

    receipt: Source | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"receipt": None if self.receipt is None else ERASED_JSON}

    def in_words(self, at: Frame) -> Words:
        how, step = f"Delivered to {at.place}.", f"{at.asked} has the text of {at.asker}"
        return Words(None, None, f"taken{_receipt(self.receipt)}", how, step=step)


class DeliveryFailed(DeliveryAttempt, frozen=True, kw_only=True):
    """An attempt failed. `retry_at_ms` is the time of the next attempt; None means never.

    `failed_ms` is the time that `retry_at_ms` counts from: the clock may be set, and the log's time never goes back; None
    for the last attempt. `later_ms` is the pause that the channel asked for; None if it asked for none. `traceback` is for
    the operator, as in `RunFailed`, for exceptions that the channel does not explain itself.
    """

    topic: ClassVar[str] = "delivery_failed.1"
    leads_to: ClassVar[DeliveryState] = "failed"
    mark: ClassVar[Mark | None] = "failed"
    ends: ClassVar[Work | None] = "delivery"

    error: Remark
    retry_at_ms: Whole | None = None
    traceback: Remark | None = None
    failed_ms: Whole | None = None
    later_ms: Whole | None = None

    @property
    def is_final(self) -> bool:
        return self.retry_at_ms is None

    @property
    def trouble(self) -> str | None:
        return self.error

    @property
    def state(self) -> DeliveryState:
        return "failed" if self.is_final else "retrying"

    def in_words(self, at: Frame) -> Words:
        given_up = self.retry_at_ms is None
        brief = "not tried again" if given_up else "to be tried again"
        how = "given up" if given_up else "to be tried again"
        return Words(
            None, None, f"attempt {self.attempt}, {brief}: {self.error}",
            f"Not delivered to {at.place}, {how}: {self.error}", self.traceback,
            step=f"{at.asked} has not taken the text of {at.asker}, {how}",
        )  # fmt: skip


class DeliveryUnknown(DeliveryAttempt, frozen=True, kw_only=True):
    """The outcome is not known, and the text is not sent again: the channel does not know keys, and was cut off or is in doubt.

    `error` is the channel's own error; None if it gave none.
    """

    topic: ClassVar[str] = "delivery_unknown.1"
    leads_to: ClassVar[DeliveryState] = "unknown"
    mark: ClassVar[Mark | None] = "failed"
    ends: ClassVar[Work | None] = "delivery"

    error: Remark | None = None

    @property
    def trouble(self) -> str | None:
        return self.error

    def in_words(self, at: Frame) -> Words:
        how = "was cut off" if self.error is None else "is in doubt"
        brief = f"attempt {self.attempt} {how}, the channel may have it"
        whole = f"It is not known whether {at.place} got it; it is not sent again."
        if self.error:
            brief, whole = f"{brief}: {self.error}", f"{whole} {self.error}"
        return Words(None, None, brief, whole, step=f"{at.asked} may have the text of {at.asker}, or not")


class DeliveryDenied(DeliveryFact, frozen=True, kw_only=True):
    """The send policy forbids it now (POL-3). `rule` names the rule."""

    topic: ClassVar[str] = "delivery_denied.1"
    leads_to: ClassVar[DeliveryState] = "denied"
    mark: ClassVar[Mark | None] = "failed"
    ends: ClassVar[Work | None] = "delivery"

    rule: str

    @property
    def trouble(self) -> str | None:
        return self.rule

    def in_words(self, at: Frame) -> Words:
        how = f"Not delivered to {at.place}: the send policy forbids it ({self.rule})."
        return Words(None, None, self.rule, how, step=f"the text of {at.asker} may not go to {at.asked}")


class DeliveryWithheld(DeliveryFact, frozen=True, kw_only=True):
    """The log is a fork, whose channels are sealed: the text would be delivered, and is not (FORK-5).

    `channel` is its destination, `rule` the rule of the send policy that would allow it.
    """

    topic: ClassVar[str] = "delivery_withheld.1"
    leads_to: ClassVar[DeliveryState] = "withheld"
    mark: ClassVar[Mark | None] = "note"
    ends: ClassVar[Work | None] = "delivery"

    channel: str
    rule: str | None = None

    def in_words(self, at: Frame) -> Words:
        brief, step = (
            f"withheld, would deliver to {self.channel}",
            f"the text of {at.asker} would go to {at.asked}",
        )
        how = f"Would be delivered to {at.place}: the channels of a fork are sealed."
        return Words(None, None, brief, how, step=step)


class DeliveryRetried(DeliveryFact, frozen=True, kw_only=True):
    """A caller orders one more attempt, in whichever state the delivery is. `by` is the caller."""

    topic: ClassVar[str] = "delivery_retried.1"
    from_outside: ClassVar[bool] = True
    leads_to: ClassVar[DeliveryState] = "retrying"
    begins: ClassVar[Work | None] = "delivery"

    by: str

    def in_words(self, at: Frame) -> Words:
        how = f"wants it delivered to {at.place} after all"
        step = f"the text of {at.asker} is to go to {at.asked} once more"
        return Words(self.by, None, "once more", how, step=step)


DeliveryEvent = (
    DeliveryDecided
    | DeliveryStarted
    | DeliveryPartDone
    | DeliveryDone
    | DeliveryFailed
    | DeliveryUnknown
    | DeliveryDenied
    | DeliveryWithheld
    | DeliveryRetried
)


def delivery_named(event: Fact) -> str | None:
    """Return the id of the delivery that an event names, of whatever kind it is; None where it names none."""
    named: str | None = getattr(event, "delivery_id", None)
    return named

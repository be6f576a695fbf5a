"""What can have happened to a text on its way to a channel: the outbox. Stream `delivery:<id>` (ANN-3)."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from intersession_events.facts.base import ERASED_JSON, Fact, Said, Source, Whole
from intersession_events.facts.chain import Budget
from intersession_events.facts.session import Route

__all__ = [
    "DeliveryDecided",
    "DeliveryDenied",
    "DeliveryDone",
    "DeliveryEvent",
    "DeliveryFailed",
    "DeliveryPartDone",
    "DeliveryRetried",
    "DeliveryStarted",
    "DeliveryUnknown",
    "DeliveryWithheld",
    "Purpose",
    "delivery_named",
]

Purpose = Literal["auto_reply", "announce", "spawn_announce", "command_reply", "send", "failure_notice"]


class DeliveryDecided(Fact, frozen=True, kw_only=True):
    """A text is to be delivered. `key` is the one idempotency key of all attempts.

    `session_key` is the session in whose name it goes out (its send policy decides), `run_id` the run that
    produced it, `owner` the stream of the exchange or spawn that waits for the outcome. `budget` is of the causal chain it is
    of: what the channel says to another session is of the same. `by` is who had a text sent that no run made (`send`).
    """

    topic: ClassVar[str] = "delivery_decided.1"

    delivery_id: str
    session_key: str
    route: Route
    text: Said
    key: str
    purpose: Purpose
    run_id: str | None = None
    owner: str | None = None
    budget: Budget | None = None
    by: str | None = None


class DeliveryStarted(Fact, frozen=True, kw_only=True):
    """The channel is about to be called. `rule` is the send policy's that lets the words out now (CFG-3)."""

    topic: ClassVar[str] = "delivery_started.1"

    delivery_id: str
    attempt: Whole = 1
    rule: str | None = None


class DeliveryPartDone(Fact, frozen=True, kw_only=True):
    """The channel took a part of a text that is longer than it takes at once. `receipt` as in `DeliveryDone`.

    `sent` is how many characters of the text it has got by now: the next part begins behind them, in a later attempt too.
    """

    topic: ClassVar[str] = "delivery_part_done.1"

    delivery_id: str
    attempt: Whole = 1
    sent: Whole
    receipt: Source | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        """See `Fact.left_of_sources`."""
        return {"receipt": None if self.receipt is None else ERASED_JSON}


class DeliveryDone(Fact, frozen=True, kw_only=True):
    """The channel took it, or the last part of it. `receipt` is the source text of the JSON it gave, if any."""

    topic: ClassVar[str] = "delivery_done.1"

    delivery_id: str
    attempt: Whole = 1
    receipt: Source | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        """See `Fact.left_of_sources`."""
        return {"receipt": None if self.receipt is None else ERASED_JSON}


class DeliveryFailed(Fact, frozen=True, kw_only=True):
    """An attempt failed. `retry_at_ms` is when it is tried again; None means never.

    `failed_ms` is the time from which that is reckoned: the clock may be set, and the log's time never goes back. None where it
    is not tried again. `later_ms` is the pause that the channel asked for, None where it asked for none.

    `traceback` is for the operator, as in `RunFailed`, where the channel raised what it does not say of itself.
    """

    topic: ClassVar[str] = "delivery_failed.1"

    delivery_id: str
    attempt: Whole = 1
    error: Said
    retry_at_ms: Whole | None = None
    traceback: Said | None = None
    failed_ms: Whole | None = None
    later_ms: Whole | None = None


class DeliveryUnknown(Fact, frozen=True, kw_only=True):
    """A channel that can't take a key twice was cut off between call and receipt, or said that it is in doubt: not sent again.

    `error` is what the channel said; None where nobody heard from it.
    """

    topic: ClassVar[str] = "delivery_unknown.1"

    delivery_id: str
    attempt: Whole = 1
    error: Said | None = None


class DeliveryDenied(Fact, frozen=True, kw_only=True):
    """The send policy forbids it now (POL-3). `rule` names the rule."""

    topic: ClassVar[str] = "delivery_denied.1"

    delivery_id: str
    rule: str


class DeliveryWithheld(Fact, frozen=True, kw_only=True):
    """The log is a fork, and its channels are sealed: the text would be delivered, and is not (FORK-5).

    `channel` is where it would go, `rule` the send policy's that would let it out.
    """

    topic: ClassVar[str] = "delivery_withheld.1"

    delivery_id: str
    channel: str
    rule: str | None = None


class DeliveryRetried(Fact, frozen=True, kw_only=True):
    """Somebody wants the text delivered after all, however it stands: one more attempt. `by` is who."""

    topic: ClassVar[str] = "delivery_retried.1"

    delivery_id: str
    by: str


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

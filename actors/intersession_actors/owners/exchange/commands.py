"""The coordinator's messages."""

from intersession_actors.owners.flows.led import Begins
from intersession_actors.owners.streams.commands import (
    DeliveryEnded,
    FlowCommand,
    FlowRequest,
    Resume,
    RunEnded,
)
from intersession_actors.rules.policy.holding import Ruling
from intersession_events.basics import ids
from intersession_events.facts import ExchangeAccepted, HoldBefore, Release, SessionOpened


class OpenExchange(Begins, frozen=True, kw_only=True):
    """Accept an allowed send (SEND-3)."""

    accepted: ExchangeAccepted
    opening: SessionOpened | None = None
    run_timeout_ms: int = 0
    at_most: int | None = None

    @property
    def stream(self) -> str:
        """The name of the exchange's stream."""
        return ids.exchange_stream(self.accepted.exchange_id)


class HoldExchange(FlowRequest, frozen=True, kw_only=True):
    """Request to stop the exchange before a text goes on (LIVE-1)."""

    before: HoldBefore
    by: str


class ReleaseExchange(FlowRequest, frozen=True, kw_only=True):
    """Request to release a held exchange, with the held text, or as `action` says (LIVE-1).

    `hold_id` is the hold that is meant, None for the one there is. `for_good`: it is not to be held again.
    """

    action: Release
    by: str
    text: str | None = None
    hold_id: str | None = None
    for_good: bool = False


class HoldRuled(FlowCommand, frozen=True, kw_only=True):
    """The verdict of the host's rule on a text."""

    hold_id: str
    ruling: Ruling


class StopAsking(FlowRequest, frozen=True, kw_only=True):
    """Request to end an exchange while the host's rule is being asked: it is held without the rule's verdict.

    So it is where the rule is asked next: `ended` is how the run has ended that the exchange waits for, if it has, which the
    exchange may not know yet. Where no rule is asked, this is nothing.
    """

    by: str
    ended: RunEnded | None = None


ExchangeCommand = (
    OpenExchange | RunEnded | DeliveryEnded | HoldExchange | ReleaseExchange | HoldRuled | StopAsking | Resume
)

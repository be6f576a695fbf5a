"""The outbox's messages: the policy's verdict, a channel's outcome, and the time for a retry."""

from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered
from intersession_actors.owners.streams.commands import FlowCommand, FlowRequest, Resume
from intersession_actors.rules.policy.sending import Verdict


class SendChecked(FlowCommand, frozen=True, kw_only=True):
    """The send policy's verdict on a delivery. It was requested after a number of attempts, and holds for the next one only."""

    verdict: Verdict
    after: int = 0


class DeliveryReturned(FlowCommand, frozen=True, kw_only=True):
    """An attempt's outcome, for the part of the text that begins behind `begins` characters."""

    attempt: int
    result: Delivered | NotDelivered
    begins: int = 0


class RetryDue(FlowCommand, frozen=True, kw_only=True):
    """It is time to retry a delivery."""

    attempt: int


class TooOld(FlowCommand, frozen=True, kw_only=True):
    """A text has waited for its channel as long as it may."""


class RetryDelivery(FlowRequest, frozen=True, kw_only=True):
    """Request to deliver a text after all."""

    by: str


class GiveUpDelivery(FlowRequest, frozen=True, kw_only=True):
    """Request to give up an undelivered text."""

    by: str


DeliveryCommand = SendChecked | DeliveryReturned | RetryDue | TooOld | RetryDelivery | GiveUpDelivery | Resume

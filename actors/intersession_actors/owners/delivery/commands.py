"""What the outbox can be told: the policy's word, what a channel came back with, and that it is time to try again."""

from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered
from intersession_actors.owners.streams.commands import FlowCommand, FlowRequest, Resume
from intersession_actors.rules.policy.sending import Verdict


class SendChecked(FlowCommand, frozen=True, kw_only=True):
    """The send policy's word on a delivery. It was asked for after a number of attempts, and holds for the next one alone."""

    verdict: Verdict
    after: int = 0


class DeliveryReturned(FlowCommand, frozen=True, kw_only=True):
    """The channel came back from an attempt, with the part of the text that begins behind `begins` characters."""

    attempt: int
    result: Delivered | NotDelivered
    begins: int = 0


class RetryDue(FlowCommand, frozen=True, kw_only=True):
    """It is time to try a delivery again."""

    attempt: int


class TooOld(FlowCommand, frozen=True, kw_only=True):
    """A text has waited for its channel as long as it may."""


class RetryDelivery(FlowRequest, frozen=True, kw_only=True):
    """Somebody wants a text delivered after all."""

    by: str


class GiveUpDelivery(FlowRequest, frozen=True, kw_only=True):
    """Somebody wants a text not delivered any more that is still to come."""

    by: str


DeliveryCommand = SendChecked | DeliveryReturned | RetryDue | TooOld | RetryDelivery | GiveUpDelivery | Resume

"""What the outbox is told: the policy's word, what a channel came back with, and that it is time to try again."""

from typing import Any

from intersession_actors.policy import Verdict
from intersession_actors.streams import Command


class SendChecked(Command, frozen=True, kw_only=True):
    """The send policy's word on a delivery."""

    stream: str
    verdict: Verdict


class DeliveryReturned(Command, frozen=True, kw_only=True):
    """The channel came back. `result` is `Delivered` or `NotDelivered`."""

    stream: str
    attempt: int
    result: Any


class RetryDue(Command, frozen=True, kw_only=True):
    """It is time to try a delivery again."""

    stream: str
    attempt: int

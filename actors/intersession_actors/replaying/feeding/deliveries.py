"""What led to an event of a delivery: its channel's answer, a timer, the end of a process, somebody's wish."""

from collections.abc import Sequence
from typing import Final

from intersession_actors.channels import Delivered, DeliveryResult, NotDelivered
from intersession_actors.delivery import (
    GIVEN_UP,
    MOST_CUT_OFF,
    DeliveryReturned,
    GiveUpDelivery,
    RetryDelivery,
    RetryDue,
    TooOld,
)
from intersession_actors.replaying.feeding.fed import ToFlow
from intersession_actors.replaying.looked_at import TOO_OLD
from intersession_actors.replaying.recording import Recording
from intersession_actors.streams import Resume
from intersession_events import facts
from intersession_events.log import Recorded

_CUT_OFF: Final = "cut off in the middle of attempt "
"""How the error of a delivery begins whose last attempt was cut off."""


def to_delivery(  # noqa: C901 - one case an event
    recorded: Recorded, recording: Recording
) -> ToFlow | None:
    """Return what led to the next event of a delivery."""
    stream, past = recorded.stream, recording.past(recorded.stream)
    match recorded.event:
        case facts.DeliveryPartDone() as event:
            return _returned(
                recorded, recording, event.attempt, Delivered(receipt=event.receipt, sent=event.sent)
            )
        case facts.DeliveryDone() as event:
            result = Delivered(receipt=event.receipt)
            return _returned(recorded, recording, event.attempt, result)
        case facts.DeliveryFailed(error=error) if error.endswith(TOO_OLD):
            return ToFlow(stream, TooOld(stream=stream), cut_off=True)
        case facts.DeliveryFailed(error=error) if error.startswith(GIVEN_UP):
            by = error.removeprefix(GIVEN_UP)
            return ToFlow(stream, GiveUpDelivery(stream=stream, by=by), cut_off=True)
        case facts.DeliveryFailed(error=error) if error.startswith(_CUT_OFF) and _cut_off_in_a_row(past):
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryFailed() as event:
            failed = NotDelivered(
                error=event.error,
                retry=event.retry_at_ms is not None,
                traceback=event.traceback,
                later_ms=event.later_ms,
            )
            return _returned(recorded, recording, event.attempt, failed)
        case facts.DeliveryUnknown(error=None) | facts.DeliveryWithheld():
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryUnknown(error=str(error)) as event:
            doubt = NotDelivered(error=error, retry=False, in_doubt=True)
            return _returned(recorded, recording, event.attempt, doubt)
        case facts.DeliveryStarted() | facts.DeliveryDenied():
            return _tried_again(stream, recording)
        case facts.DeliveryRetried(by=by):
            return ToFlow(stream, RetryDelivery(stream=stream, by=by))
        case _:
            return None


def _returned(recorded: Recorded, recording: Recording, attempt: int, result: DeliveryResult) -> ToFlow:
    """Return what a channel came back with, from the part of the text that it was given."""
    parts = (item.event for item in recording.past(recorded.stream))
    begins = max((event.sent for event in parts if isinstance(event, facts.DeliveryPartDone)), default=0)
    returned = DeliveryReturned(stream=recorded.stream, attempt=attempt, result=result, begins=begins)
    return ToFlow(recorded.stream, returned)


def _cut_off_in_a_row(past: Sequence[Recorded]) -> bool:
    """Whether the end of a process cut off as many attempts in a row as end a delivery. In logs of before any fifth attempt did."""
    last = past[-MOST_CUT_OFF:]
    return len(last) == MOST_CUT_OFF and all(isinstance(item.event, facts.DeliveryStarted) for item in last)


def _tried_again(stream: str, recording: Recording) -> ToFlow | None:
    """Return what had an attempt follow on another one: it was time, or the one before was cut off."""
    past = recording.past(stream)
    match past[-1].event if past else None:
        case facts.DeliveryStarted():
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryFailed(attempt=attempt):
            return ToFlow(stream, RetryDue(stream=stream, attempt=attempt))
        case _:
            return None  # it is asked for with what came before

"""What led to an event of a delivery: its channel's answer, a timer, the end of a process, somebody's wish."""

from typing import Final

from intersession_actors.channels import Delivered, NotDelivered
from intersession_actors.delivery import (
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

_GIVEN_UP: Final = "given up by "
"""How the error of a delivery begins that somebody gave up."""
_CUT_OFF: Final = "cut off in the middle of attempt "
"""How the error of a delivery begins whose last attempt was cut off."""


def to_delivery(recorded: Recorded, recording: Recording) -> ToFlow | None:
    """Return what led to the next event of a delivery."""
    stream = recorded.stream
    match recorded.event:
        case facts.DeliveryDone() as event:
            result = Delivered(receipt=event.receipt, cut_at=event.cut_at)
            return ToFlow(stream, DeliveryReturned(stream=stream, attempt=event.attempt, result=result))
        case facts.DeliveryFailed(error=error) if error.endswith(TOO_OLD):
            return ToFlow(stream, TooOld(stream=stream), cut_off=True)
        case facts.DeliveryFailed(error=error) if error.startswith(_GIVEN_UP):
            by = error.removeprefix(_GIVEN_UP)
            return ToFlow(stream, GiveUpDelivery(stream=stream, by=by), cut_off=True)
        case facts.DeliveryFailed(error=error) if error.startswith(_CUT_OFF):
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryFailed() as event:
            failed = NotDelivered(
                error=event.error, retry=event.retry_at_ms is not None, traceback=event.traceback
            )
            return ToFlow(stream, DeliveryReturned(stream=stream, attempt=event.attempt, result=failed))
        case facts.DeliveryUnknown(error=None) | facts.DeliveryWithheld():
            return ToFlow(stream, Resume(stream=stream), cut_off=True)
        case facts.DeliveryUnknown(error=str(error)) as event:
            doubt = NotDelivered(error=error, retry=False, in_doubt=True)
            return ToFlow(stream, DeliveryReturned(stream=stream, attempt=event.attempt, result=doubt))
        case facts.DeliveryStarted() | facts.DeliveryDenied():
            return _tried_again(stream, recording)
        case facts.DeliveryRetried(by=by):
            return ToFlow(stream, RetryDelivery(stream=stream, by=by))
        case _:
            return None


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

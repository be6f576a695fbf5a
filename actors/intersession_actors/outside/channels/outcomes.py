"""Outcomes of calls of channels: the text was taken, a thread was opened, or neither, and whether to retry."""

import inspect
import logging
import math
from datetime import timedelta
from typing import Final

import msgspec

from intersession_actors.outside.channels.channels import (
    Channel,
    DeliveryInDoubt,
    DeliveryLater,
    DeliveryRefused,
)
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import RECEIPT, THREAD
from intersession_actors.rules.gate.texts import checked
from intersession_actors.rules.gate.values import flaw_of, plain, plain_text
from intersession_actors.running.failures.failure import described, traced
from intersession_actors.running.host import calls, hosts_loop
from intersession_events.facts import Fact

SHORTEST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 31 * 86_400.0

logger = logging.getLogger("intersession.deliveries")


class Delivered(Fact, frozen=True, kw_only=True):
    """The channel took it.

    `receipt` is the source text of the JSON it gave, if any. `sent` is how many characters of the text it got that far, where more
    of them are to come.
    """

    receipt: str | None = None
    sent: int | None = None


class NotDelivered(Fact, frozen=True, kw_only=True):
    """The channel did not take it. `retry`: another attempt with the same key is allowed.

    `in_doubt`: it may have taken it all the same, so a channel that is not idempotent is not called again. `traceback` is there
    where the channel raised something else than its own words for that. `later_ms` is the pause that it asked for,
    for all chats where it `pauses_channel`.
    """

    error: str
    retry: bool
    in_doubt: bool = False
    traceback: str | None = None
    later_ms: int | None = None
    pauses_channel: bool = False


DeliveryResult = Delivered | NotDelivered


class ThreadOpened(Fact, frozen=True, kw_only=True):
    """The channel opened a thread; or, `withheld`, it is sealed and was not called: the thread has a made-up id (FORK-5)."""

    thread: str
    withheld: bool = False


def delivery_of(outcome: calls.Outcome, sent: int | None, *, idempotent: bool) -> DeliveryResult:
    """Return the outcome of a delivery; `sent` is how many characters the channel has now, if more follow.

    `idempotent`: it may be made again where it is in doubt.
    """
    match outcome:
        case calls.Raised(error):
            return _not_delivered(error, idempotent=idempotent)
        case calls.Came(value) if inspect.isgenerator(value) or inspect.isasyncgen(value):
            what = f"the channel returned a {type(value).__name__}, of which nothing has run: it sent nothing"
            return NotDelivered(error=what, retry=False)
        case calls.Came(value):
            return Delivered(receipt=receipt_of(value), sent=sent)


def _not_delivered(error: BaseException, *, idempotent: bool) -> NotDelivered:
    match error:
        case DeliveryRefused():
            return NotDelivered(error=described(error), retry=False)
        case DeliveryLater(seconds=seconds):
            return NotDelivered(
                error=described(error),
                retry=True,
                later_ms=pause_ms(seconds),
                pauses_channel=error.whole_channel,
            )
        case hosts_loop.LoopEnded(begun=False):
            return NotDelivered(error=described(error), retry=True)
        case DeliveryInDoubt() | hosts_loop.LoopEnded():
            return NotDelivered(error=described(error), retry=idempotent, in_doubt=True)
        case _:
            return NotDelivered(
                error=described(error), retry=True, traceback=traced(error), later_ms=_asked_for(error)
            )


def _asked_for(error: BaseException) -> int | None:
    """Return the pause that an error of a service's client asks for: many have it as `retry_after`, in seconds or as a timedelta."""
    try:
        asked = getattr(error, "retry_after", None)
        seconds = asked.total_seconds() if isinstance(asked, timedelta) else asked
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
            return None
        return pause_ms(seconds)
    except Exception:  # noqa: BLE001 - whatever a property of the host's does
        return None


def pause_ms(seconds: float) -> int:
    """Return a pause that a channel asked for, as long as one may be: no service is asked again at once, nor for ever."""
    return round(min(max(seconds, SHORTEST_PAUSE_S), LONGEST_PAUSE_S) * 1000)


def receipt_of(value: object) -> str | None:
    """Return a receipt as JSON. An invalid one does not undo the delivery: it is kept as Python prints it."""
    if value is None:
        return None
    try:
        if value is False:
            logger.warning(
                "a channel returned False, and its text is taken for delivered: raise where it is not"
            )
        if not isinstance(value, str | dict | list | int | float):
            raise TypeError(type(value).__name__)  # noqa: TRY301 - one way for all that is no receipt
        flaw = flaw_of({"receipt": value}, most=RECEIPT.most)
        if flaw is not None:
            raise ValueError(flaw.what)  # noqa: TRY301 - one way for all that is no receipt
        source = msgspec.json.encode(plain(value)).decode()
        if len(source) > RECEIPT.most:
            raise ValueError(f"{len(source)} characters")  # noqa: TRY301 - one way for all that is no receipt
    except BaseException as error:  # noqa: BLE001 - the text is delivered, whatever the receipt does
        logger.warning("a channel gave a receipt that is no small JSON: %s", described(error))
        return msgspec.json.encode({"unreadable": described(error)}).decode()
    return source


def thread_of(outcome: calls.Outcome, channel: Channel) -> ThreadOpened | NotDelivered:
    """Return the outcome of a request for a thread."""
    match outcome:
        case calls.Came(str() as given) if (thread := plain_text(given)).strip():
            return checked_thread(thread)
        case calls.Came(value):
            return NotDelivered(
                error=f"the channel gave {type(value).__name__} for a thread's id", retry=False
            )
        case calls.Raised(error):
            return _not_delivered(error, idempotent=channel.idempotent)


def checked_thread(thread: str) -> ThreadOpened | NotDelivered:
    """Return a thread with a recordable id, or the problem with it."""
    try:
        return ThreadOpened(thread=checked("thread", thread, most=THREAD.most))
    except ToolRefused as refused:
        return NotDelivered(error=f"the channel opened one with a bad id: {refused.error}", retry=False)

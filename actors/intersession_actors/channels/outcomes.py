"""What became of a call of a channel: it took the text, opened a thread, or did not, and whether it may be tried again."""

import inspect
import logging

import msgspec

from intersession_actors import host
from intersession_actors.channels.channels import Channel, DeliveryInDoubt, DeliveryRefused
from intersession_actors.errors import ToolRefused
from intersession_actors.failures import described, traced
from intersession_actors.gate import RECEIPT, THREAD, checked, flaw_of, plain, plain_text
from intersession_events.facts import Fact

logger = logging.getLogger("intersession.deliveries")


class Delivered(Fact, frozen=True, kw_only=True):
    """The channel took it.

    `receipt` is the source text of the JSON it gave, if any; `cut_at` how many characters of the text it got, where
    that was not all of them.
    """

    receipt: str | None = None
    cut_at: int | None = None


class NotDelivered(Fact, frozen=True, kw_only=True):
    """The channel did not take it. `retry`: it may be tried again under the same key.

    `in_doubt`: it may have taken it all the same, so a channel that is not idempotent is not called again. `traceback` is there
    where the channel raised something else than its own words for that.
    """

    error: str
    retry: bool
    in_doubt: bool = False
    traceback: str | None = None


DeliveryResult = Delivered | NotDelivered


class ThreadOpened(Fact, frozen=True, kw_only=True):
    """The channel opened a thread; or, `withheld`, it is sealed and was not asked: the thread has a made-up id (FORK-5)."""

    thread: str
    withheld: bool = False


def delivery_of(outcome: host.Outcome, channel: Channel, cut_at: int | None) -> DeliveryResult:
    """Return what became of a delivery; `cut_at` is how many characters the channel got, if not all."""
    match outcome:
        case host.Raised(error):
            return _not_delivered(error, channel)
        case host.Came(value) if inspect.isgenerator(value) or inspect.isasyncgen(value):
            what = f"the channel returned a {type(value).__name__}, of which nothing has run: it sent nothing"
            return NotDelivered(error=what, retry=False)
        case host.Came(value):
            return Delivered(receipt=_receipt(value), cut_at=cut_at)


def _not_delivered(error: BaseException, channel: Channel) -> NotDelivered:
    match error:
        case DeliveryRefused():
            return NotDelivered(error=described(error), retry=False)
        case host.LoopEnded(begun=False):
            return NotDelivered(error=described(error), retry=True)
        case DeliveryInDoubt() | host.LoopEnded():
            return NotDelivered(error=described(error), retry=channel.idempotent, in_doubt=True)
        case _:
            return NotDelivered(error=described(error), retry=True, traceback=traced(error))


def _receipt(value: object) -> str | None:
    """Return a receipt as JSON. One that is none does not undo the delivery: it is kept as Python prints it."""
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


def thread_of(outcome: host.Outcome, channel: Channel) -> ThreadOpened | NotDelivered:
    """Return what became of a wish for a thread."""
    match outcome:
        case host.Came(str() as given) if (thread := plain_text(given)).strip():
            return _checked_thread(thread)
        case host.Came(value):
            return NotDelivered(
                error=f"the channel gave {type(value).__name__} for a thread's id", retry=False
            )
        case host.Raised(error):
            return _not_delivered(error, channel)


def _checked_thread(thread: str) -> ThreadOpened | NotDelivered:
    """Return a thread whose id can be recorded, or what is wrong with it."""
    try:
        return ThreadOpened(thread=checked("thread", thread, most=THREAD.most))
    except ToolRefused as refused:
        return NotDelivered(error=f"the channel opened one with a bad id: {refused.error}", retry=False)

"""What a channel at a worker is called with, what came of that, and what a worker says of its channels: as JSON (WORK-15).

Both sides read what the other one wrote: the writer believes no answer that a channel of its own could not have given.
"""

import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from intersession_actors.outside.attachments.stored import StoredFile
from intersession_actors.outside.channels.channels import LONGEST_PAUSE_S, Channel, Outbound, ThreadWanted
from intersession_actors.outside.channels.outcomes import (
    Delivered,
    DeliveryResult,
    NotDelivered,
    ThreadOpened,
    checked_thread,
    pause_ms,
    receipt_of,
)
from intersession_actors.rules.gate.limits import ERROR, RECEIPT
from intersession_actors.rules.gate.values import storable
from intersession_actors.running.failures.failure import MOST_TRACEBACK_BYTES, described
from intersession_events.facts import FileBlock
from intersession_events.log.files import ReadsFiles

logger = logging.getLogger("intersession.deliveries")

MOST_ANSWER_BYTES: Final = 4 * (RECEIPT.most + ERROR.most + MOST_TRACEBACK_BYTES)
"""No longer answer is read: each text in it may be escaped."""


class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Goes from one host to another, and is not stored for good."""


class OfferedText(_Sent, frozen=True, kw_only=True, tag_field="asks", tag="text"):
    """A text, or what is left of it behind `begins` characters. `head` stands before it, and is not of it; `files` go with its last part."""

    outbound: Outbound
    begins: int = 0
    head: str = ""
    files: tuple[FileBlock, ...] = ()


class OfferedThread(_Sent, frozen=True, kw_only=True, tag_field="asks", tag="thread"):
    """A request for a thread."""

    wanted: ThreadWanted


Offered = OfferedText | OfferedThread
ChannelResult = DeliveryResult | ThreadOpened


class _Came(_Sent, frozen=True, kw_only=True):
    """An answer: one of its fields is there."""

    delivered: Delivered | None = None
    not_delivered: NotDelivered | None = None
    thread: ThreadOpened | None = None


class Abilities(_Sent, frozen=True, kw_only=True):
    """What a worker says of a channel: which of the abilities of `Channel` it has."""

    idempotent: bool = False
    threads: bool = False
    edits: bool = False
    edit_every: float = 1.0
    max_chars: int | None = None


_offered: Final = msgspec.json.Decoder(Offered)
_came: Final = msgspec.json.Decoder(_Came)
_abilities: Final = msgspec.json.Decoder(Abilities)


def text_offered(outbound: Outbound, *, begins: int, head: str) -> OfferedText:
    """Return a text as it is offered: of its files only what they are, not their contents."""
    files = tuple(
        FileBlock(sha256=file.sha256, size=file.size, name=file.name, mime_type=file.mime_type, claimed=file.claimed)
        for file in outbound.files
    )  # fmt: skip
    return OfferedText(
        outbound=msgspec.structs.replace(outbound, files=()), begins=begins, head=head, files=files
    )


def content_of(offered: Offered) -> bytes:
    """Return the content of an offer."""
    return msgspec.json.encode(offered)


def offered_in(content: bytes) -> Offered:
    """Return what a content says.

    Raises:
        ValueError: it was written by a later version.
    """
    return _offered.decode(content)


def whole(offered: OfferedText, files: ReadsFiles | None) -> Outbound:
    """Return an offered text as a channel gets it; contents of its files come from `files`."""
    return msgspec.structs.replace(offered.outbound, files=StoredFile.all(offered.files, files))


def answer_of(result: ChannelResult) -> bytes:
    """Return an outcome as the content of an answer."""
    match result:
        case Delivered():
            came = _Came(delivered=result)
        case NotDelivered():
            came = _Came(not_delivered=result)
        case ThreadOpened():
            came = _Came(thread=result)
    return msgspec.json.encode(came)


def result_in(content: bytes, offered: Offered, *, idempotent: bool) -> ChannelResult:
    """Return the outcome that an answer says. What no channel could have answered leaves the text in doubt."""
    try:
        if len(content) > MOST_ANSWER_BYTES:
            raise ValueError(f"{len(content)} bytes, at most {MOST_ANSWER_BYTES} are read")  # noqa: TRY301 - one way for all invalid answers
        return _result(_came.decode(content), offered)
    except (ValueError, RecursionError) as error:
        said = f"the worker's answer is invalid: {described(error)}"
        return NotDelivered(error=said[: ERROR.most], retry=idempotent, in_doubt=True)


def _result(came: _Came, offered: Offered) -> ChannelResult:
    match came, offered:
        case _Came(delivered=Delivered(receipt=receipt, sent=sent), not_delivered=None), OfferedText():
            length = len(offered.outbound.text)
            if sent is not None and not offered.begins < sent <= length:
                raise ValueError(
                    f"sent={sent} is no part of {length} characters that begins at {offered.begins}"
                )
            known = None if receipt is None else receipt_of(msgspec.json.decode(receipt))
            return Delivered(receipt=known, sent=sent)
        case _Came(delivered=None, not_delivered=None, thread=ThreadOpened(thread=thread)), OfferedThread():
            return checked_thread(thread)
        case _Came(delivered=None, not_delivered=NotDelivered() as failed, thread=None), _:
            return msgspec.structs.replace(
                failed,
                error=storable(failed.error[: ERROR.most]),
                traceback=None if failed.traceback is None else storable(failed.traceback[-MOST_TRACEBACK_BYTES:]),
                later_ms=None if failed.later_ms is None else pause_ms(failed.later_ms / 1000),
            )  # fmt: skip
        case _:
            raise ValueError("it is no outcome of this call")


def abilities_of(channel: Channel) -> str:
    """Return what a worker says of a channel."""
    said = Abilities(
        idempotent=channel.idempotent,
        threads=channel.threads is not None,
        edits=channel.edit is not None,
        edit_every=float(channel.edit_every),
        max_chars=channel.max_chars,
    )
    return msgspec.json.encode(said).decode()


def abilities_in(said: Iterable[str]) -> Abilities:
    """Return what all workers that have a channel say alike of it: any of them may get its texts.

    What can't be read says that the channel has no abilities.
    """
    read = [_read(one) for one in said]
    lengths = [one.max_chars for one in read if one.max_chars is not None]
    return Abilities(
        idempotent=all(one.idempotent for one in read),
        threads=all(one.threads for one in read),
        edits=all(one.edits for one in read),
        edit_every=max((one.edit_every for one in read), default=1.0),
        max_chars=min(lengths, default=None),
    )


def _read(said: str) -> Abilities:
    try:
        read = _abilities.decode(said)
    except ValueError as error:
        logger.warning("what a worker says of its channel can't be read: %s", described(error))
        return Abilities()
    usable = 0 <= read.edit_every <= LONGEST_PAUSE_S and (read.max_chars is None or read.max_chars > 0)
    return read if usable else Abilities()

"""Reads access receipts for `intersession audit`: newest first, filtered by requester, target and verdict (VIS-4)."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

import msgspec

from intersession_events.facts import AccessEvent, AccessRecorded, SendRefused, ready
from intersession_events.log.log import Log
from intersession_events.log.recorded import Reads, Recorded, StreamEnd
from intersession_projections.basics.spans import Span, stream_backwards

OPERATOR: Final = "operator"
_STREAMS: Final = "access:"
_CREDENTIAL: Final = "credential:"
_LOOKED_AT: Final = 1_000
_FIRST: Final = 64
"""The number of receipts of each requester that are read first, for all in one query."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A filter for receipts.

    `who` is a canonical key, `operator` or `credential:<name>`; `tool` a tool or a method; `denied`: only those that
    denied something; `target`: only those that denied it, as it was typed.
    """

    who: str | None = None
    tool: str | None = None
    denied: bool = False
    target: str | None = None
    span: Span = Span()


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt. `correlation` is the id of the event that its chain began with, if there is one."""

    position: int
    time_ms: int
    who: str
    event: AccessEvent
    correlation: str | None = None

    @property
    def denied(self) -> bool:
        """Whether anything was denied."""
        match self.event:
            case AccessRecorded():
                return self.event.denied_count > 0
            case SendRefused():
                return True

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """The single targets that were denied, as typed, and the code of each refusal."""
        match self.event:
            case AccessRecorded():
                return self.event.denied
            case SendRefused():
                return ((self.event.target, self.event.code),)


def receipts(log: Log, wanted: Wanted) -> Iterator[Receipt]:
    """Yield the matching receipts, newest first, read as they are consumed."""
    streams = log.streams(_STREAMS) if wanted.who is None else (f"{_STREAMS}{wanted.who}",)
    last = wanted.span.last(log.head())
    ends: Sequence[Sequence[Recorded]] = [()] * len(streams)
    if log.is_remote:  # a round trip for each caller else
        ends = log.gather(Reads(ends=[StreamEnd(stream, 0, None, True, _FIRST) for stream in streams])).ends
    return heapq.merge(
        *(_of_stream(log, stream, end, wanted, last) for stream, end in zip(streams, ends, strict=True)),
        key=lambda receipt: -receipt.position,
    )


COPIED: Final = "copies.rows"
"""The method by which copies are taken; its receipt has the position that the copy had come to."""


class CopyTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of the log that was taken, as its receipt says: by whom, when, up to which position of the log (COPY-5)."""

    receipt: int
    time_ms: int
    who: str
    position: int


def copy_in(recorded: Recorded) -> CopyTaken | None:
    """Return the copy that an event is the receipt of; None for any other event."""
    event = recorded.event
    if not isinstance(event, AccessRecorded) or event.tool != COPIED:
        return None
    try:
        position = msgspec.json.decode(event.filters, type=_Copying).after
    except msgspec.MsgspecError:
        position = 0
    return CopyTaken(
        receipt=recorded.position,
        time_ms=recorded.time,
        who=recorded.stream.removeprefix(_STREAMS),
        position=position,
    )


@ready
class _Copying(msgspec.Struct, frozen=True):
    after: int = 0


def last_copy(log: Log) -> CopyTaken | None:
    """Return the last copy that was taken, as far as the newest 1,000 receipts of the operator and of each credential tell."""
    streams = (f"{_STREAMS}{OPERATOR}", *log.streams(f"{_STREAMS}{_CREDENTIAL}"))
    found = (map(copy_in, islice(stream_backwards(log, name, None), _LOOKED_AT)) for name in streams)
    newest = (next(filter(None, copies), None) for copies in found)
    return max(filter(None, newest), key=lambda copy: copy.receipt, default=None)


def _of_stream(
    log: Log, stream: str, end: Sequence[Recorded], wanted: Wanted, last: int
) -> Iterator[Receipt]:
    """Yield the receipts of a stream, of which the `end` was read already, if that is something."""
    rest: Iterable[Recorded] = ()
    if not end or (len(end) == _FIRST and end[-1].version > 1):
        rest = stream_backwards(log, stream, end[-1].version - 1 if end else None)
    for recorded in chain(end, rest):
        if recorded.position <= wanted.span.after:
            return
        if recorded.position > last:
            continue
        receipt = _receipt(stream, recorded)
        if receipt is not None and _is_wanted(receipt, wanted):
            yield receipt


def _receipt(stream: str, recorded: Recorded) -> Receipt | None:
    event = recorded.event
    if not isinstance(event, AccessRecorded | SendRefused):
        return None
    return Receipt(
        position=recorded.position,
        time_ms=recorded.time,
        who=stream.removeprefix(_STREAMS),
        event=event,
        correlation=recorded.correlation,
    )


def _is_wanted(receipt: Receipt, wanted: Wanted) -> bool:
    tool = receipt.event.tool if isinstance(receipt.event, AccessRecorded) else "sessions_send"
    return (
        (wanted.tool is None or wanted.tool == tool)
        and (not wanted.denied or receipt.denied)
        and (wanted.target is None or wanted.target in dict(receipt.targets))
    )

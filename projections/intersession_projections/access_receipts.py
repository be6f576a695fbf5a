"""Reads access receipts for `intersession audit`: newest first, filtered by who, what and verdict (VIS-4)."""

import heapq
from collections.abc import Iterator
from typing import Final

import msgspec

from intersession_events.facts import AccessEvent, AccessRecorded, SendRefused
from intersession_events.log import Log, Recorded
from intersession_projections.spans import Span, backwards

OPERATOR: Final = "operator"
_STREAMS: Final = "access:"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which receipts are asked for.

    `who` is a canonical key, `operator` or `credential:<name>`; `tool` a tool or a method; `denied`: only those that
    denied something; `target`: only those that denied it, as it was typed.
    """

    who: str | None = None
    tool: str | None = None
    denied: bool = False
    target: str | None = None
    span: Span = Span()


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """One receipt. `correlation` is the id of the event that its chain began with, where it has one."""

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
        """Single targets that were denied, as typed, and the code of each refusal."""
        match self.event:
            case AccessRecorded():
                return self.event.denied
            case SendRefused():
                return ((self.event.target, self.event.code),)


def receipts(log: Log, wanted: Wanted) -> Iterator[Receipt]:
    """Yield the receipts that are wanted, newest first, reading as far as somebody asks for more."""
    streams = log.streams(_STREAMS) if wanted.who is None else (f"{_STREAMS}{wanted.who}",)
    return heapq.merge(
        *(_of_stream(log, stream, wanted) for stream in streams), key=lambda receipt: -receipt.position
    )


def _of_stream(log: Log, stream: str, wanted: Wanted) -> Iterator[Receipt]:
    for recorded in backwards(log, wanted.span, stream):
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

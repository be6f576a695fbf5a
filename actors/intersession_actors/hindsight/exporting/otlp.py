"""Writes spans as OTLP JSON, a request a line, as the collector's file exporter writes them (OUT-2)."""

from base64 import b16encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from intersession_actors.hindsight.exporting.spans import Attributes, OpenSpan, Spans, SpanStart
from intersession_events.basics.machine import VERSION
from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.log.recorded import Recorded

_PER_LINE: Final = 200
_NS_PER_MS: Final = 1_000_000
_INTERNAL, _FAILED = 1, 2


class _Context(msgspec.Struct, frozen=True):
    trace: str
    span: str


class _Ended:
    """A span on its way into a line; it is there once it has ended."""

    def __init__(
        self, context: _Context, fields: JsonObject, start_ms: int, ended: Callable[[JsonObject], None]
    ) -> None:
        self._context = context
        self._fields = fields
        self._start_ms = start_ms
        self._attributes: dict[str, str | bool | int | float | Sequence[str]] = {}
        self._ended = ended

    @property
    def context(self) -> object:
        """Where it stands."""
        return self._context

    def put(self, attributes: Attributes) -> None:
        """Add attributes."""
        self._attributes.update(attributes)

    def end(self, time_ms: int | None, error: str | None) -> None:
        """End it."""
        ends = self._start_ms if time_ms is None else max(time_ms, self._start_ms)
        self._fields["endTimeUnixNano"] = str(ends * _NS_PER_MS)
        self._fields["attributes"] = [
            {"key": name, "value": _value(value)} for name, value in self._attributes.items()
        ]
        self._fields["status"] = {} if error is None else {"code": _FAILED, "message": error}
        self._ended(self._fields)


def otlp_lines(
    events: Iterable[Recorded], log_id: str, *, told: Callable[[int, int], None]
) -> Iterator[bytes]:
    """Yield requests with the spans of events, in the order in which they ended. Ids are derived: the same log gives the same.

    They have what was said, and arguments and results of tools, as the events have it. `told` hears the number of spans that have
    ended, and of those that have not, which are left out.
    """
    ended: list[JsonObject] = []
    count = 0

    def start(span: SpanStart) -> OpenSpan:
        above = span.parent if isinstance(span.parent, _Context) else None
        trace = above.trace if above is not None else _derived(16, log_id, span.chain or span.of)
        context = _Context(trace, _derived(8, log_id, span.name, span.of))
        start_ms = span.start_ms or 0
        fields: JsonObject = {
            "traceId": context.trace,
            "spanId": context.span,
            **({} if above is None else {"parentSpanId": above.span}),
            "name": span.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(start_ms * _NS_PER_MS),
            "links": [
                {"traceId": link.trace, "spanId": link.span}
                for link in span.links
                if isinstance(link, _Context)
            ],
        }
        return _Ended(context, fields, start_ms, ended.append)

    spans = Spans(start, contents=lambda: True, hides=False)
    for recorded in events:
        spans.take(recorded)
        while len(ended) >= _PER_LINE:
            count += _PER_LINE
            yield _request(ended[:_PER_LINE], log_id)
            del ended[:_PER_LINE]
    if ended:
        yield _request(ended, log_id)
    told(count + len(ended), spans.open)


def _request(spans: Sequence[JsonObject], log_id: str) -> bytes:
    about = [
        {"key": "service.name", "value": _value("intersession")},
        {"key": "intersession.log_id", "value": _value(log_id)},
    ]
    scope = {"name": "intersession", "version": VERSION}
    scoped = [{"scope": scope, "spans": spans}]
    return msgspec.json.encode({"resourceSpans": [{"resource": {"attributes": about}, "scopeSpans": scoped}]})


def _value(value: str | bool | float | Sequence[str]) -> JsonValue:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # as protobuf has numbers of 64 bits in JSON
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [_value(one) for one in value]}}


def _derived(size: int, *parts: str) -> str:
    """Return an id, in lower-case hex as OTLP has ids in JSON."""
    return b16encode(sha256("\n".join(parts).encode()).digest()[:size]).decode().lower()

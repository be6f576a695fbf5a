"""Makes rows of tables of events: events, messages, runs, deliveries, calls, usage (OUT-5). Pure."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from intersession_events import facts
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.speakers import as_read
from intersession_projections.views.flows.rows import DeliverySummary, accept_flow, evolve_delivery
from intersession_projections.views.run_outcomes.outcome import RunOutcome, begin_run, end_of, evolve_run
from intersession_projections.views.usage import used_in

Kind = Literal["int", "text", "bool", "time"]
TableRow = tuple[str, JsonObject]
"""The name of a table, and a row of it."""

_MOST_WAITING: Final = 50_000
"""Calls without a result that are kept until one comes: an agent that was cut off gives none."""

_USED: Final[dict[str, Kind]] = {
    "input_tokens": "int",
    "output_tokens": "int",
    "cache_read_tokens": "int",
    "cache_write_tokens": "int",
    "total_tokens": "int",
    "cost_micros": "int",
}

TABLES: Final[Mapping[str, Mapping[str, Kind]]] = {
    "events": {
        "position": "int",
        "stream": "text",
        "version": "int",
        "topic": "text",
        "id": "text",
        "time": "time",
        "causation": "text",
        "correlation": "text",
        "epoch": "int",
        "hash": "text",
        "data": "text",
    },
    "messages": {
        "position": "int",
        "time": "time",
        "session_key": "text",
        "session_id": "text",
        "message_id": "text",
        "role": "text",
        "text": "text",
        "from_kind": "text",
        "from_session": "text",
        "from_channel": "text",
        "sender": "text",
        "run_id": "text",
        "exchange_id": "text",
        "model": "text",
        "tool_call_id": "text",
        "imported": "bool",
    },
    "runs": {
        "run_id": "text",
        "position": "int",
        "session_key": "text",
        "session_id": "text",
        "step": "text",
        "status": "text",
        "attempt": "int",
        "queued": "time",
        "started": "time",
        "ended": "time",
        "caller": "text",
        "exchange_id": "text",
        "spawn_id": "text",
        "turn": "int",
        "root": "text",
        "reply": "text",
        "code": "text",
        "error": "text",
        "model": "text",
        **_USED,
    },
    "deliveries": {
        "delivery_id": "text",
        "position": "int",
        "session_key": "text",
        "run_id": "text",
        "channel": "text",
        "account": "text",
        "to": "text",
        "thread": "text",
        "purpose": "text",
        "text": "text",
        "state": "text",
        "attempt": "int",
        "decided": "time",
        "changed": "time",
        "error": "text",
    },
    "calls": {
        "position": "int",
        "time": "time",
        "session_key": "text",
        "run_id": "text",
        "call_id": "text",
        "tool": "text",
        "arguments": "text",
        "result_position": "int",
        "result_time": "time",
        "result": "text",
        "failed": "bool",
    },
    "usage": {
        "position": "int",
        "time": "time",
        "session_key": "text",
        "run_id": "text",
        "model": "text",
        **_USED,
    },
}
"""The columns of each table, and what is in them: whole numbers, texts, yes or no, times of UTC (milliseconds)."""


class _Folded:
    """Runs, deliveries and calls that have begun, and may go on."""

    def __init__(self) -> None:
        self._runs: dict[str, RunOutcome] = {}
        self._deliveries: dict[str, tuple[DeliverySummary, JsonObject]] = {}
        self._calls: OrderedDict[tuple[str, str], JsonObject] = OrderedDict()

    def take(self, recorded: Recorded) -> Iterator[TableRow]:
        """Yield the rows that an event makes whole."""
        yield "events", _event(recorded)
        if (message := as_read(recorded.event)) is not None:
            yield "messages", _message(recorded, message)
            yield from self._called(recorded, message)
        if (found := used_in(recorded)) is not None:
            yield "usage", _usage(recorded, *found)
        event = recorded.event
        if isinstance(event, facts.RunQueued):
            self._runs[event.run_id] = begin_run(recorded, event)
        for part in facts.parts_of(event):
            if isinstance(part, facts.RunAttempt) and part.run_id in self._runs:
                after = evolve_run(self._runs[part.run_id], recorded, part)
                self._runs[part.run_id] = after
                if isinstance(part, facts.RunEnd):
                    ended = end_of(part)
                    yield (
                        "runs",
                        _run(self._runs.pop(part.run_id)) | {"error": ended.error, "reply": ended.reply},
                    )
        yield from self._delivered(recorded)

    def rest(self) -> Iterator[TableRow]:
        """Yield the rows of what has not ended: as it stands."""
        yield from (("runs", _run(row)) for row in self._runs.values())
        yield from (("deliveries", told) for _, told in self._deliveries.values())
        yield from (("calls", call) for call in self._calls.values())

    def _delivered(self, recorded: Recorded) -> Iterator[TableRow]:
        event = recorded.event
        if isinstance(event, facts.DeliveryDecided):
            begun = accept_flow(recorded)
            if isinstance(begun, DeliverySummary):
                self._deliveries[recorded.stream] = begun, _delivery(recorded, event, begun)
            return
        if recorded.stream not in self._deliveries:
            return
        before, told = self._deliveries[recorded.stream]
        after = evolve_delivery(before, recorded)
        told |= {"state": after.state, "attempt": after.attempt, "changed": recorded.time}
        if isinstance(event, facts.DeliveryFact) and event.trouble is not None:
            told["error"] = event.trouble
        self._deliveries[recorded.stream] = after, told
        # One that failed may be tried once more.
        if not after.is_open and not after.failed:
            del self._deliveries[recorded.stream]
            yield "deliveries", told

    def _called(self, recorded: Recorded, message: facts.Message) -> Iterator[TableRow]:
        for block in () if isinstance(message.content, str) else message.content:
            if isinstance(block, facts.ToolCallBlock):
                place = _of_call(recorded, message, block.id)
                if place in self._calls:  # a model that numbers its calls anew
                    yield "calls", self._calls.pop(place)
                self._calls[place] = {
                    "position": recorded.position,
                    "time": recorded.time,
                    "session_key": recorded.stream.removeprefix(SESSIONS),
                    "run_id": message.run_id,
                    "call_id": block.id,
                    "tool": block.name,
                    "arguments": block.arguments,
                }
        if message.tool_call_id is not None:
            call = self._calls.pop(_of_call(recorded, message, message.tool_call_id), None)
            if call is not None:
                yield (
                    "calls",
                    call
                    | {
                        "result_position": recorded.position,
                        "result_time": recorded.time,
                        "result": facts.text_of(message),
                        "failed": bool(message.is_error),
                    },
                )
        while len(self._calls) > _MOST_WAITING:
            yield "calls", self._calls.popitem(last=False)[1]


def table_rows(events: Iterable[Recorded]) -> Iterator[TableRow]:
    """Yield the rows of all tables, each when it is known as a whole, and at the end those of what has not ended."""
    folded = _Folded()
    for recorded in events:
        yield from folded.take(recorded)
    yield from folded.rest()


def _event(recorded: Recorded) -> JsonObject:
    row: JsonObject = {name: getattr(recorded, name) for name in TABLES["events"] if name != "data"}
    return row | {"data": facts.encode(recorded.event).decode()}


def _message(recorded: Recorded, message: facts.Message) -> JsonObject:
    origin = message.provenance
    return {
        "position": recorded.position,
        "time": recorded.time,
        "session_key": recorded.stream.removeprefix(SESSIONS),
        "session_id": facts.generation_of(recorded.event),
        "message_id": message.id,
        "role": message.role,
        "text": facts.text_of(message),
        "from_kind": None if origin is None else origin.kind,
        "from_session": None if origin is None else origin.source_session_key,
        "from_channel": None if origin is None else origin.source_channel,
        "sender": None if origin is None else origin.sender_name or origin.sender,
        "run_id": message.run_id,
        "exchange_id": None if origin is None else origin.exchange_id,
        "model": message.model,
        "tool_call_id": message.tool_call_id,
        "imported": facts.is_imported(recorded.event),
    }


def _run(row: RunOutcome) -> JsonObject:
    told: JsonObject = {name: getattr(row, name) for name in TABLES["runs"] if hasattr(row, name)}
    times = {"queued": row.queued_ms, "started": row.started_ms, "ended": row.ended_ms}
    return {**told, **times, "position": row.accepted, **({} if row.usage is None else _counts(row.usage))}


def _delivery(recorded: Recorded, event: facts.DeliveryDecided, row: DeliverySummary) -> JsonObject:
    route = event.route
    return {
        "delivery_id": event.delivery_id,
        "position": recorded.position,
        "session_key": event.session_key,
        "run_id": event.run_id,
        "channel": route.channel,
        "account": route.account,
        "to": route.to,
        "thread": route.thread,
        "purpose": event.purpose,
        "text": event.text,
        "state": row.state,
        "attempt": row.attempt,
        "decided": recorded.time,
        "changed": recorded.time,
    }


def _usage(recorded: Recorded, used: facts.Usage, model: str) -> JsonObject:
    return {
        "position": recorded.position,
        "time": recorded.time,
        "session_key": recorded.stream.removeprefix(SESSIONS),
        "run_id": facts.run_named(recorded.event),
        "model": model or None,
        **_counts(used),
    }


def _counts(used: facts.Usage) -> JsonObject:
    return {
        "input_tokens": used.input,
        "output_tokens": used.output,
        "cache_read_tokens": used.cache_read,
        "cache_write_tokens": used.cache_write,
        "total_tokens": used.tokens,
        "cost_micros": used.cost_micros,
    }


def _of_call(recorded: Recorded, message: facts.Message, call_id: str) -> tuple[str, str]:
    return message.run_id or recorded.stream, call_id

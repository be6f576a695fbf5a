"""What spans say of events: runs, tool calls, exchanges, spawns and deliveries. For tracing, and for exports.

They follow the semantic conventions for generative AI (`invoke_agent`, `execute_tool`, `gen_ai.*`). A span's parent is what
it is part of; what led to it from another flow is a link. No words of anybody are in them unless a setting asks for that.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.rules.disclosure.events import hidden_event
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_events import facts
from intersession_events.log.recorded import Recorded

MOST_OPEN: Final = 10_000
MOST_REMEMBERED: Final = 10_000

_ARRIVED: Final = frozenset({"done", "withheld"})
_FAILED: Final = frozenset({"failed", "retrying"})

Attributes = Mapping[str, str | bool | int | float | Sequence[str]]


class OpenSpan(Protocol):
    """A span that has begun. Its `context` is what other spans name as their parent or their link."""

    @property
    def context(self) -> object:
        """Where it stands."""
        ...

    def put(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def end(self, time_ms: int | None, error: str | None) -> None:
        """End it, now if no time is given; with an error it has failed."""
        ...


class SpanStart(NamedTuple):
    """What a span begins with. `of` tells it from all others of a log, `chain` is the root of its causes; both may be unknown."""

    name: str
    of: str
    chain: str | None
    start_ms: int | None
    parent: object | None
    links: Sequence[object]


StartSpan = Callable[[SpanStart], OpenSpan]
"""Begins a span."""


class Spans:
    """Begins and ends spans by the events that it is told. `contents`: whether they have what was said, and arguments and results.

    With `hides` secrets are hidden in that, and in errors.
    """

    def __init__(self, start: StartSpan, *, contents: Callable[[], bool], hides: bool = True) -> None:
        self._start = start
        self._contents = contents
        self._hides = hides
        self._open: dict[str, OpenSpan] = {}
        self._queued: OrderedDict[str, tuple[facts.RunQueued, str, str | None]] = OrderedDict()
        self._contexts: OrderedDict[str, object] = OrderedDict()
        self._channels: OrderedDict[str, str] = OrderedDict()
        """The channels of deliveries, by their ids: one that has ended may be tried once more."""

    @property
    def open(self) -> int:
        """How many have not ended."""
        return len(self._open)

    def of_run(self, turn: Turn) -> OpenSpan:
        """Return the span of a turn's run. That of a run which was queued before this process began is made here."""
        span = self._open.get(_run(turn.run_id)) or self._run_span(
            turn.session_key, turn.run_id, turn.attempt, turn.model
        )
        self._begin(_run(turn.run_id), span)
        return span

    def append(self, batch: Sequence[Recorded]) -> None:
        """Make the span of a commit."""
        first, last = batch[0], batch[-1]
        span = self._span("append", first, parent=self._contexts.get(first.id), part="append")
        span.put({"intersession.events": len(batch), "intersession.position": last.position})
        span.end(None, None)

    def take(self, recorded: Recorded) -> None:
        """Take an event in: begin and end the spans that it begins and ends."""
        # What spans may tell of words is told without secrets, as everywhere: whoever collects spans is another reader.
        event = hidden_event(recorded.event) if self._hides and self._contents() else recorded.event
        name = self._began(recorded, event)
        owner = name or self._owner(recorded, event)
        span = self._open.get(owner) if owner is not None else None
        context = span.context if span is not None else self._contexts.get(recorded.causation or "")
        if context is not None:
            self._contexts[recorded.id] = context
            if len(self._contexts) > MOST_REMEMBERED:
                self._contexts.popitem(last=False)
        for part in facts.parts_of(event):
            self._ended(recorded, part)

    # --- beginnings

    def _began(  # noqa: C901, PLR0912 - one case an event
        self, recorded: Recorded, event: facts.Event
    ) -> str | None:
        """Begin the span that an event begins; return its name."""
        message = facts.message_in(event)
        if message is not None and message.run_id is not None and not isinstance(message.content, str):
            for block in message.content:
                if isinstance(block, facts.ToolCallBlock):
                    self._begin_tool(recorded, message.run_id, block)
        match event:
            case facts.RunQueued():
                self._queued[event.run_id] = (event, recorded.id, recorded.causation)
                if len(self._queued) > MOST_OPEN:
                    self._queued.popitem(last=False)
                return None
            case facts.RunStarted():
                name, key = _run(event.run_id), recorded.stream.removeprefix("session:")
                span = self._open.get(name) or self._run_span(
                    key, event.run_id, event.attempt, event.model, recorded
                )
                return self._begin(name, span)
            case facts.ExchangeAccepted():
                span = self._span("exchange", recorded, parent=self._cause(recorded))
                span.put({"intersession.target": event.target, "intersession.hops": event.hops})
                if event.requester is not None:
                    span.put({"intersession.requester": event.requester})
                return self._begin(recorded.stream, span)
            case facts.SpawnAccepted():
                span = self._span("spawn", recorded, parent=self._cause(recorded))
                span.put({"intersession.child": event.child, "gen_ai.agent.id": event.agent_id})
                return self._begin(recorded.stream, span)
            case facts.DeliveryDecided():
                self._channels[event.delivery_id] = event.route.channel
                if len(self._channels) > MOST_REMEMBERED:
                    self._channels.popitem(last=False)
                return None
            case facts.DeliveryStarted():
                channel = self._channels.get(event.delivery_id, "")
                span = self._span(f"deliver {channel}".strip(), recorded, parent=self._cause(recorded))
                span.put({"intersession.attempt": event.attempt, "intersession.channel": channel})
                return self._begin(recorded.stream, span)
            case _:
                return None

    def _begin(self, name: str, span: OpenSpan) -> str:
        if len(self._open) < MOST_OPEN:
            self._open[name] = span
        return name

    def _run_span(
        self,
        key: str,
        run_id: str,
        attempt: int,
        model: str | None,
        recorded: Recorded | None = None,
    ) -> OpenSpan:
        queued, queued_id, cause = self._queued.get(run_id, (None, "", None))
        flow = None
        if queued is not None:
            flow = self._open.get(queued.flow or "")
        caused = self._contexts.get(cause or "") or self._contexts.get(queued_id)
        parent = flow.context if flow is not None else caused
        links = [caused] if caused is not None and caused is not parent else []
        agent = runner_of(key)
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": (model or "intersession").partition("/")[0],
            "gen_ai.agent.id": agent,
            "gen_ai.agent.name": agent,
            "intersession.run_id": run_id,
            "intersession.attempt": attempt,
            "intersession.session_key": key,
        }
        if queued is not None:
            attributes |= {"gen_ai.conversation.id": queued.session_id, "intersession.step": queued.step}
        if model is not None:
            attributes["gen_ai.request.model"] = model.partition("/")[2] or model
        span = self._span(f"invoke_agent {agent}", recorded, parent=parent, links=links)
        span.put(attributes)
        return span

    def _begin_tool(self, recorded: Recorded, run_id: str, block: facts.ToolCallBlock) -> None:
        run = self._open.get(_run(run_id))
        parent = run.context if run is not None else None
        span = self._span(f"execute_tool {block.name}", recorded, parent=parent, part=block.id)
        span.put(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": block.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": block.id,
            }
        )
        if self._contents():
            span.put({"gen_ai.tool.call.arguments": block.arguments})
        self._begin(_tool(run_id, block.id), span)

    # --- ends

    def _ended(self, recorded: Recorded, event: facts.Event) -> None:
        """End the span that an event ends."""
        message = facts.message_in(event)
        if message is not None and message.run_id is not None and message.tool_call_id:
            contents = self._contents()
            result: Attributes = {"gen_ai.tool.call.result": facts.text_of(message)} if contents else {}
            error = "the tool answered with an error" if message.is_error else None
            self._end(_tool(message.run_id, message.tool_call_id), recorded, result, error)
        match event:
            case facts.RunAttempt(status=str()):
                self._end_run(recorded, event)
            case facts.FlowClosed():
                self._end(recorded.stream, recorded, {"intersession.reason": event.reason})
            case facts.DeliveryFact(state=state) if event.ends is not None:
                outcome = "retry" if state == "retrying" else state
                error = None if state in _ARRIVED else event.trouble if state in _FAILED else outcome
                self._end(recorded.stream, recorded, {"intersession.outcome": outcome}, error)
            case _:
                pass

    def _end_run(self, recorded: Recorded, event: facts.RunAttempt) -> None:
        attributes: dict[str, str | int | Sequence[str]] = {}
        error: str | None = None
        match event:
            case facts.RunCompleted():
                if event.usage is not None:
                    attributes["gen_ai.usage.input_tokens"] = event.usage.input
                    attributes["gen_ai.usage.output_tokens"] = event.usage.output
                    attributes["gen_ai.usage.cache_read.input_tokens"] = event.usage.cache_read
                    attributes["gen_ai.usage.cache_creation.input_tokens"] = event.usage.cache_write
                if event.model is not None:
                    attributes["gen_ai.response.model"] = event.model
                if event.stop_reason is not None:
                    attributes["gen_ai.response.finish_reasons"] = [event.stop_reason]
                if self._contents() and event.reply is not None:
                    attributes["gen_ai.output.messages"] = _output(event.reply, event.stop_reason)
            case facts.RunFailed():
                attributes["error.type"], error = event.code, event.error
            case facts.RunAttempt(status=str() as status):
                attributes["error.type"], error = status, status
            case _:
                pass
        self._end(_run(event.run_id), recorded, attributes, error)

    def _end(self, name: str, recorded: Recorded, attributes: Attributes, error: str | None = None) -> None:
        span = self._open.pop(name, None)
        if span is None:
            return
        span.put(attributes)
        span.end(recorded.time, redact_text(error)[0] if error is not None and self._hides else error)

    # --- where a span stands

    def _owner(self, recorded: Recorded, event: facts.Event) -> str | None:
        """Return the name of the span that an event happened in."""
        if isinstance(event, facts.RunAttempt | facts.MessageRecorded):
            run_id = facts.run_named(event)
            return None if run_id is None else _run(run_id)
        return recorded.stream if recorded.stream in self._open else None

    def _cause(self, recorded: Recorded) -> object | None:
        return self._contexts.get(recorded.causation or "")

    def _span(
        self,
        name: str,
        recorded: Recorded | None,
        *,
        parent: object | None,
        links: Sequence[object] = (),
        part: str = "",
    ) -> OpenSpan:
        if recorded is None:
            return self._start(SpanStart(name, "", None, None, parent, links))
        of, chain = f"{recorded.id} {part}", recorded.correlation or recorded.id
        span = self._start(SpanStart(name, of, chain, recorded.time, parent, links))
        if recorded.correlation:
            span.put({"intersession.correlation": recorded.correlation})
        return span


def _output(reply: str, stop_reason: str | None) -> str:
    """Return an answer as the conventions have messages in an attribute: as JSON."""
    said = {
        "role": "assistant",
        "parts": [{"type": "text", "content": reply}],
        "finish_reason": stop_reason or "stop",
    }
    return msgspec.json.encode([said]).decode()


def _run(run_id: str) -> str:
    return f"run:{run_id}"


def _tool(run_id: str, call_id: str) -> str:
    return f"tool:{run_id}:{call_id}"

"""Spans of OpenTelemetry, if the host has it: runs, tool calls, exchanges, spawns, deliveries and commits, made from events.

They follow the semantic conventions for generative AI (`invoke_agent`, `execute_tool`, `gen_ai.*`). A span's parent is what
it is part of; what led to it from another flow is a link. No words of anybody are in them unless a setting asks for that.
"""

import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.rules.config.host import Tracing as Settings
from intersession_actors.rules.disclosure.events import hidden_event
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.failures.failure import described
from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer, TracerProvider

_LOGGER: Final = logging.getLogger("intersession.tracing")

MOST_OPEN: Final = 10_000
MOST_REMEMBERED: Final = 10_000
_NS_PER_MS: Final = 1_000_000

_ARRIVED: Final = frozenset({"done", "withheld"})
_FAILED: Final = frozenset({"failed", "retrying"})

Attributes = dict[str, str | bool | int | float | Sequence[str]]


def tracer_provider_of(provider: Any) -> Any:  # OpenTelemetry's, which not every host has
    """Return the tracer provider of a host; None is the global one.

    Raises:
        ToolRefused: it gives no tracers.
    """
    if provider is None or callable(getattr(provider, "get_tracer", None)):
        return provider
    raise invalid(
        "tracer_provider",
        f"{type(provider).__name__} has no get_tracer(), give OpenTelemetry's TracerProvider",
    )


class Tracing:
    """Makes spans of committed events. Without OpenTelemetry, or without a provider, it does nothing."""

    def __init__(
        self,
        log: Log,
        *,
        settings: Callable[[], Settings],
        provider: "TracerProvider | None" = None,
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._lock = threading.Lock()
        self._told = False
        self._open: dict[str, Span] = {}
        self._queued: OrderedDict[str, tuple[facts.RunQueued, str, str | None]] = OrderedDict()
        self._contexts: OrderedDict[str, SpanContext] = OrderedDict()
        self._channels: OrderedDict[str, str] = OrderedDict()
        """The channels of deliveries, by their ids: one that has ended may be tried once more."""
        self.stop: Callable[[], None] = log.on_committed(self.take)

    @property
    def _otel(self) -> Any:  # a module that not every host has
        """OpenTelemetry's API, if the host has imported it: without that it has no provider, and a start need not be slower."""
        return sys.modules.get("opentelemetry.trace")

    def _tracer(self) -> "Tracer | None":
        """Return the tracer; None if tracing is off."""
        otel = self._otel
        if otel is None or not self._settings().enabled:
            return None
        provider = self._provider or otel.get_tracer_provider()
        if isinstance(provider, otel.ProxyTracerProvider | otel.NoOpTracerProvider):
            return None
        tracer: Tracer = provider.get_tracer("intersession")
        return tracer

    def around(self, turn: Turn) -> AbstractContextManager[object] | None:
        """Return a context in which an agent's own spans belong to its run's span; None if tracing is off."""
        otel = self._otel
        span = None if otel is None else self._span_of(turn)
        if span is None or otel is None:
            return None
        within: AbstractContextManager[object] = otel.use_span(
            span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        )
        return within

    def _span_of(self, turn: Turn) -> "Span | None":
        """Return the span of a run; None if tracing is off or the host's provider fails: the run goes on."""
        try:
            tracer = self._tracer()
            if tracer is None:
                return None
            with self._lock:
                # The agent may be called before the commit of its start is told here.
                span = self._open.get(_run(turn.run_id)) or self._run_span(
                    tracer, turn.session_key, turn.run_id, turn.attempt, turn.model
                )
                self._begin(_run(turn.run_id), span)
        except Exception as error:  # noqa: BLE001 - the host's provider and its processors may raise anything
            self._failed(error)
            return None
        return span

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take committed events in. Called on the writer's thread, before any actor acts on them."""
        try:
            tracer = self._tracer()
            if tracer is not None:
                with self._lock:
                    self._take_all(tracer, batch)
        except Exception as error:  # noqa: BLE001 - the host's provider and its processors may raise anything
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Say once that spans can't be made: each commit would meet the same."""
        with self._lock:
            told, self._told = self._told, True
        if not told:
            _LOGGER.error("a span could not be made, and others may not be either: %s", described(error))

    def _take_all(self, tracer: "Tracer", batch: Sequence[Recorded]) -> None:
        for recorded in batch:
            self._take(tracer, recorded)
        first, last = batch[0], batch[-1]
        span = self._span(tracer, "append", first, parent=self._contexts.get(first.id))
        span.set_attribute("intersession.events", len(batch))
        span.set_attribute("intersession.position", last.position)
        span.end()

    def _take(self, tracer: "Tracer", recorded: Recorded) -> None:
        # What spans may tell of words is told without secrets, as everywhere: whoever collects spans is another reader.
        event = hidden_event(recorded.event) if self._settings().contents else recorded.event
        name = self._began(tracer, recorded, event)
        owner = name or self._owner(recorded, event)
        span = self._open.get(owner) if owner is not None else None
        context = (
            span.get_span_context() if span is not None else self._contexts.get(recorded.causation or "")
        )
        if context is not None:
            self._contexts[recorded.id] = context
            if len(self._contexts) > MOST_REMEMBERED:
                self._contexts.popitem(last=False)
        for part in facts.parts_of(event):
            self._ended(recorded, part)

    # --- beginnings

    def _began(  # noqa: C901, PLR0912 - one case an event
        self, tracer: "Tracer", recorded: Recorded, event: facts.Event
    ) -> str | None:
        """Begin the span that an event begins; return its name."""
        message = facts.message_in(event)
        if message is not None and message.run_id is not None and not isinstance(message.content, str):
            for block in message.content:
                if isinstance(block, facts.ToolCallBlock):
                    self._begin_tool(tracer, recorded, message.run_id, block)
        match event:
            case facts.RunQueued():
                self._queued[event.run_id] = (event, recorded.id, recorded.causation)
                if len(self._queued) > MOST_OPEN:
                    self._queued.popitem(last=False)
                return None
            case facts.RunStarted():
                name, key = _run(event.run_id), recorded.stream.removeprefix("session:")
                span = self._open.get(name) or self._run_span(
                    tracer, key, event.run_id, event.attempt, event.model, recorded
                )
                return self._begin(name, span)
            case facts.ExchangeAccepted():
                span = self._span(tracer, "exchange", recorded, parent=self._cause(recorded))
                span.set_attributes({"intersession.target": event.target, "intersession.hops": event.hops})
                if event.requester is not None:
                    span.set_attribute("intersession.requester", event.requester)
                return self._begin(recorded.stream, span)
            case facts.SpawnAccepted():
                span = self._span(tracer, "spawn", recorded, parent=self._cause(recorded))
                span.set_attributes({"intersession.child": event.child, "gen_ai.agent.id": event.agent_id})
                return self._begin(recorded.stream, span)
            case facts.DeliveryDecided():
                self._channels[event.delivery_id] = event.route.channel
                if len(self._channels) > MOST_REMEMBERED:
                    self._channels.popitem(last=False)
                return None
            case facts.DeliveryStarted():
                channel = self._channels.get(event.delivery_id, "")
                span = self._span(
                    tracer, f"deliver {channel}".strip(), recorded, parent=self._cause(recorded)
                )
                span.set_attributes({"intersession.attempt": event.attempt, "intersession.channel": channel})
                return self._begin(recorded.stream, span)
            case _:
                return None

    def _begin(self, name: str, span: "Span") -> str:
        if len(self._open) < MOST_OPEN:
            self._open[name] = span
        return name

    def _run_span(  # noqa: PLR0917 - what a turn and an event have in common
        self,
        tracer: "Tracer",
        key: str,
        run_id: str,
        attempt: int,
        model: str | None,
        recorded: Recorded | None = None,
    ) -> "Span":
        queued, queued_id, cause = self._queued.get(run_id, (None, "", None))
        flow = None
        if queued is not None:
            flow = self._open.get(queued.flow or "")
        caused = self._contexts.get(cause or "") or self._contexts.get(queued_id)
        parent = flow.get_span_context() if flow is not None else caused
        links = [caused] if caused is not None and caused is not parent else []
        agent = runner_of(key)
        attributes: Attributes = {
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
        span = self._span(tracer, f"invoke_agent {agent}", recorded, parent=parent, links=links)
        span.set_attributes(attributes)
        return span

    def _begin_tool(
        self, tracer: "Tracer", recorded: Recorded, run_id: str, block: facts.ToolCallBlock
    ) -> None:
        run = self._open.get(_run(run_id))
        parent = run.get_span_context() if run is not None else None
        span = self._span(tracer, f"execute_tool {block.name}", recorded, parent=parent)
        span.set_attributes(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": block.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": block.id,
            }
        )
        if self._settings().contents:
            span.set_attribute("gen_ai.tool.call.arguments", block.arguments)
        self._begin(_tool(run_id, block.id), span)

    # --- ends

    def _ended(self, recorded: Recorded, event: facts.Event) -> None:
        """End the span that an event ends."""
        message = facts.message_in(event)
        if message is not None and message.run_id is not None and message.tool_call_id:
            contents = self._settings().contents
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
        attributes: Attributes = {}
        error: str | None = None
        match event:
            case facts.RunCompleted():
                if event.usage is not None:
                    attributes["gen_ai.usage.input_tokens"] = event.usage.input
                    attributes["gen_ai.usage.output_tokens"] = event.usage.output
                if event.model is not None:
                    attributes["gen_ai.response.model"] = event.model
                if event.stop_reason is not None:
                    attributes["gen_ai.response.finish_reasons"] = [event.stop_reason]
                if self._settings().contents and event.reply is not None:
                    attributes["gen_ai.output.messages"] = event.reply
            case facts.RunFailed():
                attributes["error.type"], error = event.code, event.error
            case facts.RunAttempt(status=str() as status):
                attributes["error.type"], error = status, status
            case _:
                pass
        self._end(_run(event.run_id), recorded, attributes, error)

    def _end(self, name: str, recorded: Recorded, attributes: Attributes, error: str | None = None) -> None:
        span = self._open.pop(name, None)
        if span is None or self._otel is None:
            return
        span.set_attributes(attributes)
        if error is not None:
            span.set_status(self._otel.Status(self._otel.StatusCode.ERROR, redact_text(error)[0]))
        span.end(end_time=recorded.time * _NS_PER_MS)

    # --- where a span stands

    def _owner(self, recorded: Recorded, event: facts.Event) -> str | None:
        """Return the name of the span that an event happened in."""
        if isinstance(event, facts.RunAttempt | facts.MessageRecorded):
            run_id = facts.run_named(event)
            return None if run_id is None else _run(run_id)
        return recorded.stream if recorded.stream in self._open else None

    def _cause(self, recorded: Recorded) -> "SpanContext | None":
        return self._contexts.get(recorded.causation or "")

    def _span(
        self,
        tracer: "Tracer",
        name: str,
        recorded: Recorded | None,
        *,
        parent: "SpanContext | None",
        links: Sequence["SpanContext"] = (),
    ) -> "Span":
        otel = self._otel
        if otel is None:
            raise RuntimeError("no span is made without OpenTelemetry")
        correlation = None if recorded is None else recorded.correlation
        context = None if parent is None else otel.set_span_in_context(otel.NonRecordingSpan(parent))
        span: Span = tracer.start_span(
            name,
            context=context,
            links=[otel.Link(link) for link in links],
            start_time=None if recorded is None else recorded.time * _NS_PER_MS,
            attributes={"intersession.correlation": correlation} if correlation else None,
        )
        return span


def _run(run_id: str) -> str:
    return f"run:{run_id}"


def _tool(run_id: str, call_id: str) -> str:
    return f"tool:{run_id}:{call_id}"

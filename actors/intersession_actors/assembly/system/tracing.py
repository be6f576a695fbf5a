"""Spans of OpenTelemetry, if the host has it, of what is committed: `hindsight/exporting/spans.py` says what is in them."""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from intersession_actors.hindsight.exporting.spans import Attributes, OpenSpan, Spans, SpanStart
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.rules.config.host import Tracing as Settings
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.failures.failure import described
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer, TracerProvider

_LOGGER: Final = logging.getLogger("intersession.tracing")
_NS_PER_MS: Final = 1_000_000


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
        self._spans = Spans(self._start, contents=lambda: settings().contents)
        self._current: Tracer | None = None
        # First: an agent is called as soon as its start is acknowledged, and its span needs the one that it is part of.
        self.stop: Callable[[], None] = log.on_committed(self.take, first=True)

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
                self._current = tracer
                span = self._spans.of_run(turn)
        except Exception as error:  # noqa: BLE001 - the host's provider and its processors may raise anything
            self._failed(error)
            return None
        return span.span if isinstance(span, _LiveSpan) else None

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take committed events in. Called on the writer's thread, before any actor acts on them."""
        try:
            tracer = self._tracer()
            if tracer is not None:
                with self._lock:
                    self._current = tracer
                    for recorded in batch:
                        self._spans.take(recorded)
                    self._spans.append(batch)
        except Exception as error:  # noqa: BLE001 - the host's provider and its processors may raise anything
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Say once that spans can't be made: each commit would meet the same."""
        with self._lock:
            told, self._told = self._told, True
        if not told:
            _LOGGER.error("a span could not be made, and others may not be either: %s", described(error))

    def _start(self, begun: SpanStart) -> OpenSpan:
        """Begin a span; the SDK makes ids of its own."""
        parent = begun.parent
        otel, tracer = self._otel, self._current
        if otel is None or tracer is None:
            raise RuntimeError("no span is made without OpenTelemetry")
        span: Span = tracer.start_span(
            begun.name,
            context=None if parent is None else otel.set_span_in_context(otel.NonRecordingSpan(parent)),
            links=[otel.Link(link) for link in begun.links],
            start_time=None if begun.start_ms is None else begun.start_ms * _NS_PER_MS,
        )
        return _LiveSpan(span, otel)


class _LiveSpan:
    """A span of the SDK's."""

    def __init__(self, span: "Span", otel: Any) -> None:  # as above
        self.span = span
        self._otel = otel

    @property
    def context(self) -> "SpanContext":
        """Where it stands."""
        return self.span.get_span_context()

    def put(self, attributes: Attributes) -> None:
        """Add attributes."""
        self.span.set_attributes(attributes)

    def end(self, time_ms: int | None, error: str | None) -> None:
        """End it."""
        if error is not None:
            self.span.set_status(self._otel.Status(self._otel.StatusCode.ERROR, error))
        self.span.end(end_time=None if time_ms is None else time_ms * _NS_PER_MS)

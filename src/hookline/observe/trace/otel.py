"""Spans for OpenTelemetry: session, turn, model turn, tool call, hook, by the GenAI conventions.

    [otel]
    endpoint = "http://localhost:4318/v1/traces"
    headers = { authorization = "Bearer ${OTEL_TOKEN}" }

Payloads are never sent: names, times, decisions, reasons of denials and token counts are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.errors import TraceError

from .record import TraceRecord
from .settings import OtelSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

OPERATIONS = {"turn": "invoke_agent", "model": "chat", "tool": "execute_tool"}
"""What the GenAI conventions call the spans of a turn."""
OPEN = 10_000
"""Spans that are remembered as parents; of more, the oldest are forgotten."""


def provider_of(settings: OtelSettings, exporter: SpanExporter | None = None) -> TracerProvider:
    """What sends spans to where the settings say, in batches, from a thread of its own."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TraceError(
            f"[otel] has an endpoint, and {error.name} is not installed: pip install 'hookline[otel]'"
        ) from None
    provider = TracerProvider(resource=Resource.create({"service.name": settings.service_name}))
    sending = exporter or OTLPSpanExporter(
        endpoint=settings.endpoint, headers=settings.headers, timeout=settings.timeout
    )
    provider.add_span_processor(BatchSpanProcessor(sending))
    return provider


class Spans:
    """Makes spans of what the tracer tells."""

    def __init__(self, provider: TracerProvider, redact: Callable[[str], str] | None = None) -> None:
        self._provider = provider
        self._redact = redact
        self._tracer = provider.get_tracer("hookline")
        self._sessions: dict[str, Span] = {}
        self._spans: dict[str, Span] = {}

    def began(self, record: TraceRecord) -> None:
        """Start a span, which others may be in."""
        operation = OPERATIONS[record.kind]
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": record.session,
            "hookline.runtime.turn.id": record.turn,
        }
        if record.kind == "turn":
            attributes["gen_ai.agent.name"] = record.name
        elif record.kind == "model":
            provider, _, model = record.name.rpartition(":")
            attributes["gen_ai.request.model"] = model
            attributes["gen_ai.provider.name"] = provider or "hookline"
            attributes["hookline.model_turn"] = record.step
        else:
            attributes["gen_ai.tool.name"] = record.name
            attributes["gen_ai.tool.call.id"] = record.call
            attributes["gen_ai.tool.type"] = "function"
        name = f"{operation} {record.name}".strip()
        if len(self._spans) >= OPEN:
            self._spans.pop(next(iter(self._spans)))
        self._spans[record.id] = self._start(name, record, attributes)

    def ended(self, record: TraceRecord) -> None:
        """End a span."""
        span = self._spans.get(record.id)
        if span is None:
            return
        payload: Any = record.payload or {}
        usage: dict[str, Any] = payload.get("usage") or {}
        for name in ("input_tokens", "output_tokens"):
            if usage.get(name) is not None:
                span.set_attribute(f"gen_ai.usage.{name}", int(usage[name]))
        self._finish(span, record)
        if record.kind == "turn":  # what follows, such as the delivery, belongs to the session
            for key in [key for key in self._spans if key.startswith(f"{record.turn}/")]:
                del self._spans[key]

    def dispatched(self, record: TraceRecord) -> None:
        """Make the span of a dispatch, with an event for each handler."""
        attributes: dict[str, Any] = {"hookline.hook": record.name}
        if record.session:
            attributes["gen_ai.conversation.id"] = record.session
        if record.decision:
            attributes["hookline.decision"] = record.decision
        span = self._start(f"hook {record.name}", record, attributes)
        self._finish(span, record)

    def close(self) -> None:
        """End open spans, and send the rest."""
        for span in (*self._spans.values(), *self._sessions.values()):
            if span.is_recording():
                span.end()
        self._spans.clear()
        self._sessions.clear()
        self._provider.shutdown()

    def _start(self, name: str, record: TraceRecord, attributes: dict[str, Any]) -> Span:
        from opentelemetry.trace import set_span_in_context

        parent = self._spans.get(record.parent) or self._spans.get(record.turn)
        if parent is None and record.session:
            parent = self._session(record)
        context = set_span_in_context(parent) if parent is not None else None
        started = int(record.time * 1e9)
        return self._tracer.start_span(name, context, attributes=attributes, start_time=started)

    def _session(self, record: TraceRecord) -> Span:
        span = self._sessions.get(record.session)
        if span is None:
            span = self._sessions[record.session] = self._tracer.start_span(
                "session",
                attributes={"gen_ai.conversation.id": record.session},
                start_time=int(record.time * 1e9),
            )
        return span

    def left(self, session: str) -> None:
        """A session was closed."""
        span = self._sessions.pop(session, None)
        if span is not None:
            span.end()

    def _finish(self, span: Span, record: TraceRecord) -> None:
        from opentelemetry.trace import Status, StatusCode

        if record.error:
            error = self._redact(record.error) if self._redact else record.error
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(int((record.time + record.duration) * 1e9))

"""Spans for OpenTelemetry: nested as a turn is, named by the conventions, sent to a receiver."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hookline.observe.trace.otel import Spans, provider_of
from hookline.observe.trace.recorders import SpansPlugin
from hookline.observe.trace.settings import OtelSettings, TraceSettings
from hookline.observe.trace.tracer import Tracer

from .conftest import one_turn


async def test_spans_are_nested_session_turn_model_turn_tool_call_hook(traced):
    app = traced("off")
    exporter = InMemorySpanExporter()
    spans = Spans(provider_of(OtelSettings(), exporter))
    tracer = Tracer(TraceSettings(), None, listeners=[spans])
    plugin = SpansPlugin(app, tracer.epoch, (spans,))
    tracer.pass_over([plugin])
    app.hooks.add(plugin, name="spans")
    app.hooks.observe(tracer.observer)
    async with app.running():
        await one_turn(app)
    spans._provider.force_flush()  # what `close` does before it ends the exporter
    done = {span.context.span_id: span for span in exporter.get_finished_spans()}
    gate = next(s for s in done.values() if s.name == "hook tool_call")
    names = []
    span = gate
    while span is not None:
        names.append(span.name)
        span = done.get(span.parent.span_id) if span.parent else None
    assert names == [
        "hook tool_call",
        "execute_tool list_files",
        "chat scripted",
        "invoke_agent main",
        "session",
    ]
    tool = done[gate.parent.span_id]
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.attributes["gen_ai.tool.call.id"] == "call_1"
    assert tool.attributes["gen_ai.conversation.id"] == "s"
    assert tool.start_time <= gate.start_time <= gate.end_time <= tool.end_time
    model = done[tool.parent.span_id]
    assert model.attributes["gen_ai.request.model"] == "scripted"
    denied = next(s for s in done.values() if s.attributes.get("hookline.decision") == "deny")
    assert "no" not in denied.attributes  # reasons stay here
    spans.close()


@pytest.fixture
def receiver():
    """An OTLP receiver over HTTP on loopback."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append((self.path, dict(self.headers), body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", received
    server.shutdown()
    thread.join()
    server.server_close()


async def test_an_endpoint_in_the_settings_is_sent_spans_over_http(traced, receiver, monkeypatch):
    import gzip

    address, received = receiver
    monkeypatch.setenv("OTEL_TOKEN", "t0ken")
    otel = {
        "endpoint": address,
        "service_name": "shop",
        "headers": {"authorization": "Bearer ${OTEL_TOKEN}"},
    }
    app = traced("off", otel=otel)
    async with app.running():
        await one_turn(app)
    assert received
    names = set()
    for path, headers, body in received:
        assert path == "/v1/traces"
        assert headers.get("authorization", headers.get("Authorization")) == "Bearer t0ken"
        data = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
            values = {a.key: a.value.string_value for a in resource.resource.attributes}
            assert values["service.name"] == "shop"
            names |= {span.name for scope in resource.scope_spans for span in scope.spans}
            assert b"what is here?" not in data  # no payload leaves
    assert {"session", "invoke_agent main", "chat scripted", "execute_tool shell"} <= names


def test_an_endpoint_that_is_no_address_is_refused():
    with pytest.raises(ValueError, match="must be an address"):
        OtelSettings(endpoint="localhost:4318")

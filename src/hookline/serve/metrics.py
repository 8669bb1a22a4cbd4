"""The gateway's metrics, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counters of one gateway."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._messages = Counter(
            "hookline_messages", "Messages by what became of them", ["channel", "outcome"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "hookline_message_seconds", "From accepted to answered", ["channel"],
            registry=registry, buckets=SECONDS,
        )  # fmt: skip
        self._errors = Counter(
            "hookline_errors", "Messages that could not be processed", ["channel"], registry=registry
        )
        self.in_flight = Gauge(
            "hookline_messages_in_flight", "Messages being processed or waiting", registry=registry
        )
        self.connections = Gauge("hookline_websockets", "Open WebSockets", registry=registry)
        self._requests = Counter(
            "hookline_http_requests", "HTTP requests", ["method", "status"], registry=registry
        )

    def message(self, channel: str, outcome: str, seconds: float) -> None:
        """Count a settled message."""
        self._messages.labels(channel, outcome).inc()
        self._seconds.labels(channel).observe(seconds)

    def failed(self, channel: str) -> None:
        """Count a message that could not be processed."""
        self._errors.labels(channel).inc()

    def request(self, method: str, status: int) -> None:
        """Count an HTTP response."""
        self._requests.labels(method, str(status)).inc()

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)


__all__ = ["CONTENT_TYPE", "Metrics"]

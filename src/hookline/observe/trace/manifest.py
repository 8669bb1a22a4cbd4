"""What is known of the plugin `trace` before it is imported."""

MANIFEST = {
    "name": "trace",
    "order": 200,
    "settings": {
        "trace": "hookline.observe.trace.settings:TraceSettings",
        "otel": "hookline.observe.trace.settings:OtelSettings",
    },
}

"""The manifest of the plugin `trace`, readable without importing the plugin."""

MANIFEST = {
    "name": "trace",
    "order": 200,
    "settings": {
        "trace": "hookline.observe.trace.settings:TraceSettings",
        "otel": "hookline.observe.trace.settings:OtelSettings",
    },
}

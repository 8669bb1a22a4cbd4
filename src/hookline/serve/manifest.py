"""The manifest of the plugin `gateway`, readable without importing the plugin."""

MANIFEST = {
    "name": "gateway",
    "order": 210,
    "provides": ["channel"],
    "settings": {
        "gateway": "hookline.serve.settings:GatewaySettings",
        "worker": "hookline.serve.settings:WorkerSettings",
        "channels": "",
    },
}

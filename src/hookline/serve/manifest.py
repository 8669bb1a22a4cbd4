"""What is known of the plugin `gateway` before it is imported."""

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

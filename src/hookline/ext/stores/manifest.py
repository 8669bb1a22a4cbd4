"""The manifest of the plugin `stores`, readable without importing the plugin."""

MANIFEST = {
    "name": "stores",
    "order": 150,
    "provides": ["store"],
    "settings": {
        "stores": "",
    },
}

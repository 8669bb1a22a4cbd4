"""What is known of the plugin `stores` before it is imported."""

MANIFEST = {
    "name": "stores",
    "order": 150,
    "provides": ["store"],
    "settings": {
        "stores": "",
    },
}

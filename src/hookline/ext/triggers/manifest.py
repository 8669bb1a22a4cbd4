"""The manifest of the plugin `triggers`, readable without importing the plugin."""

MANIFEST = {
    "name": "triggers",
    "order": 170,
    "provides": ["trigger"],
    "settings": {
        "triggers": "",
    },
}

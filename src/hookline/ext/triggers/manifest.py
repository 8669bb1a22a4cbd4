"""What is known of the plugin `triggers` before it is imported."""

MANIFEST = {
    "name": "triggers",
    "order": 170,
    "provides": ["trigger"],
    "settings": {
        "triggers": "",
    },
}

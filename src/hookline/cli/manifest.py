"""The manifest of the plugin `cli`, readable without importing the plugin."""

MANIFEST = {
    "name": "cli",
    "order": 220,
    "provides": ["cli"],
}

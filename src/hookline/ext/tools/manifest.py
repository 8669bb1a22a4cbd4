"""The manifest of the plugin `tools`, readable without importing the plugin."""

MANIFEST = {
    "name": "tools",
    "order": 100,
    "provides": ["tool"],
}

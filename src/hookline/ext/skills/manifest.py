"""The manifest of the plugin `skills`, readable without importing the plugin."""

MANIFEST = {
    "name": "skills",
    "order": 110,
    "provides": ["skill", "tool"],
}

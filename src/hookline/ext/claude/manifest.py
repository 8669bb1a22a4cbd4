"""The manifest of the plugin `claude`, readable without importing the plugin."""

MANIFEST = {"name": "claude", "order": 115}

"""The manifest of the plugin `mcp`, readable without importing the plugin."""

MANIFEST = {
    "name": "mcp",
    "order": 120,
    "provides": ["tool"],
    "settings": {
        "mcp": "hookline.ext.mcp.settings:McpSettings",
    },
}

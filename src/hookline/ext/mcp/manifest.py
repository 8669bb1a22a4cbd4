"""What is known of the plugin `mcp` before it is imported."""

MANIFEST = {
    "name": "mcp",
    "order": 120,
    "provides": ["tool"],
    "settings": {
        "mcp": "hookline.ext.mcp.settings:McpSettings",
    },
}

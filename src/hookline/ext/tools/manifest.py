"""What is known of the plugin `tools` before it is imported."""

MANIFEST = {
    "name": "tools",
    "order": 100,
    "provides": ["tool"],
}

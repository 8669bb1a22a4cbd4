"""What is known of the plugin `cli` before it is imported."""

MANIFEST = {
    "name": "cli",
    "order": 220,
    "provides": ["cli"],
}

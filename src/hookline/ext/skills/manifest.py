"""What is known of the plugin `skills` before it is imported."""

MANIFEST = {
    "name": "skills",
    "order": 110,
    "provides": ["skill", "tool"],
}

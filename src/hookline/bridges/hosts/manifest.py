"""The manifest of the plugin `hosts`, readable without importing the plugin."""

MANIFEST = {
    "name": "hosts",
    "order": 230,
    "provides": ["cli"],
    "settings": {
        "hook": "hookline.bridges.hosts.settings:HookSettings",
    },
}

"""The manifest of the plugin `proxy`, readable without importing the plugin."""

MANIFEST = {
    "name": "proxy",
    "order": 240,
    "provides": ["cli"],
    "settings": {
        "proxy": "hookline.bridges.proxy.settings:ProxySettings",
    },
}

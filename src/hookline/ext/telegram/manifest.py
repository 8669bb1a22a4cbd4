"""The manifest of the plugin `telegram`, readable without importing the plugin."""

MANIFEST = {
    "name": "telegram",
    "order": 180,
    "provides": ["channel"],
    "settings": {
        "channels.telegram": "hookline.ext.telegram.settings:TelegramSettings",
    },
}

"""What is known of the plugin `telegram` before it is imported."""

MANIFEST = {
    "name": "telegram",
    "order": 180,
    "provides": ["channel"],
    "settings": {
        "channels.telegram": "hookline.ext.telegram.settings:TelegramSettings",
    },
}

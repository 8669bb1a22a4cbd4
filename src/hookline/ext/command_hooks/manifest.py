"""The manifest of the plugin `command-hooks`, readable without importing the plugin."""

MANIFEST = {
    "name": "command-hooks",
    "order": 130,
    "settings": {
        "hooks.commands": "hookline.ext.command_hooks.files:CommandHooksSettings",
    },
}

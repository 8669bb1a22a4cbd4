"""What is known of the plugin `command-hooks` before it is imported."""

MANIFEST = {
    "name": "command-hooks",
    "order": 130,
    "settings": {
        "hooks.commands": "hookline.ext.command_hooks.files:CommandHooksSettings",
    },
}

"""The manifest of the plugin `interceptors`, readable without importing the plugin."""

MANIFEST = {
    "name": "interceptors",
    "order": 140,
    "required": True,
    "settings": {
        "agent_hooks": "hookline.ext.interceptors.settings:AgentHooksSettings",
    },
}

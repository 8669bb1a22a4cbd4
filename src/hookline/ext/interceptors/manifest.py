"""What is known of the plugin `interceptors` before it is imported."""

MANIFEST = {
    "name": "interceptors",
    "order": 140,
    "required": True,
    "settings": {
        "agent_hooks": "hookline.ext.interceptors.settings:AgentHooksSettings",
    },
}

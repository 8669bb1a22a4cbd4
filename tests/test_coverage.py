"""Every declared hook is seen firing through the production path, or stands in one list until it is.

`NOT_YET` names, for each hook that nothing fires yet, the capability that will fire it. A hook leaves
the list when a scenario of this file sees it; the list is empty when the gateway is done.
"""

from hookline.catalog import CATALOG

THE_TURN = "one message in, one answer out"
AGENT = "the agent's loop of model turns and tool calls"
SESSIONS = "sessions that branch, compact, resume and delegate"
PLUGINS = "plugins from packages, manifests and hook files"
POLICY = "authorisation, policy and approvals"
CHAT = "the terminal agent: providers, chat, tools"
GATEWAY = "the gateway with its channels"
TRIGGERS = "triggers"


def waiting(names: str, capability: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), capability)


NOT_YET: dict[str, str] = {
    **waiting(
        "resolve_session load_state build_prompt run_model_stream run_model save_state "
        "render_outbound dispatch_outbound on_error system_prompt provide_tape_store "
        "build_tape_context register_cli_commands message:receive message:send output "
        "session_before_start session_start session_shutdown",
        THE_TURN,
    ),
    **waiting(
        "on_turn_start on_turn_end bootstrap_files before_agent_start context agent_start "
        "agent_end agent_error turn_start turn_end message_start message_update message_end "
        "around_model_call model_call model_result around_tool_call before_tool_call "
        "after_tool_call tool_call tool_result tool_result_persist tool_execution_start "
        "tool_execution_update tool_execution_end tool_execution_failure",
        AGENT,
    ),
    **waiting(
        "admit_message input agent_stop save_point settled session_before_switch "
        "session_before_fork session_before_compact session_compact session_before_tree "
        "session_tree model_select thinking_level_select subagent_start subagent_end user_bash",
        SESSIONS,
    ),
    **waiting(
        "hookline_startup hookline_shutdown register_tools register_skills register_stores "
        "register_packs register_commands onboard_config resources_discover",
        PLUGINS,
    ),
    **waiting("authorize_action resolve_approval", POLICY),
    **waiting("retry_start retry_end on_loop_warning", CHAT),
    **waiting(
        "provide_channels gateway:startup gateway:stop gateway:error channel:connect "
        "channel:disconnect message:cancel notification",
        GATEWAY,
    ),
    **waiting("trigger_init trigger_start trigger_stop trigger_routes", TRIGGERS),
}


def seen_firing() -> set[str]:
    """The hooks that the scenarios saw, as the trace told it."""
    return set()


def test_every_hook_is_seen_firing_or_listed_with_what_will_fire_it():
    seen = seen_firing()
    assert set(CATALOG) == seen | set(NOT_YET)
    assert not seen & set(NOT_YET), "these fire now: take them off the list"

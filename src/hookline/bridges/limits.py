"""What a bridge does not reach: hooks that no host reports, and untested versions of a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from hookline.errors import BridgeError

_UNREPORTED: Final = {
    "the host runs its own model": (
        "run_model", "run_model_stream", "register_models", "model_select", "thinking_level_select",
        "retry_start", "retry_end", "turn_start", "turn_end", "message_update", "on_loop_warning",
    ),
    "the host has its own tools, skills and commands": (
        "register_tools", "register_skills", "register_commands", "register_cli_commands", "user_bash",
        "tool_execution_update", "network_request", "bootstrap_files", "resources_discover",
        "resources_loaded", "onboard_config",
    ),
    "the host has its own channels": (
        "provide_channels", "register_channels", "gateway:startup", "gateway:error", "gateway:stop",
        "channel:connect", "channel:disconnect", "trigger_init", "trigger_routes", "trigger_start",
        "trigger_stop",
    ),
    "the host has its own conversations": (
        "session_before_switch", "session_before_fork", "session_before_tree", "session_tree",
        "session_before_compact", "session_compact",
    ),
    "the host does not report its subagents": ("subagent_start", "subagent_end"),
}  # fmt: skip
UNREPORTED: Final = {name: why for why, names in _UNREPORTED.items() for name in names}
"""Hooks that a bridge fires only if its host reports more than a run, each with the reason."""


def check_versions(host: str, tested: Mapping[str, tuple[str, str]]) -> None:
    """Refuse packages of a host that are older or newer than those the bridge was tested with."""
    for package, (first, end) in tested.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "none"
        if not numbers(first) <= numbers(found) < numbers(end):
            raise BridgeError(
                f"the bridge to {host} was tested with {package} from {first} to before {end}, and "
                f"{found} is installed: pip install 'hookline[{host}]', or pass any_version=True"
            )


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version, for comparisons."""
    return tuple(int(each) for each in re.findall(r"\d+", text)[:3])

"""One turn, hook by hook: the picture of the whole, as data.

A string is a hook; a pair is a stretch with a name, a hook's or a plain one, and what happens in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

from hookline.hooks import Catalog

Step = Union[str, "tuple[str, tuple[Step, ...]]"]

TOOL_CALL: tuple[Step, ...] = (
    "tool_execution_start",
    "before_tool_call",
    "tool_call",
    "authorize_action",
    "resolve_approval",
    ("around_tool_call", ("tool_execution_update",)),
    "after_tool_call",
    "tool_result",
    "tool_execution_failure",
    "tool_execution_end",
    "tool_result_persist",
)

MODEL_TURN: tuple[Step, ...] = (
    "turn_start",
    "context",
    ("around_model_call", ("model_call", "model_result")),
    "message_start",
    "message_update",
    "message_end",
    ("each tool call", TOOL_CALL),
    "turn_end",
)

AGENT: tuple[Step, ...] = (
    "on_turn_start",
    "system_prompt",
    "bootstrap_files",
    "before_agent_start",
    "agent_start",
    ("each model turn", MODEL_TURN),
    "agent_stop",
    "agent_end",
    "on_turn_end",
)

TURN: tuple[Step, ...] = (
    "message:receive",
    "resolve_session",
    "admit_message",
    "load_state",
    "session_before_start",
    "session_start",
    "input",
    "build_prompt",
    ("run_model_stream", AGENT),
    "output",
    "save_state",
    "render_outbound",
    "dispatch_outbound",
    "message:send",
    "save_point",
    "settled",
    "session_shutdown",
)
"""Every door goes this way; after a failure inside the agent `agent_error`, then `on_error`."""


def walk(catalog: Catalog, steps: Sequence[Step] = TURN, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Yield every line of the picture with its depth; a hook that says `after=` follows that one."""
    for step in steps:
        name, inner = (step, ()) if isinstance(step, str) else step
        yield depth, name
        yield from walk(catalog, inner, depth + 1)
        yield from walk(catalog, [spec.name for spec in catalog.values() if spec.after == name], depth)

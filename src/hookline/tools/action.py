"""The action: a call as plain data, for gates, policies and records.

Everyone gets a copy: changing it does not change what runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.types import Identity

from .arguments import copied

if TYPE_CHECKING:
    from .runner import Admitted, ToolCaller


def about(admitted: Admitted, caller: ToolCaller, identity: Identity | None = None) -> dict[str, Any]:
    """Which call this is, and on whose behalf: the caller's, or that of one participant."""
    call, ctx = admitted.call, caller.ctx
    who = identity or caller.identity
    found: dict[str, Any] = {
        "tool": call.name,
        "arguments": copied(call.arguments),
        "call_id": call.id,
        "session_id": ctx.session_id,
        "agent_id": ctx.agent_id,
        "depth": ctx.depth,
        "source": caller.source,
        "channel": who.channel,
        "chat": who.chat,
        "user": who.user,
    }
    if caller.identity.others:
        found["participants"] = [one.plain() for one in caller.identity.everyone]
    return found


def describe(
    admitted: Admitted, caller: ToolCaller, identity: Identity | None = None
) -> dict[str, Any]:
    """The action that is judged, for the caller or for one participant of the turn."""
    assert admitted.tool is not None
    spec = admitted.tool.spec
    return {
        "kind": "tool.call",
        **about(admitted, caller, identity),
        "name": spec.name,
        "namespace": spec.namespace,
        "side_effects": spec.side_effects.value,
        "permissions": list(spec.permissions),
        "workspace": str(caller.workspace),
    }

"""`ApprovalDoor`: a deny that may be lifted becomes an approval, asked like that of a tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_hooks import ApprovalOutcome, ApprovalRequest, ApprovalResolution, Verdict

from hookline.hooks import Decision

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


class ApprovalDoor:
    """The approval resolver of the host."""

    def __init__(self, app: Hookline) -> None:
        self.app = app

    async def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
        """An earlier grant, or the person's answer now. No answer means no."""
        question, runner = self._question(request), self.app.runner
        ctx = self.app.context(question["session_id"])
        ruling = await runner.approve(question, runner.resolver(ctx))
        identity = request.context_identity
        if ruling.decision is Decision.ALLOW:
            return ApprovalResolution(ApprovalOutcome.APPROVE, identity, Verdict.allow())
        rejected = Verdict.deny(reason=ruling.reason or "rejected")
        return ApprovalResolution(ApprovalOutcome.REJECT, identity, rejected)

    def _question(self, request: ApprovalRequest) -> dict[str, Any]:
        """The same request that a tool call makes, whatever the point is."""
        context, verdict = request.context, request.verdict
        point = request.interception_point.value
        session_id = str(context["session"]["id"])
        identity = self.app.context(session_id).identity
        call: dict[str, Any] = context.get("tool_call") or {
            "id": f"{point}_{context['sequence']}",
            "name": f"agent_hooks.{point}",
            "args": {"target": context["target"]},
        }
        told = ": ".join(text for text in (verdict.reason, verdict.message) if text)
        return {
            "kind": f"agent_hooks.{point}",
            "tool": call["name"],
            "arguments": call["args"],
            "call_id": call["id"],
            "session_id": session_id,
            "agent_id": context["agent"]["id"],
            "depth": 0,
            "source": "agent_hooks",
            "channel": identity.channel,
            "chat": identity.chat,
            "user": identity.user,
            "workspace": str(self.app.workspace),
            "question": told or f"an interceptor asks about {point}",
        }

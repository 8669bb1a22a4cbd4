"""Recovery: the tool calls that an interrupted turn left without a result.

A call that had not started is made now. A call that may have run is made again only if that does no
harm; otherwise the model learns that it was interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.specs import SideEffects
from hookline.tools.registry import Registry
from hookline.tools.runner import Requested, ToolOutcome
from hookline.types import Message, ToolCall

from .run import AgentRun

INTERRUPTED = (
    "this call was interrupted before its result was known; it may or may not have taken effect. "
    "Check before you try again."
)


@dataclass(frozen=True, slots=True)
class OpenCalls:
    """The calls of the last answer of an interrupted turn that have no result."""

    answer: Message
    interrupted: list[ToolOutcome]
    """May have run: what the model is told."""
    again: list[Requested]
    """Are made now."""

    @classmethod
    def of(cls, run: AgentRun, tools: Registry) -> OpenCalls | None:
        """Find the open calls of a run, and drop their results from its messages."""
        cut = run.resume
        last = cut.last_message if cut else None
        if cut is None or last is None or last["role"] != "assistant" or not last.get("tool_calls"):
            return None
        calls = {call["id"]: call for call in last["tool_calls"] if call["id"] not in cut.results}
        run.messages = [m for m in run.messages if m.get("tool_call_id") not in calls]
        found = cls(last, [], [])
        for call in calls.values():
            started = call["id"] in cut.started_calls and not is_repeatable(tools, call["name"])
            if started or call.get("redacted"):  # its real arguments were not kept
                made = ToolCall(call["id"], call["name"], {}, run.ctx.agent_id, run.ctx.session_id)
                found.interrupted.append(ToolOutcome(made, INTERRUPTED, is_error=True, ran=True))
            else:
                found.again.append(Requested(call["id"], call["name"], call["arguments"]))
        return found

    async def end(self, run: AgentRun) -> bool:
        """Whether the results of the answer's calls end the run; sets its text."""
        ids = {call["id"] for call in self.answer["tool_calls"]}
        entries = await run.tape.context_entries()
        results = [
            e.payload for e in entries if e.payload.get("tool_call_id") in ids and "ran" in e.payload
        ]
        if not all(result["terminate"] for result in results):
            return False
        run.text = str(self.answer["content"]) or text_of(results[-1]["content"])
        return True


def is_repeatable(tools: Registry, name: str) -> bool:
    """Whether a tool may run twice: it only reads, or it recognises repeated calls."""
    if name not in tools:
        return False
    spec = tools.get(name).spec
    return spec.side_effects in (SideEffects.none, SideEffects.read) or bool(spec.idempotency_key)


def text_of(content: Any) -> str:
    """Return the text of a tool's result."""
    if isinstance(content, str):
        return content
    return "\n".join(str(getattr(part, "text", "")) for part in content)

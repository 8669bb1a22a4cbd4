"""Claude Code, and Codex, which took over its format with less in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from .formats import HostFormat, printed
from .moment import BLOCKED, HookOutput, Judgement, Kind, Moment
from .tools import with_text


class ClaudeCode(HostFormat):
    """The hooks of Claude Code."""

    name = "claude-code"
    title = "Claude Code"
    asks = True
    events: ClassVar[Mapping[str, Kind]] = {
        "SessionStart": "session_start",
        "SessionEnd": "session_end",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "tool_call",
        "PermissionRequest": "permission",
        "PostToolUse": "tool_result",
        "PostToolUseFailure": "tool_result",
        "Stop": "stop",
        "SubagentStart": "subagent_start",
        "SubagentStop": "subagent_stop",
        "PreCompact": "compact",
        "PostCompact": "compacted",
        "Notification": "notification",
    }

    def read(self, given: dict[str, Any], workspace: Path) -> Moment:
        """The moment that a payload reports."""
        kind = self.kind_of(given)
        session = self.string(given, "session_id")
        moment = Moment(kind, self.event_of(given), session, given=given)
        moment.model = self.string(given, "model", "")
        moment.agent = self.string(given, "agent_id", "")
        if kind in ("tool_call", "permission", "tool_result"):
            tool, values = self.string(given, "tool_name"), self.table(given, "tool_input")
            self.call(moment, tool, values, workspace)
            moment.call_id = self.string(given, "tool_use_id", "")
        if moment.event == "PostToolUseFailure":
            moment.result, moment.is_error = self.string(given, "error", ""), True
        elif kind == "tool_result":
            moment.result = self.result_text(given.get("tool_response"))
        elif kind == "prompt":
            moment.text = self.string(given, "prompt")
        elif kind in ("stop", "subagent_stop"):
            moment.text = self.string(given, "last_assistant_message", "")
            moment.again = given.get("stop_hook_active") is True
        elif kind == "notification":
            moment.text = self.string(given, "message", "")
            moment.model = self.string(given, "notification_type", "")
        elif kind == "subagent_start":
            moment.text = self.string(given, "agent_type", "")
        elif kind in ("compact", "compacted"):
            moment.text = self.string(given, "custom_instructions", "")
        elif kind in ("session_start", "session_end"):
            moment.text = self.string(given, "source" if kind == "session_start" else "reason", "")
        return moment

    def answer(self, moment: Moment, judgement: Judgement, workspace: Path) -> HookOutput:
        """A judgement as the host reads it."""
        if moment.kind == "compact" and judgement.denied:
            return self._no_compaction(judgement.reason)
        answer, special = self._decision(moment, judgement, workspace)
        if judgement.context and moment.kind in ("session_start", "prompt", "subagent_start"):
            special["additionalContext"] = judgement.context
        if special:
            answer["hookSpecificOutput"] = {"hookEventName": moment.event, **special}
        if judgement.notes:
            answer["systemMessage"] = judgement.message
        return printed(answer)

    def _decision(
        self, moment: Moment, judgement: Judgement, workspace: Path
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The general and the event's own fields of an answer."""
        special: dict[str, Any] = {}
        if moment.kind == "tool_call":
            if judgement.denied or judgement.asked:
                special["permissionDecision"] = "deny" if judgement.denied else "ask"
                special["permissionDecisionReason"] = judgement.reason
            if not judgement.denied and judgement.arguments is not None:
                special.update(self._rewritten(moment, judgement.arguments, workspace))
        elif moment.kind == "permission" and judgement.denied:
            special["decision"] = {"behavior": "deny", "message": judgement.reason}
        elif moment.kind == "tool_result" and judgement.text is not None:
            return self._result(moment, judgement.text, special), special
        elif moment.kind == "session_start" and judgement.denied:
            return {"continue": False, "stopReason": judgement.reason}, special
        elif judgement.denied:
            return {"decision": "block", "reason": judgement.reason}, special
        return {}, special

    def _rewritten(self, moment: Moment, arguments: dict[str, Any], workspace: Path) -> dict[str, Any]:
        name, given = moment.given["tool_name"], moment.given["tool_input"]
        return {"updatedInput": self.tools.theirs(name, given, arguments, workspace)}

    def _result(self, moment: Moment, text: str, special: dict[str, Any]) -> dict[str, Any]:
        """Replace a result; Claude Code cannot replace the message of a tool that failed."""
        if moment.is_error:
            special["additionalContext"] = text
        else:
            special["updatedToolOutput"] = with_text(moment.given.get("tool_response"), text)
        return {}

    def _no_compaction(self, reason: str) -> HookOutput:
        return HookOutput(stderr=f"{reason}\n", code=BLOCKED)


class Codex(ClaudeCode):
    """The hooks of Codex. A field that it does not know makes it ignore the whole answer."""

    name = "codex"
    title = "Codex"
    asks = False
    events: ClassVar[Mapping[str, Kind]] = {
        event: kind
        for event, kind in ClaudeCode.events.items()
        if event not in ("PostToolUseFailure", "Notification")
    }

    def _rewritten(self, moment: Moment, arguments: dict[str, Any], workspace: Path) -> dict[str, Any]:
        # Codex takes a new input only with this decision, which skips no approval of its own.
        return {
            "permissionDecision": "allow",
            **super()._rewritten(moment, arguments, workspace),
        }

    def _result(self, moment: Moment, text: str, special: dict[str, Any]) -> dict[str, Any]:
        """A blocked result: Codex gives the model the reason in its place."""
        return {"decision": "block", "reason": text or "(empty)"}

    def _no_compaction(self, reason: str) -> HookOutput:
        return printed({"continue": False, "stopReason": reason})

"""Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

from hookline.errors import HostPayloadError

from .formats import HostFormat, printed
from .moment import HookOutput, Judgement, Kind, Moment

_ROLES = {"model": "assistant", "user": "user", "system": "system"}


class Gemini(HostFormat):
    """The hooks of Gemini CLI. Its calls have no ids."""

    name = "gemini"
    title = "Gemini CLI"
    asks = True
    events: ClassVar[Mapping[str, Kind]] = {
        "SessionStart": "session_start",
        "SessionEnd": "session_end",
        "BeforeAgent": "prompt",
        "BeforeModel": "model_request",
        "AfterModel": "model_answer",
        "BeforeTool": "tool_call",
        "AfterTool": "tool_result",
        "AfterAgent": "stop",
        "PreCompress": "compact",
        "Notification": "notification",
    }

    def read(self, given: dict[str, Any], workspace: Path) -> Moment:
        """The moment that a payload reports."""
        kind = self.kind_of(given)
        moment = Moment(kind, self.event_of(given), self.string(given, "session_id"), given=given)
        if kind in ("tool_call", "tool_result"):
            tool, values = self.string(given, "tool_name"), self.table(given, "tool_input")
            self.call(moment, tool, values, workspace)
        if kind == "tool_result":
            response = self.table(given, "tool_response")
            moment.is_error = bool(response.get("error"))
            moment.result = self.result_text(response.get("llmContent"))
        elif kind == "prompt":
            moment.text = self.string(given, "prompt")
        elif kind == "stop":
            moment.text = self.string(given, "prompt_response", "")
            moment.again = given.get("stop_hook_active") is True
        elif kind in ("model_request", "model_answer"):
            request = self.table(given, "llm_request")
            moment.model = self.string(request, "model", "")
            moment.messages = [self._message(each) for each in self._list(request, "messages")]
            if kind == "model_answer":
                self._answer_of(moment, self.table(given, "llm_response"))
        elif kind == "notification":
            moment.text = self.string(given, "message", "")
            moment.model = self.string(given, "notification_type", "")
        elif kind in ("session_start", "session_end"):
            moment.text = self.string(given, "source" if kind == "session_start" else "reason", "")
        return moment

    def _list(self, given: dict[str, Any], key: str) -> list[Any]:
        value = given.get(key)
        if not isinstance(value, list):
            raise self._wrong(key, "a list", value)
        return cast("list[Any]", value)

    def _message(self, given: Any) -> dict[str, Any]:
        message = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or role not in _ROLES or not isinstance(content, str):
            raise HostPayloadError("a message in the payload of Gemini CLI has no role or no text")
        return {"role": _ROLES[role], "content": content}

    def _answer_of(self, moment: Moment, response: dict[str, Any]) -> None:
        """Read a piece of the model's answer; the last one says why it ends."""
        candidates = self._list(response, "candidates")
        first: Any = candidates[0] if candidates else None
        ended = cast("dict[str, Any]", first).get("finishReason") if isinstance(first, dict) else None
        moment.text = self.string(response, "text", "")
        moment.is_complete = bool(ended)

    def answer(self, moment: Moment, judgement: Judgement, workspace: Path) -> HookOutput:
        """A judgement as the host reads it."""
        answer: dict[str, Any] = {}
        special: dict[str, Any] = {}
        if judgement.notes:
            answer["systemMessage"] = judgement.message
        if judgement.denied:
            answer |= {"decision": "deny", "reason": judgement.reason}
        elif moment.kind == "tool_result" and judgement.text is not None:
            answer |= {"decision": "deny", "reason": judgement.text}
        elif judgement.asked:
            answer |= {"decision": "ask", "reason": judgement.reason, "systemMessage": judgement.reason}
        if judgement.arguments is not None and not judgement.denied:
            name, given = moment.given["tool_name"], moment.given["tool_input"]
            special["tool_input"] = self.tools.theirs(name, given, judgement.arguments, workspace)
        if judgement.messages is not None:
            back = {ours: theirs for theirs, ours in _ROLES.items()}
            special["llm_request"] = {
                **moment.given["llm_request"],
                "messages": [{**each, "role": back[each["role"]]} for each in judgement.messages],
            }
        if moment.kind == "model_answer" and judgement.text is not None:
            special["llm_response"] = self._changed(moment, judgement.text)
        if judgement.context:
            special["additionalContext"] = judgement.context
        if special:
            answer["hookSpecificOutput"] = {"hookEventName": moment.event, **special}
        return printed(answer)

    def _changed(self, moment: Moment, text: str) -> dict[str, Any]:
        response = moment.given["llm_response"]
        first, *others = response["candidates"]
        first = {**first, "content": {"role": "model", "parts": [text]}}
        return {**response, "text": text, "candidates": [first, *others]}

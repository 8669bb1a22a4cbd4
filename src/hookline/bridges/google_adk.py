"""Hookline's hooks in agents of Google's Agent Development Kit.

    from hookline.bridges.google_adk import hookline

    runner = InMemoryRunner(agent=agent, plugins=[hookline([no_sudo])])

Carried are the prompt (`input`), model calls, tool calls and their results, and the answer (`output`).
The kit reports before and after a call, so `around_tool_call` and `around_model_call` are not carried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.adk.models import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from hookline.errors import Blocked

from .bridge import Bridge, BridgeRun, HostAnswer, HostCall, HostRequest, ToolAnswer, replaced

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

AROUND = "the kit reports before and after a call, not around it"
UNREACHABLE: Final[Mapping[str, str]] = {
    "around_tool_call": AROUND,
    "around_model_call": AROUND,
    "agent_stop": "the kit has no place in which an answer can be sent back to the model",
}


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklinePlugin:
    """A plugin that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklinePlugin(Bridge(hooks, host="google-adk", unreachable=UNREACHABLE, **options))


class HooklinePlugin(BasePlugin):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(name="hookline")
        self.bridge = bridge
        self._runs: dict[str, BridgeRun] = {}
        self._calls: dict[str, HostCall] = {}
        self._answers: dict[str, str] = {}

    async def on_user_message_callback(
        self, *, invocation_context: Any, user_message: types.Content
    ) -> types.Content | None:
        """Start a run with the prompt."""
        prompt = text_of(user_message)
        run = await self.bridge.start(prompt)
        self._runs[invocation_context.invocation_id] = run
        return None if run.prompt == prompt else with_text(user_message, run.prompt)

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """Pass a tool call through its gates."""
        run = self._runs[tool_context.invocation_id]
        call = await run.admit(tool.name, tool_args, tool_context.function_call_id)
        if call.refusal is not None:
            await run.finish(call)
            return {"error": call.refusal}
        self._calls[call.id] = call
        if call.arguments != tool_args:
            tool_args.clear()
            tool_args.update(call.arguments)
        return None

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        """Pass the result of a tool call through its gates."""
        run = self._runs[tool_context.invocation_id]
        call = self._calls.pop(tool_context.function_call_id, None)
        if call is None:
            return None
        value = await run.finish(call, result)
        return {"result": str(value)} if isinstance(value, ToolAnswer) else None

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> dict[str, Any] | None:
        """Show the error of a tool to the hooks."""
        run = self._runs[tool_context.invocation_id]
        call = self._calls.pop(tool_context.function_call_id)
        return {"error": str(await run.finish(call, error=error))}

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: Any
    ) -> LlmResponse | None:
        """Pass a request to the model through its gates."""
        run = self._runs[callback_context.invocation_id]
        before = [plain_content(content) for content in llm_request.contents]
        system = system_of(llm_request)
        asked = HostRequest(list(before), llm_request.model or "", system)
        changed = await run.before_model(asked)
        if changed.messages != before:
            llm_request.contents = replaced(
                llm_request.contents, before, changed.messages, host_content
            )
        return None

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Pass an answer of the model through its gates."""
        if llm_response.partial or llm_response.content is None:
            return None
        run = self._runs[callback_context.invocation_id]
        was = answer_of(llm_response)
        answer = await run.after_model(was)
        if not was.tool_calls:
            answer.text = await self._output(run, callback_context.invocation_id, answer.text)
        if (was.text, was.tool_calls) == (answer.text, answer.tool_calls):
            return None
        kept = {call["id"] for call in answer.tool_calls}
        parts = [p for p in llm_response.content.parts or () if call_id(p) in kept]
        text = [types.Part(text=answer.text)] if answer.text else []
        content = types.Content(role="model", parts=[*text, *parts])
        return llm_response.model_copy(update={"content": content})

    async def _output(self, run: BridgeRun, invocation: str, text: str) -> str:
        """Let `output` judge the answer, which ends the run."""
        del self._runs[invocation]
        return await run.end(text)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """End the run with the error."""
        run = self._runs.pop(invocation_context.invocation_id, None)
        if run is not None and not isinstance(error, Blocked):
            await run.fail(error)


def call_id(part: types.Part) -> str | None:
    """The id of the tool call that a part is; None if it is none."""
    return None if part.function_call is None else part.function_call.id or part.function_call.name


def text_of(content: types.Content | None) -> str:
    """The text of a message."""
    parts = content.parts or () if content is not None else ()
    return "".join(part.text for part in parts if part.text and not part.thought)


def with_text(content: types.Content, text: str) -> types.Content:
    """A message with another text."""
    others = [part for part in content.parts or () if not part.text]
    return types.Content(role=content.role, parts=[types.Part(text=text), *others])


def system_of(request: Any) -> str:
    """The system instruction of a request."""
    given = getattr(request.config, "system_instruction", None)
    return given if isinstance(given, str) else ""


def answer_of(response: LlmResponse) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    assert response.content is not None
    calls = [part.function_call for part in response.content.parts or () if part.function_call]
    found = [{"id": c.id or c.name, "name": c.name, "arguments": dict(c.args or {})} for c in calls]
    return HostAnswer(text_of(response.content), found, {}, "tool_calls" if found else "stop")


def plain_content(content: types.Content) -> dict[str, Any]:
    """A message as handlers see it."""
    role = "assistant" if content.role == "model" else "user"
    found: dict[str, Any] = {"role": role, "content": text_of(content)}
    for part in content.parts or ():
        if part.function_response is not None:
            answered = part.function_response
            return {
                "role": "tool",
                "tool_call_id": answered.id or answered.name,
                "content": str(answered.response),
            }
    return found


def host_content(message: dict[str, Any]) -> types.Content:
    """A message of a handler as the kit's."""
    role = "model" if message["role"] == "assistant" else "user"
    return types.Content(role=role, parts=[types.Part(text=str(message["content"]))])

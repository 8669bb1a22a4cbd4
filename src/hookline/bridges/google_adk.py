"""Hookline's hooks in agents of Google's Agent Development Kit.

    from hookline.bridges.google_adk import hookline

    runner = InMemoryRunner(agent=agent, plugins=[hookline([no_sudo])])

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`). An answer that `agent_stop` refuses goes back to the model before the kit sees it. With
handlers that judge what the model says, a stream shows its text when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from google.adk.models import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from hookline.errors import Blocked

from .bridge import Bridge
from .reports import HostAnswer, HostCall, HostRequest, ToolAnswer, replaced
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

TESTED: Final = {"google-adk": ("2.13", "3")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklinePlugin:
    """A plugin that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklinePlugin(Bridge(hooks, host="google-adk", tested=TESTED, **options))


class HooklinePlugin(BasePlugin):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(name="hookline")
        self.bridge = bridge
        self._runs: dict[str, BridgeRun] = {}
        self._calls: dict[str, HostCall] = {}
        self._sent_back: dict[str, list[tuple[int, list[types.Content]]]] = {}
        """For each invocation, answers that were refused and why, with their place in a request."""
        self._requests: dict[str, Any] = {}

    async def _run(self, invocation: str) -> BridgeRun:
        """The run of an invocation; another one after its answer, for the next agent of a sequence."""
        if invocation not in self._runs:
            self._runs[invocation] = await self.bridge.start("")
        return self._runs[invocation]

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
        run = await self._run(tool_context.invocation_id)
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
        run = await self._run(tool_context.invocation_id)
        call = self._calls.pop(tool_context.function_call_id, None)
        if call is None:
            return None
        value = await run.finish(call, result)
        return {"result": str(value)} if isinstance(value, ToolAnswer) else None

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> dict[str, Any] | None:
        """Show the error of a tool to the hooks."""
        run = await self._run(tool_context.invocation_id)
        call = self._calls.pop(tool_context.function_call_id)
        return {"error": str(await run.finish(call, error=error))}

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: Any
    ) -> LlmResponse | None:
        """Pass a request to the model through its gates."""
        invocation = callback_context.invocation_id
        for place, contents in self._sent_back.get(invocation, ()):
            llm_request.contents[place:place] = contents
        for tool in llm_request.config.tools or ():
            if isinstance(tool, types.Tool) and not tool.function_declarations:
                name = next(iter(tool.model_dump(exclude_none=True)), "a tool of the model")
                self.bridge.out_of_reach(name, "on the servers of the model's provider")
        await self._ask(await self._run(invocation), llm_request)
        self._requests[invocation] = llm_request
        return None

    async def _ask(self, run: BridgeRun, llm_request: Any) -> None:
        before = [plain_content(content) for content in llm_request.contents]
        asked = HostRequest(list(before), llm_request.model or "", system_of(llm_request))
        changed = await run.before_model(asked)
        if changed.system != asked.system:
            llm_request.config.system_instruction = changed.system
        if changed.messages != before:
            llm_request.contents = replaced(
                llm_request.contents, before, changed.messages, host_content
            )

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Pass an answer of the model through its gates."""
        invocation = callback_context.invocation_id
        run = await self._run(invocation)
        if llm_response.partial and run.judges:
            return llm_response.model_copy(update={"content": None})
        if llm_response.partial or llm_response.content is None:
            return None
        judged = await self._judged(run, llm_response)
        while not answer_of(judged).tool_calls:
            refused = await run.refuses_to_stop(text_of(judged.content))
            if refused is None:
                del self._runs[invocation]
                return await self._output(run, judged)
            judged = await self._go_on(run, callback_context, judged, refused)
        return None if judged is llm_response else judged

    async def _judged(self, run: BridgeRun, response: LlmResponse) -> LlmResponse:
        """An answer as handlers of `model_result` left it."""
        was = answer_of(response)
        answer = await run.after_model(was)
        if (was.text, was.tool_calls) == (answer.text, answer.tool_calls):
            return response
        kept = {call["id"] for call in answer.tool_calls}
        parts = response.content.parts or () if response.content is not None else ()
        text = [types.Part(text=answer.text)] if answer.text else []
        return with_parts(response, [*text, *(p for p in parts if call_id(p) in kept)])

    async def _output(self, run: BridgeRun, response: LlmResponse) -> LlmResponse:
        """Let `output` judge the answer, which ends the run."""
        was = text_of(response.content)
        text = await run.end(was)
        return response if text == was else with_parts(response, [types.Part(text=text)])

    async def _go_on(
        self, run: BridgeRun, context: Any, response: LlmResponse, refused: str
    ) -> LlmResponse:
        """Ask the model again, with the answer that was refused and the reason."""
        request = self._requests[context.invocation_id]
        said = types.Content(role="user", parts=[types.Part(text=refused)])
        added = [response.content or types.Content(role="model"), said]
        sent_back = self._sent_back.setdefault(context.invocation_id, [])
        sent_back.append((len(request.contents), added))
        request.contents.extend(added)
        await self._ask(run, request)
        model = context._invocation_context.agent.canonical_model
        answers = [each async for each in model.generate_content_async(request)]
        return await self._judged(run, answers[-1])

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """End a run that gave no answer, for example because a tool ended it."""
        run = self._forget(invocation_context.invocation_id)
        if run is not None:
            await run.end("")

    def _forget(self, invocation: str) -> BridgeRun | None:
        self._sent_back.pop(invocation, None)
        self._requests.pop(invocation, None)
        return self._runs.pop(invocation, None)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """End the run with the error."""
        run = self._forget(invocation_context.invocation_id)
        if run is not None and not isinstance(error, Blocked):
            await run.fail(error)


def with_parts(response: LlmResponse, parts: list[types.Part]) -> LlmResponse:
    """An answer with other parts."""
    return response.model_copy(update={"content": types.Content(role="model", parts=parts)})


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
    parts = response.content.parts or () if response.content is not None else ()
    calls = [part.function_call for part in parts if part.function_call]
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

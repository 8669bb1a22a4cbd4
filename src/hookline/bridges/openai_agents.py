"""Hookline's hooks in agents of the OpenAI Agents SDK.

    from hookline.bridges.openai_agents import hookline

    runner = hookline([no_sudo])
    result = await runner.run(agent, "Tidy up.")      # or run_sync, run_streamed

`set_default_agent_runner(hookline([no_sudo]))` puts the same hooks around every `Runner.run` of a
program. Carried are the prompt (`input`), model calls, calls of function tools and their results, and
the answer (`output`). Tools that OpenAI runs on its own servers are out of reach, and are reported.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig
from agents.models.multi_provider import MultiProvider
from agents.run import AgentRunner
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from hookline.errors import Blocked

from .bridge import Bridge, BridgeRun, HostAnswer, HostRequest, ToolAnswer, replaced

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

log = logging.getLogger("hookline.bridges")

UNREACHABLE: Final[Mapping[str, str]] = {
    "agent_stop": "the SDK has no place in which an answer can be sent back to the model"
}

_RUN: ContextVar[BridgeRun] = ContextVar("hookline_openai_agents_run")


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineRunner:
    """A runner that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineRunner(Bridge(hooks, host="openai-agents", unreachable=UNREACHABLE, **options))


class HooklineRunner(AgentRunner):
    """Runs agents of the SDK with their models and tools inside the gates."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.bridge = bridge

    async def run(self, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> Any:  # noqa: A002
        """Run an agent; see `agents.Runner.run`."""
        run = await self.bridge.start(prompt_of(input))
        token = _RUN.set(run)
        try:
            asked = with_prompt(input, run.prompt)
            kwargs["run_config"] = guarded_config(kwargs.get("run_config"))
            result = await super().run(guarded(starting_agent), asked, **kwargs)
        except BaseException as error:
            await run.fail(error)
            raise
        finally:
            _RUN.reset(token)
        text = await run.end(str(result.final_output))
        if isinstance(result.final_output, str):
            result.final_output = text
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> Any:  # noqa: A002
        """Run an agent from synchronous code; see `agents.Runner.run_sync`."""
        from hookline.runtime.agent_loops import background

        return background().call(self.run(starting_agent, input, **kwargs))


def guarded(agent: Agent[Any]) -> Agent[Any]:
    """A copy of an agent whose model and tools are inside the gates, with its handoffs."""
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            log.warning("bridge.unreachable tool=%s: it runs on OpenAI's servers", tool.name)
    tools = [guarded_tool(tool) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
    handoffs = [guarded(each) if isinstance(each, Agent) else each for each in agent.handoffs]
    model = GuardedModel(agent.model) if isinstance(agent.model, Model) else agent.model
    return agent.clone(tools=tools, handoffs=handoffs, model=model)


def guarded_config(given: RunConfig | None) -> RunConfig:
    """A configuration whose models are inside the gates."""
    config = given or RunConfig()
    model = GuardedModel(config.model) if isinstance(config.model, Model) else config.model
    return replace(config, model=model, model_provider=GuardedProvider(config.model_provider))


class GuardedProvider(MultiProvider):
    """Gives the models of another provider, inside the gates."""

    def __init__(self, provider: Any) -> None:
        super().__init__()
        self._inner = provider

    def get_model(self, model_name: str | None) -> Model:
        """The model of a name."""
        return GuardedModel(self._inner.get_model(model_name))


def guarded_tool(tool: FunctionTool) -> FunctionTool:
    """A tool whose calls pass through the gates."""

    async def invoke(context: Any, text: str) -> Any:
        async def run(arguments: dict[str, Any]) -> Any:
            return await tool.on_invoke_tool(context, json.dumps(arguments))

        value = await _RUN.get().call(tool.name, text or "{}", run, context.tool_call_id)
        return str(value) if isinstance(value, ToolAnswer) else value

    return replace(tool, on_invoke_tool=invoke)


class GuardedModel(Model):
    """A model whose calls pass through the gates."""

    def __init__(self, model: Model) -> None:
        self.inner = model if not isinstance(model, GuardedModel) else model.inner

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Ask the model."""
        items = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        before = [plain_item(item) for item in items]
        made: list[ModelResponse] = []

        async def ask(request: HostRequest) -> HostAnswer:
            given = replaced(items, before, request.messages, lambda message: dict(message))
            made[:] = [await self.inner.get_response(request.system or None, given, *args, **kwargs)]
            return answer_of(made[0])

        name = getattr(self.inner, "model", type(self.inner).__name__)
        request = HostRequest(list(before), str(name), system_instructions or "")
        answer = await _RUN.get().call_model(request, ask)
        if not made:
            raise Blocked("the model call", "a handler answered in its place", None)
        return judged(made[0], answer)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Refuse: an answer would be shown before the gates judge it."""
        raise Blocked("the model call", "streaming is not carried; use run or run_sync", None)
        yield  # pragma: no cover


def judged(response: ModelResponse, answer: HostAnswer) -> ModelResponse:
    """The response with the text and the calls that the gates left."""
    was = answer_of(response)
    if (was.text, was.tool_calls) == (answer.text, answer.tool_calls):
        return response
    kept = {call["id"]: call for call in answer.tool_calls}
    output: list[Any] = []
    for item in response.output:
        if isinstance(item, ResponseFunctionToolCall):
            if item.call_id in kept:
                arguments = kept[item.call_id]["arguments"]
                text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                output.append(item.model_copy(update={"arguments": text}))
        elif not isinstance(item, ResponseOutputMessage):
            output.append(item)
    if answer.text:
        text = ResponseOutputText(annotations=[], text=answer.text, type="output_text")
        message = ResponseOutputMessage(
            id="msg", content=[text], role="assistant", status="completed", type="message"
        )
        output.insert(0, message)
    return replace(response, output=output)


def answer_of(response: ModelResponse) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in response.output:
        if isinstance(item, ResponseFunctionToolCall):
            calls.append({"id": item.call_id, "name": item.name, "arguments": item.arguments})
        elif isinstance(item, ResponseOutputMessage):
            texts += [c.text for c in item.content if isinstance(c, ResponseOutputText)]
    used = response.usage
    usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    return HostAnswer("".join(texts), calls, usage, "tool_calls" if calls else "stop")


def plain_item(item: Any) -> dict[str, Any]:
    """An item of the conversation as handlers see it."""
    kind = item.get("type", "message")
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": str(item["output"])}
    if kind == "function_call":
        call = {"id": item["call_id"], "name": item["name"], "arguments": item["arguments"]}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    content = item.get("content", "")
    if not isinstance(content, str):
        content = "".join(part.get("text", "") for part in content)
    return {"role": item.get("role", kind), "content": content}


def prompt_of(given: Any) -> str:
    """The last text of the user."""
    if isinstance(given, str):
        return given
    said = [plain_item(item) for item in given]
    return next((m["content"] for m in reversed(said) if m["role"] == "user"), "")


def with_prompt(given: Any, prompt: str) -> Any:
    """The input with another last text of the user."""
    if isinstance(given, str):
        return prompt
    items = list(given)
    for place in range(len(items) - 1, -1, -1):
        if plain_item(items[place])["role"] == "user":
            if plain_item(items[place])["content"] != prompt:
                items[place] = {"role": "user", "content": prompt}
            break
    return items

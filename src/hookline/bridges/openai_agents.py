"""Hookline's hooks in agents of the OpenAI Agents SDK.

    from hookline.bridges.openai_agents import hookline

    runner = hookline([no_sudo])
    result = await runner.run(agent, "Tidy up.")      # or run_sync, run_streamed

`set_default_agent_runner(hookline([no_sudo]))` puts the same hooks around every `Runner.run` of a
program. Carried are the prompt (`input`), model calls, calls of function tools and their results,
`agent_stop` and the answer (`output`). With handlers that judge what the model says, a stream shows its
text when it is complete. Tools that OpenAI runs on its own servers are out of reach, and are reported.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, RunState
from agents.models.multi_provider import MultiProvider
from agents.run import AgentRunner
from agents.tool import (
    set_function_tool_failure_error_function,
    with_function_tool_failure_error_handler,
)
from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from hookline.errors import Blocked, BridgeError
from hookline.runtime.agent_loops import background

from .bridge import Bridge
from .reports import HostAnswer, HostRequest, ToolAnswer, replaced
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

_RUN: ContextVar[BridgeRun] = ContextVar("hookline_openai_agents_run")

TESTED: Final = {"openai-agents": ("0.24", "1")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineRunner:
    """A runner that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineRunner(Bridge(hooks, host="openai-agents", tested=TESTED, **options))


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
            agent = guarded(starting_agent, self.bridge)
            result = await super().run(agent, asked, **kwargs)
            while refused := await run.refuses_to_stop(str(result.final_output)):
                asked = continued(result, refused, kwargs)
                result = await super().run(result.last_agent, asked, **kwargs)
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
        return background().call(self.run(starting_agent, input, **kwargs))

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> Any:  # noqa: A002
        """Run an agent and stream what happens; see `agents.Runner.run_streamed`."""
        if self.bridge.hooks["agent_stop"].count():
            raise BridgeError("a streamed run cannot be sent back by agent_stop; use run()")
        run = self.bridge.start_sync(prompt_of(input))
        token = _RUN.set(run)
        try:
            kwargs["run_config"] = guarded_config(kwargs.get("run_config"))
            asked = with_prompt(input, run.prompt)
            result = super().run_streamed(guarded(starting_agent, self.bridge), asked, **kwargs)
        finally:
            _RUN.reset(token)
        return JudgedStream(run, result)


class JudgedStream:
    """The result of a streamed run. What it has besides the events is that of the SDK's own result."""

    def __init__(self, run: BridgeRun, result: Any) -> None:
        self._run, self._result = run, result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    async def stream_events(self) -> AsyncIterator[Any]:
        """The events; if `output` judges the answer, they come after that."""
        held: list[Any] = []
        hold = bool(self._run.judges)
        try:
            async for event in self._result.stream_events():
                if hold:
                    held.append(event)
                else:
                    yield event
        except BaseException as error:
            await self._run.fail(error)
            raise
        said = self._result.final_output
        text = await self._run.end(str(said))
        if isinstance(said, str) and text != said:
            self._result.final_output = text
            held = [event for event in held if not shows_text(event)]
        for event in held:
            yield event


def shows_text(event: Any) -> bool:
    """Whether an event has text of the model."""
    return event.type == "raw_response_event" or getattr(event, "name", "") == "message_output_created"


def continued(result: Any, refused: str, options: dict[str, Any]) -> Any:
    """The input with which an agent goes on after it may not stop yet."""
    said = {"role": "user", "content": refused}
    if options.get("session") is not None or options.get("conversation_id") is not None:
        return [said]
    if options.get("previous_response_id") is not None:
        options["previous_response_id"] = result.last_response_id
        return [said]
    return [*result.to_input_list(), said]


def guarded(agent: Agent[Any], bridge: Bridge) -> Agent[Any]:
    """A copy of an agent whose model and tools are inside the gates, with its handoffs."""
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            bridge.out_of_reach(tool.name, "on OpenAI's servers or in the SDK")
    tools = [guarded_tool(tool) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
    handoffs = [guarded(each, bridge) if isinstance(each, Agent) else each for each in agent.handoffs]
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
    raising = set_function_tool_failure_error_function(copy(tool), None)

    async def invoke(context: Any, text: str) -> Any:
        failed: list[Exception] = []

        async def run(arguments: dict[str, Any]) -> Any:
            try:
                return await raising.on_invoke_tool(context, json.dumps(arguments))
            except Exception as error:
                failed.append(error)
                raise

        value = await _RUN.get().call(tool.name, text or "{}", run, context.tool_call_id)
        if failed and str(failed[0]) in str(value):  # the tool's own way to show an error
            raise failed[0]
        return str(value) if isinstance(value, ToolAnswer) else value

    made = copy(tool)
    made.on_invoke_tool = with_function_tool_failure_error_handler(invoke, lambda *_: None)
    return copy(made)  # a copy binds the handler of errors to itself


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
        items, before = plain_input(input)
        made: list[ModelResponse] = []

        async def ask(request: HostRequest) -> HostAnswer:
            given = replaced(items, before, request.messages, dict)
            made[:] = [await self.inner.get_response(request.system or None, given, *args, **kwargs)]
            return answer_of(made[0].output, made[0].usage)

        request = HostRequest(list(before), self._name, system_instructions or "")
        answer = await _RUN.get().call_model(request, ask)
        if not made:
            raise Blocked("the model call", "a handler answered in its place", None)
        return replace(made[0], output=judged(made[0].output, answer))

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Ask the model, and stream its answer unless handlers judge it."""
        items, before = plain_input(input)
        done: list[ResponseCompletedEvent] = []

        def source(request: HostRequest) -> AsyncIterator[Any]:
            given = replaced(items, before, request.messages, dict)
            return self.inner.stream_response(request.system or None, given, *args, **kwargs)

        def answer_from(events: list[Any]) -> HostAnswer:
            done[:] = [event for event in events if isinstance(event, ResponseCompletedEvent)]
            return answer_of(done[-1].response.output, done[-1].response.usage)

        run = _RUN.get()
        request = HostRequest(list(before), self._name, system_instructions or "")
        async for event in run.stream_model(request, source, answer_from):
            if not isinstance(event, HostAnswer):
                yield event
            elif not done:
                raise Blocked("the model call", "a handler answered in its place", None)
            elif run.judges:
                output = judged(done[-1].response.output, event)
                response = done[-1].response.model_copy(update={"output": output})
                yield done[-1].model_copy(update={"response": response})

    @property
    def _name(self) -> str:
        return str(getattr(self.inner, "model", type(self.inner).__name__))


def plain_input(given: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """The items of an input, and as handlers see them."""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    return items, [plain_item(item) for item in items]


def judged(was: list[Any], answer: HostAnswer) -> list[Any]:
    """The items of an answer with the text and the calls that the gates left."""
    before = answer_of(was, None)
    if (before.text, before.tool_calls) == (answer.text, answer.tool_calls):
        return was
    kept = {call["id"]: call for call in answer.tool_calls}
    output: list[Any] = []
    for item in was:
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
    return output


def answer_of(output: list[Any], used: Any) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in output:
        if isinstance(item, ResponseFunctionToolCall):
            calls.append({"id": item.call_id, "name": item.name, "arguments": item.arguments})
        elif isinstance(item, ResponseOutputMessage):
            texts += [c.text for c in item.content if isinstance(c, ResponseOutputText)]
    names = ("input_tokens", "output_tokens")
    usage = {name: getattr(used, name) for name in names} if used is not None else {}
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
    if isinstance(given, RunState):  # a run that goes on after an approval
        return ""
    said = [plain_item(item) for item in given]
    return next((m["content"] for m in reversed(said) if m["role"] == "user"), "")


def with_prompt(given: Any, prompt: str) -> Any:
    """The input with another last text of the user."""
    if isinstance(given, str):
        return prompt
    if isinstance(given, RunState):
        return given
    items = list(given)
    for place in range(len(items) - 1, -1, -1):
        if plain_item(items[place])["role"] == "user":
            if plain_item(items[place])["content"] != prompt:
                items[place] = {"role": "user", "content": prompt}
            break
    return items

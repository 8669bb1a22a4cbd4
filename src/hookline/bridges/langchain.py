"""Hookline's hooks in agents of LangChain and LangGraph.

    from hookline.bridges.langchain import hookline

    agent = create_agent(model, tools, middleware=[hookline([no_sudo])])

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`), in `invoke`, `ainvoke`, `stream` and `astream`. A prompt, request or answer that a handler
blocks raises `Blocked`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
    hook_config,
)
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from .bridge import Bridge, BridgeRun, HostAnswer, HostRequest, ToolAnswer, replaced

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks


class HooklineState(AgentState[Any]):
    """The state of a guarded agent: it also names the run of the bridge."""

    hookline_run: NotRequired[Annotated[str, PrivateStateAttr]]


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineMiddleware:
    """Middleware that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineMiddleware(Bridge(hooks, host="langchain", **options))


class HooklineMiddleware(AgentMiddleware[HooklineState, Any]):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    state_schema = HooklineState

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.bridge = bridge
        self._runs: dict[str, BridgeRun] = {}

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Start a run with the prompt."""
        return self._started(self.bridge.start_sync(prompt_of(state)), state)

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Start a run with the prompt."""
        return self._started(await self.bridge.start(prompt_of(state)), state)

    def _started(self, run: BridgeRun, state: Any) -> dict[str, Any]:
        self._runs[run.session] = run
        update: dict[str, Any] = {"hookline_run": run.session}
        said = last(state["messages"], HumanMessage)
        if said is not None and run.prompt != said.text:
            update["messages"] = [HumanMessage(run.prompt, id=said.id)]
        return update

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[Any], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Pass a model call through its hooks."""
        run = self._runs[request.state["hookline_run"]]
        call = ModelCallOf(request, run.in_thread(handler))
        return run.sync(call.through(run))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Pass a model call through its hooks."""
        run = self._runs[request.state["hookline_run"]]
        return await ModelCallOf(request, handler).through(run)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[Any], Any]) -> Any:
        """Pass a tool call and its result through their gates."""
        run = self._runs[request.state["hookline_run"]]
        return run.sync(through_gates(run, request, run.in_thread(handler)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """Pass a tool call and its result through their gates."""
        return await through_gates(self._runs[request.state["hookline_run"]], request, handler)

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Let `agent_stop` and `output` judge the answer."""
        run = self._runs[state["hookline_run"]]
        return run.sync(self._ended(run, state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Let `agent_stop` and `output` judge the answer."""
        return await self._ended(self._runs[state["hookline_run"]], state)

    async def _ended(self, run: BridgeRun, state: Any) -> dict[str, Any] | None:
        answer = last(state["messages"], AIMessage) or AIMessage("")
        refused = await run.refuses_to_stop(answer.text)
        if refused is not None:
            return {"messages": [HumanMessage(refused)], "jump_to": "model"}
        del self._runs[run.session]
        text = await run.end(answer.text)
        return None if text == answer.text else {"messages": [AIMessage(text, id=answer.id)]}


class ModelCallOf:
    """One model call of LangChain, in the terms of a bridge."""

    def __init__(
        self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[ModelResponse[Any]]]
    ) -> None:
        self.request, self.handler = request, handler
        self.before = [plain_message(message) for message in request.messages]
        self.response: ModelResponse[Any] | None = None

    async def through(self, run: BridgeRun) -> ModelResponse[Any]:
        """Send the request, and return the response that the gates left."""
        system = self.request.system_message
        name = getattr(self.request.model, "model_name", None) or type(self.request.model).__name__
        asked = HostRequest(list(self.before), name, system.text if system is not None else "")
        try:
            answer = await run.call_model(asked, self.ask)
        except Exception as error:
            await run.fail(error)
            raise
        return self.judged(answer)

    async def ask(self, asked: HostRequest) -> HostAnswer:
        """Send the request as handlers left it to the model."""
        messages = replaced(self.request.messages, self.before, asked.messages, host_message)
        changed = self.request.override(messages=messages)
        system = self.request.system_message
        if asked.system != (system.text if system is not None else ""):
            changed = changed.override(system_message=SystemMessage(asked.system))
        self.response = await self.handler(changed)
        return answer_of(last(self.response.result, AIMessage))

    def judged(self, answer: HostAnswer) -> ModelResponse[Any]:
        """The response, with the answer as the gates left it."""
        said = last(self.response.result, AIMessage) if self.response is not None else None
        if self.response is not None and said is not None:
            was = answer_of(said)
            if (was.text, was.tool_calls) == (answer.text, answer.tool_calls):
                return self.response
        calls = [{"id": c["id"], "name": c["name"], "args": c["arguments"]} for c in answer.tool_calls]
        made = AIMessage(answer.text, tool_calls=calls, id=said.id if said is not None else None)
        return ModelResponse(result=[made])


async def through_gates(
    run: BridgeRun, request: ToolCallRequest, handler: Callable[[Any], Awaitable[Any]]
) -> Any:
    """Pass a tool call and its result through their gates."""
    call = request.tool_call
    made: list[Any] = []

    async def invoke(arguments: dict[str, Any]) -> Any:
        made[:] = [await handler(request.override(tool_call={**call, "args": arguments}))]
        return made[0].content if isinstance(made[0], ToolMessage) else made[0]

    value = await run.call(call["name"], call["args"], invoke, call["id"])
    if isinstance(value, ToolAnswer):
        status = "error" if value.is_error else "success"
        return ToolMessage(str(value), tool_call_id=call["id"], name=call["name"], status=status)
    return made[0]


def prompt_of(state: Any) -> str:
    """The text of the last message of the user."""
    said = last(state["messages"], HumanMessage)
    return said.text if said is not None else ""


def last(messages: Sequence[Any], kind: type[Any]) -> Any:
    """The last message of a kind, or None."""
    return next((message for message in reversed(messages) if isinstance(message, kind)), None)


def answer_of(message: AIMessage | None) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    if message is None:
        return HostAnswer()
    calls = [{"id": c["id"], "name": c["name"], "arguments": c["args"]} for c in message.tool_calls]
    used = message.usage_metadata or {}
    usage = {name: used[name] for name in ("input_tokens", "output_tokens") if name in used}
    return HostAnswer(message.text, calls, usage, "tool_calls" if calls else "stop")


def plain_message(message: AnyMessage) -> dict[str, Any]:
    """A message as handlers see it."""
    role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    found: dict[str, Any] = {"role": role, "content": message.text}
    if isinstance(message, AIMessage) and message.tool_calls:
        found["tool_calls"] = answer_of(message).tool_calls
    if isinstance(message, ToolMessage):
        found |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return found


def host_message(message: dict[str, Any]) -> AnyMessage:
    """A message of a handler as LangChain's."""
    plain = dict(message)
    calls = plain.pop("tool_calls", ())
    made = convert_to_messages([plain])[0]
    if isinstance(made, AIMessage):
        made.tool_calls = [{"id": c["id"], "name": c["name"], "args": c["arguments"]} for c in calls]
    return made

"""Hookline's hooks in agents of LangChain and LangGraph.

    from hookline.bridges.langchain import hookline

    agent = create_agent(model, tools, middleware=[hookline([no_sudo])])

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`), in `invoke`, `ainvoke`, `stream` and `astream`. A prompt, request or answer that a handler
blocks raises `Blocked`. An answer without tool calls is judged when the model has given it, before the
graph sees it; with handlers that judge what the model says, a stream shows text that is complete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from .bridge import Bridge
from .reports import HostAnswer, HostRequest, ToolAnswer, replaced
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks


class HooklineState(AgentState[Any]):
    """The state of a guarded agent: it also names the run of the bridge."""

    hookline_run: NotRequired[Annotated[str, PrivateStateAttr]]


TESTED: Final = {"langchain": ("1.4", "2")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineMiddleware:
    """Middleware that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineMiddleware(Bridge(hooks, host="langchain", tested=TESTED, **options))


class HooklineMiddleware(AgentMiddleware[HooklineState, Any]):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    state_schema = HooklineState

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.bridge = bridge
        self._runs: dict[str, BridgeRun] = {}
        self._silenced: tuple[Any, Any] | None = None

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
        """Pass a model call, and the answer if it is the last one, through their hooks."""
        run = self._run(request.state) or self._begin(self.bridge.start_sync(""), request.state)
        return run.sync(self._answered(run, request, run.in_thread(handler)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Pass a model call, and the answer if it is the last one, through their hooks."""
        run = self._run(request.state) or self._begin(await self.bridge.start(""), request.state)
        return await self._answered(run, request, handler)

    def _run(self, state: Any) -> BridgeRun | None:
        """The run of an agent; None after its answer, if another middleware lets it go on."""
        return self._runs.get(state["hookline_run"])

    def _begin(self, run: BridgeRun, state: Any) -> BridgeRun:
        self._runs[state["hookline_run"]] = run
        return run

    async def _answered(
        self, run: BridgeRun, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[Any]]
    ) -> ModelResponse[Any]:
        """Call the model until `agent_stop` accepts its answer, and let `output` judge that."""
        for tool in request.tools:
            if isinstance(tool, dict):
                name = str(tool.get("name") or tool.get("type"))
                self.bridge.out_of_reach(name, "on the servers of the model's provider")
        if run.judges:  # no token may be shown before
            request = request.override(model=self._silent(request.model))
        before: list[AnyMessage] = []
        try:
            while True:
                response = await ModelCallOf(request, handler).through(run)
                answer = last(response.result, AIMessage)
                if answer is None or answer.tool_calls:
                    return replace(response, result=[*before, *response.result])
                refused = await run.refuses_to_stop(answer.text)
                if refused is None:
                    break
                said = [*response.result, HumanMessage(refused)]
                before += said
                request = request.override(messages=[*request.messages, *said])
        except BaseException as error:
            self._runs.pop(request.state["hookline_run"], None)
            await run.fail(error)
            raise
        del self._runs[request.state["hookline_run"]]
        text = await run.end(answer.text)
        kept = [each for each in response.result if each is not answer]
        judged = answer if text == answer.text else AIMessage(text, id=answer.id)
        return replace(response, result=[*before, *kept, judged])

    def _silent(self, model: Any) -> Any:
        """A copy of a model whose tokens LangGraph does not stream, kept for the next call."""
        if self._silenced is None or self._silenced[0] is not model:
            tags = [*(model.tags or ()), "nostream"]
            self._silenced = (model, model.model_copy(update={"tags": tags}))
        return self._silenced[1]

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[Any], Any]) -> Any:
        """Pass a tool call and its result through their gates."""
        run = self._runs[request.state["hookline_run"]]
        return run.sync(through_gates(run, request, run.in_thread(handler)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """Pass a tool call and its result through their gates."""
        return await through_gates(self._runs[request.state["hookline_run"]], request, handler)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End a run whose agent stopped without an answer, for example after a tool."""
        run = self._run(state)
        return None if run is None else run.sync(self._ended(run, state))

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End a run whose agent stopped without an answer, for example after a tool."""
        run = self._run(state)
        return None if run is None else await self._ended(run, state)

    async def _ended(self, run: BridgeRun, state: Any) -> dict[str, Any] | None:
        del self._runs[state["hookline_run"]]
        said = state["messages"][-1]
        text = await run.end(said.text)
        return None if text == said.text else {"messages": [said.model_copy(update={"content": text})]}


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
        return self.judged(await run.call_model(asked, self.ask))

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

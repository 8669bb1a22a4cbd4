"""Hookline's hooks in agents of Strands.

    from hookline.bridges.strands import hookline

    agent = Agent(model=model, tools=tools, hooks=[hookline([no_sudo])])

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`). A prompt, request or answer that a handler blocks raises `Blocked`. With handlers that judge
what the model says, `stream_async` shows its text when it is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)
from strands.middleware import InvokeModelContext, InvokeModelStage
from strands.types.events import ModelStopReason

from .bridge import Bridge
from .reports import HostAnswer, HostCall, HostRequest, ToolAnswer, replaced
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

PLACE: Final = "hookline_run"
"""Where the state of an invocation names its run."""
REFUSED: Final = "hookline_refused"
"""Where it has the reason why the agent may not stop."""

TESTED: Final = {"strands-agents": ("1.62", "2")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineProvider:
    """A hook provider that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineProvider(Bridge(hooks, host="strands", tested=TESTED, **options))


class HooklineProvider(HookProvider):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._calls: dict[str, HostCall] = {}

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Attach to the events of an agent."""
        registry.add_callback(AgentInitializedEvent, self.attach)
        registry.add_callback(BeforeInvocationEvent, self.start)
        registry.add_callback(BeforeToolCallEvent, self.admit)
        registry.add_callback(AfterToolCallEvent, self.finish)
        registry.add_callback(AfterInvocationEvent, self.end)

    def attach(self, event: AgentInitializedEvent[Any]) -> None:
        """Wrap the model calls of an agent."""
        event.agent.add_middleware(InvokeModelStage, self.call_model)

    async def call_model(
        self, context: InvokeModelContext, call_next: Callable[[InvokeModelContext], Any]
    ) -> AsyncIterator[Any]:
        """Pass a model call through its hooks."""
        run: BridgeRun = context.invocation_state[PLACE]
        originals = apart(context.messages)
        before = [plain_message(message) for message in originals]
        system = context.system_prompt if isinstance(context.system_prompt, str) else ""
        stopped: list[ModelStopReason] = []

        def source(request: HostRequest) -> AsyncIterator[Any]:
            messages = replaced(originals, before, request.messages, host_message)
            changed = context.replace(messages=together(messages))
            if request.system != system:
                changed = changed.replace(system_prompt=request.system)
            return call_next(changed)

        def answer_of(events: list[Any]) -> HostAnswer:
            stopped[:] = [event for event in events if isinstance(event, ModelStopReason)]
            return plain_answer(stopped[-1].message, stopped[-1].usage)

        name = str(context.model.get_config().get("model_id", ""))
        request = HostRequest(list(before), name, system)
        async for event in run.stream_model(request, source, answer_of):
            if not isinstance(event, HostAnswer):
                yield event
                continue
            if run.judges and not event.tool_calls:
                await self._judge(run, event, context.invocation_state)
            yield judged(stopped, event)

    async def _judge(self, run: BridgeRun, answer: HostAnswer, state: dict[str, Any]) -> None:
        """Let `agent_stop` and `output` judge an answer before Strands shows it."""
        state[REFUSED] = await run.refuses_to_stop(answer.text)
        if state[REFUSED] is None:
            del state[PLACE]
            answer.text = await run.end(answer.text)

    async def start(self, event: BeforeInvocationEvent) -> None:
        """Start a run with the prompt."""
        if PLACE in event.invocation_state:  # continued after a refusal to stop
            return
        said = event.messages[-1] if event.messages else {"role": "user", "content": []}
        prompt = text_of(said)
        run = await self.bridge.start(prompt)
        event.invocation_state[PLACE] = run
        if run.prompt != prompt and event.messages:
            changed = {**said, "content": [{"text": run.prompt}, *others(said)]}
            event.messages = [*event.messages[:-1], changed]

    async def admit(self, event: BeforeToolCallEvent) -> None:
        """Pass a tool call through its gates."""
        run: BridgeRun = event.invocation_state[PLACE]
        use = event.tool_use
        call = await run.admit(use["name"], use["input"], use["toolUseId"])
        self._calls[call.id] = call
        if call.refusal is not None:
            event.cancel_tool = call.refusal
        elif call.arguments != use["input"]:
            event.tool_use = {**use, "input": call.arguments}

    async def finish(self, event: AfterToolCallEvent) -> None:
        """Pass the result of a tool call through its gates."""
        run: BridgeRun = event.invocation_state[PLACE]
        call = self._calls.pop(event.tool_use["toolUseId"])
        shown = text_of(event.result)
        failed = event.result["status"] == "error" and call.refusal is None
        error = RuntimeError(shown) if failed else None
        value = await run.finish(call, shown, error)
        if isinstance(value, ToolAnswer) and str(value) != shown and call.refusal is None:
            status = "error" if value.is_error else "success"
            content = [{"text": str(value)}]
            event.result = {**event.result, "status": status, "content": content}

    async def end(self, event: AfterInvocationEvent) -> None:
        """End a run whose answer no handler judges, or send the agent back to work."""
        run: BridgeRun | None = event.invocation_state.get(PLACE)
        if run is None:
            return
        refused = event.invocation_state.pop(REFUSED, None)
        if refused is not None:
            event.resume = refused
            return
        del event.invocation_state[PLACE]
        task = asyncio.current_task()
        if event.result is not None:
            await run.end(text_of(event.result.message))
        elif task is not None and task.cancelling():
            await run.fail(asyncio.CancelledError())
        else:
            await run.fail(RuntimeError("the agent failed"))


def judged(stopped: list[ModelStopReason], answer: HostAnswer) -> ModelStopReason:
    """The end of a model call, with the answer that the gates left."""
    usage: Any = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    if stopped:
        was = plain_answer(stopped[-1].message, {})
        if (was.text, was.tool_calls) == (answer.text, answer.tool_calls):
            return stopped[-1]
        usage = stopped[-1].usage
    uses = [
        {"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": call["arguments"]}}
        for call in answer.tool_calls
    ]
    content: Any = [*([{"text": answer.text}] if answer.text or not uses else ()), *uses]
    return ModelStopReason(
        stop_reason="tool_use" if uses else "end_turn",
        message={"role": "assistant", "content": content},
        usage=usage,
        metrics={"latencyMs": 0},
    )


def plain_answer(message: Mapping[str, Any], used: Mapping[str, Any]) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    calls = [{"id": u["toolUseId"], "name": u["name"], "arguments": u["input"]} for u in uses]
    names = {"inputTokens": "input_tokens", "outputTokens": "output_tokens"}
    usage = {ours: used[theirs] for theirs, ours in names.items() if theirs in used}
    return HostAnswer(text_of(message), calls, usage, "tool_calls" if calls else "stop")


def apart(messages: Iterable[Any]) -> list[Any]:
    """Messages with one tool result each; Strands puts those of one answer together."""
    found: list[Any] = []
    for message in messages:
        results = [block for block in message["content"] if "toolResult" in block]
        if len(results) == len(message["content"]):
            found.extend({**message, "content": [block]} for block in results)
        else:
            found.append(message)
    return found


def together(messages: Iterable[Any]) -> list[Any]:
    """Messages with the tool results that follow each other in one."""
    found: list[Any] = []
    for message in messages:
        results = all("toolResult" in block for block in message["content"])
        if found and results and "toolResult" in found[-1]["content"][0]:
            found[-1] = {**found[-1], "content": [*found[-1]["content"], *message["content"]]}
        else:
            found.append(message)
    return found


def plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as handlers see it."""
    for block in message["content"]:
        if "toolResult" in block:
            result = block["toolResult"]
            content = text_of(result)
            return {"role": "tool", "tool_call_id": result["toolUseId"], "content": content}
    answer = plain_answer(message, {})
    found: dict[str, Any] = {"role": message["role"], "content": answer.text}
    return found | ({"tool_calls": answer.tool_calls} if answer.tool_calls else {})


def host_message(message: dict[str, Any]) -> Any:
    """A message of a handler as Strands'."""
    text = [{"text": str(message["content"])}]
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": text}
        return {"role": "user", "content": [{"toolResult": result}]}
    uses = [
        {"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": call["arguments"]}}
        for call in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "content": [*(text if message["content"] else ()), *uses]}


def text_of(message: Mapping[str, Any]) -> str:
    """The text in the content of a message or a result."""
    return "".join(block["text"] for block in message["content"] if "text" in block)


def others(message: Mapping[str, Any]) -> list[Any]:
    """The blocks of a message that are not text."""
    return [block for block in message["content"] if "text" not in block]

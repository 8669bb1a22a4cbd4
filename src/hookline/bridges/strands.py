"""Hookline's hooks in agents of Strands.

    from hookline.bridges.strands import hookline

    agent = Agent(model=model, tools=tools, hooks=[hookline([no_sudo])])

Carried are the prompt (`input`), tool calls and their results, `agent_stop` and the answer (`output`).
Strands shows model calls to hooks and lets them stop one, but not change it. A prompt or an answer that
a handler blocks raises `Blocked`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)

from .bridge import Bridge, BridgeRun, HostCall, ToolAnswer

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

PLACE: Final = "hookline_run"
"""Where the state of an invocation names its run."""
NO_MODEL = "Strands lets hooks stop a model call, but not change its messages or its answer"
UNREACHABLE: Final[Mapping[str, str]] = {
    "context": NO_MODEL, "around_model_call": NO_MODEL, "model_call": NO_MODEL,
    "model_result": NO_MODEL,
    "around_tool_call": "Strands reports before and after a tool, not around it",
}  # fmt: skip


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineProvider:
    """A hook provider that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineProvider(Bridge(hooks, host="strands", unreachable=UNREACHABLE, **options))


class HooklineProvider(HookProvider):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._calls: dict[str, HostCall] = {}

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Attach to the events of an agent."""
        registry.add_callback(BeforeInvocationEvent, self.start)
        registry.add_callback(BeforeToolCallEvent, self.admit)
        registry.add_callback(AfterToolCallEvent, self.finish)
        registry.add_callback(AfterInvocationEvent, self.end)

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
        """Let `agent_stop` and `output` judge the answer."""
        run: BridgeRun | None = event.invocation_state.get(PLACE)
        if run is None:
            return
        if event.result is None:
            await run.fail(RuntimeError("the agent failed"))
            return
        message = event.result.message
        text = text_of(message)
        refused = await run.refuses_to_stop(text)
        if refused is not None:
            event.resume = refused
            return
        del event.invocation_state[PLACE]
        judged = await run.end(text)
        if judged != text:
            message["content"][:] = [{"text": judged}, *others(message)]


def text_of(message: Mapping[str, Any]) -> str:
    """The text in the content of a message or a result."""
    return "".join(block["text"] for block in message["content"] if "text" in block)


def others(message: Mapping[str, Any]) -> list[Any]:
    """The blocks of a message that are not text."""
    return [block for block in message["content"] if "text" not in block]

"""Hook providers and plugins of Strands as a plugin: their hooks before and after tools."""

from __future__ import annotations

from typing import Any, Final

from strands.hooks import (
    AfterToolCallEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)
from strands.plugins import Plugin

from hookline.errors import BridgeError
from hookline.events import ModelCallEvent, ToolCallEvent, ToolResultEvent
from hookline.hooks import hookimpl

from . import refuse


def mount(provider: Any) -> object:
    """Mount a hook provider that touches only tools, or stops model calls."""
    registry = HookRegistry()
    if isinstance(provider, Plugin):
        if provider.tools:
            raise refuse(provider, "it brings tools, which an agent of Strands runs")
        if type(provider).init_agent is not Plugin.init_agent:
            raise refuse(provider, "it sets up an agent of Strands")
        for hook in provider.hooks:
            for kind in getattr(hook, "_hook_event_types", ()):
                registry.add_callback(kind, hook)
    elif isinstance(provider, HookProvider):
        registry.add_hook(provider)
    else:
        raise refuse(provider, "it is neither a HookProvider nor a Plugin of Strands")
    used = {*registry._registered_callbacks}
    if others := sorted(kind.__name__ for kind in used - PARTS.keys()):
        raise refuse(provider, f"it handles {', '.join(others)}, which need an agent of Strands")
    if not used:
        raise refuse(provider, "it handles no event of a tool")
    parts = tuple(part for kind, part in PARTS.items() if kind in used)
    return type("MountedProvider", parts, {"__slots__": ()})(registry, type(provider).__name__)


class NoAgent:
    """Stands for the agent of an event; there is none."""

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        raise BridgeError(f"{self._provider} uses {name!r} of an agent of Strands; there is none here")


class ProviderPart:
    """What the parts of a mounted provider have in common."""

    def __init__(self, registry: HookRegistry, provider: str) -> None:
        self.registry, self.agent = registry, NoAgent(provider)

    def _use(self, event: ToolCallEvent | ToolResultEvent) -> Any:
        return {
            "name": event.tool_name,
            "toolUseId": event.tool_call_id,
            "input": dict(event.input),
        }


class BeforeToolCall(ProviderPart):
    """`BeforeToolCallEvent`."""

    @hookimpl(guard=True)
    async def tool_call(self, event: ToolCallEvent) -> Any:
        """Cancel a call, change its input, or ask about it."""
        made: Any = BeforeToolCallEvent(
            agent=self.agent,  # pyright: ignore
            selected_tool=None,
            tool_use=self._use(event),
            invocation_state={},
        )
        made, interrupts = await self.registry.invoke_callbacks_async(made)
        if made.cancel_tool:
            return event.deny(made.cancel_tool if isinstance(made.cancel_tool, str) else "cancelled")
        if interrupts:
            return event.ask(str(interrupts[0].reason or interrupts[0].name))
        if made.tool_use["name"] != event.tool_name or made.selected_tool is not None:
            raise BridgeError("a mounted provider cannot select another tool")
        changed = made.tool_use["input"]
        return None if changed == event.input else event.replace(input=changed)


class AfterToolCall(ProviderPart):
    """`AfterToolCallEvent`."""

    @hookimpl(guard=True)
    async def tool_result(self, event: ToolResultEvent) -> Any:
        """Change a result."""
        before = {
            "toolUseId": event.tool_call_id,
            "status": "error" if event.is_error else "success",
            "content": [{"text": str(event.content)}],
        }
        made: Any = AfterToolCallEvent(
            agent=self.agent,  # pyright: ignore
            selected_tool=None,
            tool_use=self._use(event),
            invocation_state={},
            result=before,  # pyright: ignore
        )
        made, _ = await self.registry.invoke_callbacks_async(made)
        if made.retry:
            raise BridgeError("a mounted provider cannot run a tool again")
        shown = "".join(block.get("text", "") for block in made.result["content"])
        return None if shown == str(event.content) else event.replace(content=shown)


class BeforeModelCall(ProviderPart):
    """`BeforeModelCallEvent`."""

    @hookimpl(guard=True)
    async def model_call(self, event: ModelCallEvent) -> Any:
        """Stop a model call."""
        made: Any = BeforeModelCallEvent(agent=self.agent)  # pyright: ignore
        made, _ = await self.registry.invoke_callbacks_async(made)
        if not made.cancel:
            return None
        return event.deny(made.cancel if isinstance(made.cancel, str) else "cancelled")


PARTS: Final[dict[type, type[ProviderPart]]] = {
    BeforeToolCallEvent: BeforeToolCall,
    AfterToolCallEvent: AfterToolCall,
    BeforeModelCallEvent: BeforeModelCall,
}

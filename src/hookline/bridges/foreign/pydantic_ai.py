"""Capabilities of pydantic-ai as a plugin: their hooks of tools and of requests to the model."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import SkipToolExecution
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage

from hookline.bridges.pydantic_ai import plain_messages
from hookline.bridges.reports import replaced
from hookline.events import ModelCallEvent, ModelResultEvent, ToolCallEvent, ToolResultEvent
from hookline.hooks import hookimpl
from hookline.types import ToolCall

from . import refuse

MOUNTED: Final = {
    "before_tool_execute", "after_tool_execute", "wrap_tool_execute", "before_model_request",
    "after_model_request",
}  # fmt: skip
NEUTRAL: Final = {
    "id", "description", "get_description", "get_serialization_name", "from_spec", "combine",
    "get_ordering", "has_on_event", "has_wrap_run_event_stream", "listens_to",
}  # fmt: skip
"""What says something about a capability and takes no part in a run."""


def mount(capability: AbstractCapability[Any]) -> object:
    """Mount a capability that touches only tools and texts."""
    used = implemented(capability)
    if others := sorted(used - MOUNTED):
        needs = ", ".join(others)
        raise refuse(capability, f"it implements {needs}, which needs an agent of pydantic-ai")
    parts = {
        "before_tool_execute": BeforeTool, "after_tool_execute": AfterTool,
        "wrap_tool_execute": WrapTool, "before_model_request": BeforeRequest,
        "after_model_request": AfterRequest,
    }  # fmt: skip
    found = [part for name, part in parts.items() if name in used]
    if not found:
        raise refuse(capability, "it has no hook of a tool or a text")
    return type("MountedCapability", tuple(found), {"__slots__": ()})(capability)


def implemented(capability: Any) -> set[str]:
    """What a capability implements; `Hooks` implements what functions were registered for."""
    base, kind = AbstractCapability, type(capability)
    names = {name for name in dir(base) if not name.startswith("_")} - NEUTRAL
    used = {name for name in names if getattr(kind, name, None) is not getattr(base, name)}
    registered = getattr(capability, "_registry", None)
    if isinstance(registered, dict):
        return {name for name, functions in registered.items() if functions}
    return used


class CapabilityPart:
    """What the parts of a mounted capability have in common."""

    def __init__(self, capability: Any) -> None:
        self.capability = capability

    def _context(self, call: ToolCallPart | None = None) -> RunContext[Any]:
        made: RunContext[Any] = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        if call is not None:
            made.tool_call_id, made.tool_name = call.tool_call_id, call.tool_name
        return made

    def _request(self, messages: list[ModelMessage]) -> ModelRequestContext:
        return ModelRequestContext(
            model=TestModel(),
            messages=messages,
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )


class BeforeTool(CapabilityPart):
    """`before_tool_execute`."""

    @hookimpl(guard=True)
    async def tool_call(self, event: ToolCallEvent) -> Any:
        """Change the arguments of a call, or refuse it."""
        call = ToolCallPart(event.tool_name, dict(event.input), event.tool_call_id)
        try:
            changed = await self.capability.before_tool_execute(
                self._context(call),
                call=call,
                tool_def=ToolDefinition(name=event.tool_name),
                args=dict(event.input),
            )
        except (ModelRetry, SkipToolExecution) as refusal:
            return event.deny(str(getattr(refusal, "message", None) or getattr(refusal, "result", "")))
        return None if changed == event.input else event.replace(input=changed)


class AfterTool(CapabilityPart):
    """`after_tool_execute`."""

    @hookimpl(guard=True)
    async def tool_result(self, event: ToolResultEvent) -> Any:
        """Change a result, or withhold it."""
        call = ToolCallPart(event.tool_name, dict(event.input), event.tool_call_id)
        try:
            changed = await self.capability.after_tool_execute(
                self._context(call),
                call=call,
                tool_def=ToolDefinition(name=event.tool_name),
                args=dict(event.input),
                result=event.content,
            )
        except ModelRetry as refusal:
            return event.deny(refusal.message)
        return None if changed == event.content else event.replace(content=text(changed))


class WrapTool(CapabilityPart):
    """`wrap_tool_execute`."""

    @hookimpl
    async def around_tool_call(self, call: ToolCall, call_next: Any) -> Any:
        """Wrap a call, whose arguments the gates have accepted and which therefore stay as they are."""
        part = ToolCallPart(call.name, dict(call.arguments), call.id)

        async def handler(args: dict[str, Any]) -> Any:
            if args != call.arguments:
                raise RuntimeError("a mounted capability cannot change the arguments of a call")
            return await call_next()

        return await self.capability.wrap_tool_execute(
            self._context(part),
            call=part,
            tool_def=ToolDefinition(name=call.name),
            args=dict(call.arguments),
            handler=handler,
        )


class BeforeRequest(CapabilityPart):
    """`before_model_request`."""

    @hookimpl(guard=True)
    async def model_call(self, event: ModelCallEvent) -> Any:
        """Change the messages of a request; an error of the capability withholds it."""
        made = [host_message(message) for message in event.messages]
        context = self._context()
        context.messages = list(made)
        request = self._request(list(made))
        try:
            after = await self.capability.before_model_request(context, request)
        except Exception as error:
            return event.deny(str(error))
        if after.messages == made:
            return None
        return event.replace(replaced(event.messages, made, after.messages, plain_message))


class AfterRequest(CapabilityPart):
    """`after_model_request`."""

    @hookimpl(guard=True)
    async def model_result(self, event: ModelResultEvent) -> Any:
        """Change an answer; an error of the capability withholds it."""
        calls = [ToolCallPart(c.name, c.arguments, c.id) for c in event.tool_calls]
        parts = [*([TextPart(event.content)] if event.content else ()), *calls]
        reason: Any = "content_filter" if event.finish_reason == "content_filter" else None
        response = ModelResponse(parts, finish_reason=reason)
        try:
            after = await self.capability.after_model_request(
                self._context(), request_context=self._request([]), response=response
            )
        except Exception as error:
            return event.deny(str(error))
        said = "".join(part.content for part in after.parts if isinstance(part, TextPart))
        return None if said == event.content else event.replace(content=said)


def text(value: Any) -> str:
    """A result as text."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def host_message(message: dict[str, Any]) -> ModelMessage:
    """A message of Hookline as one of pydantic-ai."""
    content = text(message.get("content") or "")
    if message["role"] == "assistant":
        calls = message.get("tool_calls") or ()
        parts = [ToolCallPart(c["name"], c["arguments"], c["id"]) for c in calls]
        return ModelResponse([*([TextPart(content)] if content else ()), *parts])
    if message["role"] == "tool":
        name = message.get("name") or ""
        return ModelRequest([ToolReturnPart(name, content, message["tool_call_id"])])
    return ModelRequest([UserPromptPart(content)])


def plain_message(message: ModelMessage) -> dict[str, Any]:
    """A message of pydantic-ai as one of Hookline."""
    return plain_messages([message])[0]

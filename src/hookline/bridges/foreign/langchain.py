"""Middleware of LangChain as a plugin: its hooks around tools, and before and after the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from hookline.bridges.langchain import host_message, plain_message
from hookline.errors import BridgeError
from hookline.events import ModelCallEvent, ModelResultEvent
from hookline.hooks import hookimpl
from hookline.types import ToolCall

from . import refuse

GRAPH: Final = "which needs LangGraph"
UNMOUNTABLE: Final = {
    "wrap_model_call": "it wraps calls of a LangChain model",
    "before_agent": f"it prepares the state of an agent, {GRAPH}",
    "after_agent": f"it works on the state of an agent, {GRAPH}",
}


def mount(middleware: AgentMiddleware[Any, Any]) -> object:
    """Mount a middleware that touches only tools and texts."""
    for name, why in UNMOUNTABLE.items():
        if overrides(middleware, name):
            raise refuse(middleware, why)
    if getattr(middleware, "tools", ()):
        raise refuse(middleware, "it brings tools, which an agent of LangChain runs")
    if set(middleware.state_schema.__annotations__) - set(AgentState.__annotations__):
        raise refuse(middleware, f"it keeps its own state, {GRAPH}")
    parts = {"before_model": BeforeModel, "after_model": AfterModel, "wrap_tool_call": AroundTool}
    used = [part for name, part in parts.items() if overrides(middleware, name)]
    if not used:
        raise refuse(middleware, "it has no hook of a tool or a text")
    return type("MountedMiddleware", tuple(used), {"__slots__": ()})(middleware)


def overrides(middleware: Any, name: str) -> bool:
    """Whether a middleware implements a hook, for synchronous or asynchronous agents."""
    kind = type(middleware)
    return any(getattr(kind, n) is not getattr(AgentMiddleware, n) for n in (name, f"a{name}"))


class MiddlewarePart:
    """What the parts of a mounted middleware have in common."""

    def __init__(self, middleware: Any) -> None:
        self.middleware = middleware

    async def _changed(self, name: str, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """The messages after a hook of the middleware, whose own graph would take up the changes."""
        state = {"messages": list(messages)}
        runs_async = getattr(type(self.middleware), f"a{name}") is not getattr(
            AgentMiddleware, f"a{name}"
        )
        if runs_async:
            update = await getattr(self.middleware, f"a{name}")(state, None)
        else:
            update = getattr(self.middleware, name)(state, None)
        if not update:
            return list(messages)
        if others := [key for key in update if key != "messages"]:
            raise BridgeError(f"{type(self.middleware).__name__} wants {others[0]!r}, {GRAPH}")
        changed = {message.id: message for message in update["messages"]}
        if not changed.keys() <= {message.id for message in messages}:
            raise BridgeError(f"{type(self.middleware).__name__} adds messages, {GRAPH}")
        return [changed.get(message.id, message) for message in messages]


def numbered(messages: Sequence[dict[str, Any]]) -> list[AnyMessage]:
    """Messages as LangChain's, with ids by which changes are found."""
    made = [host_message(message) for message in messages]
    return [message.model_copy(update={"id": str(n)}) for n, message in enumerate(made)]


class BeforeModel(MiddlewarePart):
    """`before_model`."""

    @hookimpl(guard=True)
    async def model_call(self, event: ModelCallEvent) -> Any:
        """Change the messages of a request; an error of the middleware withholds it."""
        before = numbered(event.messages)
        try:
            after = await self._changed("before_model", before)
        except Exception as error:
            return event.deny(str(error))
        if after == before:
            return None
        pairs = zip(event.messages, before, after, strict=True)
        return event.replace(
            [plain if new is old else plain | plain_message(new) for plain, old, new in pairs]
        )


class AfterModel(MiddlewarePart):
    """`after_model`."""

    @hookimpl(guard=True)
    async def model_result(self, event: ModelResultEvent) -> Any:
        """Change an answer; an error of the middleware withholds it."""
        calls = [{"id": c.id, "name": c.name, "args": c.arguments} for c in event.tool_calls]
        said = AIMessage(event.content, tool_calls=calls, id="answer")
        try:
            (after,) = await self._changed("after_model", [said])
        except Exception as error:
            return event.deny(str(error))
        return None if after.text == said.text else event.replace(content=after.text)


class AroundTool(MiddlewarePart):
    """`wrap_tool_call`."""

    @hookimpl
    async def around_tool_call(self, call: ToolCall, call_next: Any) -> Any:
        """Wrap a call, whose arguments the gates have accepted and which therefore stay as they are."""
        asked = {"name": call.name, "args": dict(call.arguments), "id": call.id, "type": "tool_call"}
        values: list[Any] = []

        async def handler(request: ToolCallRequest) -> ToolMessage:
            if request.tool_call["args"] != asked["args"]:
                raise BridgeError("a mounted middleware cannot change the arguments of a call")
            values.append(await call_next())
            return ToolMessage(str(values[-1]), tool_call_id=call.id, name=call.name)

        request = ToolCallRequest(tool_call=asked, tool=None, state={"messages": []}, runtime=None)
        message = await self.middleware.awrap_tool_call(request, handler)
        if values and isinstance(message, ToolMessage) and message.content == str(values[-1]):
            return values[-1]
        if isinstance(message, ToolMessage) and message.status == "error":
            raise RuntimeError(message.text)
        return message.text if isinstance(message, ToolMessage) else str(message)

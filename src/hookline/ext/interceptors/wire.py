"""Our messages, calls and results in the form of the specification, and back."""

from __future__ import annotations

from typing import Any, cast

from hookline.agent.journal import plain_content
from hookline.events import ModelResultEvent
from hookline.ext.interceptors.errors import InterceptorError
from hookline.text.foreign_json import parse_json
from hookline.tools.runner import shown
from hookline.types import Content, Message, ToolCall

INCREMENTAL = "incremental"
"""The `finish_reason` of a response that still comes in."""


def plain_message(message: Message) -> dict[str, Any]:
    """A model message as JSON."""
    return {**message, "content": plain_content(message["content"])}


def own_messages(changed: Any, given: list[dict[str, Any]], own: list[Message]) -> list[Message]:
    """The messages after a transform; untouched messages keep their original objects."""
    if not isinstance(changed, list):
        raise InterceptorError("the messages must stay a list")
    found: list[Message] = []
    for index, message in enumerate(cast("list[Any]", changed)):
        if index < len(given) and message == given[index]:
            found.append(own[index])
        elif isinstance(message, dict) and {"role", "content"} <= set(cast("dict[str, Any]", message)):
            found.append(cast("Message", message))
        else:
            raise InterceptorError("every message must have a role and a content")
    return found


def declared_tools(schemas: list[Any]) -> list[dict[str, Any]]:
    """The tools offered to the model."""
    return [
        {"name": s["name"], "description": s["description"], "schema": s["parameters"]} for s in schemas
    ]


def response_parts(event: ModelResultEvent) -> dict[str, Any]:
    """A model's result as the arguments of the context builder."""
    calls = [{"id": c.id, "name": c.name, "args": dict(c.arguments)} for c in event.tool_calls]
    used = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    usage = {name: event.usage[own] for name, own in used.items() if own in event.usage}
    return {
        "model_id": event.model,
        "content": event.content if event.content or not calls else None,
        "tool_calls": calls,
        "finish_reason": INCREMENTAL if event.partial else event.finish_reason,
        "usage": usage or None,
        "request_id": event.request_id or None,
    }


def plain_value(returned: Any, content: Content) -> Any:
    """A tool's result as JSON: the returned value if that is what the model sees."""
    if not isinstance(content, str):
        return plain_content(content)
    if isinstance(returned, str | bytes | bytearray | memoryview) or shown(returned) != content:
        return content
    if returned is None:
        return None
    try:
        return parse_json(content)
    except ValueError:
        return content


def own_text(content: Any) -> str:
    """A content that must be text."""
    if content is None:
        return ""
    if not isinstance(content, str):
        raise InterceptorError(f"the content must be a text, not {type(content).__name__}")
    return content


def own_calls(calls: Any) -> list[ToolCall]:
    """Tool calls that a transform left."""
    if not isinstance(calls, list):
        raise InterceptorError("the tool calls must stay a list")
    return [_own_call(call) for call in cast("list[Any]", calls)]


def _own_call(call: Any) -> ToolCall:
    fields = cast("dict[str, Any]", call) if isinstance(call, dict) else {}
    call_id, name, args = fields.get("id"), fields.get("name"), fields.get("args")
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(args, dict):
        raise InterceptorError("every tool call must have an id, a name and args")
    return ToolCall(call_id, name, cast("dict[str, Any]", args))

"""Requests as the Messages API reads them.

Prompt caching: the system prompt, with the tools before it, and the end of the conversation are marked,
so that the next request of a session finds everything before its new messages in the cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from hookline.types import Message

from ..http.reply import ToolNames
from ..http.settings import RESERVED, Settings
from ..layout import answer_blocks, call_arguments
from ..model import ModelRequest, content_text
from ..parts import ReadPart, read_parts
from ..thinking_level import THINKING, thinking_of

PROVIDER: Final = "anthropic"
MAX_TOKENS: Final = 8192
"""The longest answer, which the API wants to be told, unless an option says otherwise."""
BUDGETS: Final = {"low": 2048, "medium": 8192, "high": 24576}
"""Tokens for thinking, on top of those for the answer."""
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}
_OURS: Final = (*RESERVED, THINKING, "system", "tool_choice")
_NO_SAMPLING: Final = ("temperature", "top_k")
"""Options that the API does not take together with thinking."""
_LIMITS: Final = (
    "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "maxItems",
)  # fmt: skip
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]")
_FIRST = r"claude-(?:instant|[123]|(?:opus|sonnet|haiku)-4(?:-[01](?!\d)|-\d{8}|@|$)"
_WITHOUT_SCHEMAS = re.compile(rf"{_FIRST})")
_WITH_BUDGETS = re.compile(rf"{_FIRST}|(?:opus|sonnet|haiku)-4-5)")


def has_schemas(model: str) -> bool:
    """Whether a model holds its answers to a JSON Schema: those since Claude 4.5 do."""
    return _WITHOUT_SCHEMAS.match(model) is None


def body(request: ModelRequest, model: str, names: ToolNames, settings: Settings) -> dict[str, Any]:
    """The request as the API reads it."""
    thinking = thinking_of(request, settings.options)
    thinks = thinking in BUDGETS
    # Models that adapt may have thought without being asked to.
    returns = thinks or (not thinking and not _WITH_BUDGETS.match(model))
    system, messages = conversation(request, names, thoughts=returns)
    found: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
    for options in (settings.options, request.options):
        found.update((name, value) for name, value in options.items() if name not in _OURS)
    found.setdefault("max_tokens", MAX_TOKENS)
    if "stop" in found:
        stop = found.pop("stop")
        found["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if system:
        found["system"] = [{"type": "text", "text": system, **_CACHED}]
    if thinks:
        _think(found, model, thinking)
    if request.output is not None:
        form = {"type": "json_schema", "schema": enforceable(request.output.schema)}
        found["output_config"] = {**(found.get("output_config") or {}), "format": form}
    if request.tools:
        found["tools"] = [_tool(schema, names) for schema in request.tools]
        if not system:
            found["tools"][-1].update(_CACHED)
        choice = _choice(request, names, forced=not thinks)
        if choice is not None:
            found["tool_choice"] = choice
    return {name: value for name, value in found.items() if value is not None}


def _think(found: dict[str, Any], model: str, thinking: str) -> None:
    """Ask for thoughts: by a budget of tokens, or since Claude 4.6 by an effort."""
    budget = BUDGETS[thinking]
    if _WITH_BUDGETS.match(model):
        found["thinking"] = {"type": "enabled", "budget_tokens": budget}
    else:
        # Without `display` some models send their thoughts' signatures alone.
        found["thinking"] = {"type": "adaptive", "display": "summarized"}
        found["output_config"] = {"effort": thinking, **(found.get("output_config") or {})}
    found["max_tokens"] += budget
    for name in _NO_SAMPLING:
        found.pop(name, None)


def _tool(schema: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    return {
        "name": names.wire(schema["name"]),
        "description": schema.get("description") or "",
        "input_schema": schema.get("parameters") or {"type": "object"},
    }


def _choice(request: ModelRequest, names: ToolNames, *, forced: bool) -> dict[str, Any] | None:
    """Which tool to call; while the model thinks, none can be forced."""
    choice = request.tool_choice
    if choice == "none":
        return {"type": "none"}
    if choice == "auto" or not forced:
        return None
    if isinstance(choice, dict):
        return {"type": "tool", "name": names.wire(choice.get("name", ""))}
    return {"type": "any"}


def conversation(
    request: ModelRequest, names: ToolNames, *, thoughts: bool
) -> tuple[str, list[Message]]:
    """The system prompt, and the messages in turns of user and assistant; with signed thoughts."""
    systems = [request.system]
    found: list[Message] = []
    for message in request.messages:
        role = message.get("role")
        if role in ("system", "developer"):
            systems.append(content_text(message.get("content")))
            continue
        blocks = _blocks(message, names, thoughts)
        side = "assistant" if role == "assistant" else "user"
        if found and found[-1]["role"] == side:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": side, "content": blocks})
    if found:
        # Thinking cannot be marked; what is marked is the end of what was said.
        markable = [b for b in found[-1]["content"] if "thinking" not in b["type"]]
        if markable:
            markable[-1].update(_CACHED)
    return "\n\n".join(filter(None, systems)), found


def _blocks(message: Message, names: ToolNames, thoughts: bool) -> list[dict[str, Any]]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": _BAD_ID.sub("_", str(message.get("tool_call_id", ""))),
            "content": _parts(content),
        }
        return [{**result, "is_error": True} if message.get("is_error") else result]
    if role != "assistant":
        return _parts(content)
    found: list[dict[str, Any]] = []
    reasoning = str(message.get("reasoning") or "")
    blocks = answer_blocks(message, PROVIDER)
    sizes = [block.kept.get("size", 0) for block in blocks if block.kind == "own"]
    # A changed thought does not fit its signature any more.
    thoughts = thoughts and sum(sizes) == len(reasoning)
    for block in blocks:
        if block.kind == "call":
            found.append(_called(block.value, names))
        elif block.kind == "own":
            size = block.kept.get("size", 0)
            if thoughts:
                found.append(_thought(block.kept, reasoning[:size]))
            reasoning = reasoning[size:]
        elif block.value.strip():
            found.append({"type": "text", "text": block.value})
    return found


def _thought(kept: dict[str, Any], reasoning: str) -> dict[str, Any]:
    """A block of thinking as it came: its text is part of the message's reasoning."""
    if kept.get("type") != "thinking":
        return kept
    return {"type": "thinking", "thinking": reasoning, "signature": kept.get("signature", "")}


def _called(call: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": _BAD_ID.sub("_", str(call.get("id", ""))),
        "name": names.wire(call.get("name", "")),
        "input": call_arguments(call),
    }


def enforceable(schema: Any) -> Any:
    """A schema without the limits that the API refuses: the model reads them in the description."""
    if isinstance(schema, list):
        return [enforceable(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    table = dict(cast("dict[str, Any]", schema))
    limits = {name: table.pop(name) for name in _LIMITS if name in table}
    if table.get("minItems", 0) > 1:
        limits["minItems"] = table.pop("minItems")
    if limits:
        said = ", ".join(f"{name}: {value}" for name, value in limits.items())
        about = table.get("description")
        table["description"] = f"{about}\n\n{{{said}}}" if about else f"{{{said}}}"
    for name in ("items", "anyOf"):
        if name in table:
            table[name] = enforceable(table[name])
    for name in ("properties", "$defs"):
        if name in table:
            table[name] = {key: enforceable(value) for key, value in table[name].items()}
    return table


def _parts(content: object) -> list[dict[str, Any]]:
    parts = [_part(part) for part in read_parts(content)]
    return [part for part in parts if part.get("type") != "text" or str(part["text"]).strip()]


def _part(part: ReadPart) -> dict[str, Any]:
    if isinstance(part, dict):
        return part
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source: dict[str, Any] = {"type": "base64", "media_type": part.mime_type, "data": part.data}
    if part.url:
        source = {"type": "url", "url": part.url}
    if part.kind == "image":
        return {"type": "image", "source": source}
    if part.kind == "file" and part.mime_type == "application/pdf":
        title = {"title": part.name} if part.name else {}
        return {"type": "document", "source": source, **title}
    note = part.note("this API takes only PDF" if part.kind == "file" else "this model takes none")
    return {"type": "text", "text": note}

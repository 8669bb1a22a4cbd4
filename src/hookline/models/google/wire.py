"""Requests as the Gemini API reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hookline.types import Message

from ..http.reply import ToolNames
from ..http.settings import RESERVED, Settings
from ..layout import answer_blocks, call_arguments
from ..model import ModelRequest, content_text
from ..parts import ReadPart, read_parts
from ..thinking_level import THINKING, thinking_of

PROVIDER: Final = "google"
SIGNATURE: Final = "thoughtSignature"
UNSIGNED: Final = "skip_thought_signature_validator"
"""What the API takes in place of a signature for a call that another model made."""
BUDGETS: Final = {"off": 0, "low": 2048, "medium": 8192, "high": 24576}
LEAST_BUDGET: Final = 128
"""Tokens for thinking of a model that cannot do without."""
_OURS: Final = (*RESERVED, THINKING, "contents")
_NAMES: Final = {"max_tokens": "maxOutputTokens", "stop": "stopSequences"}
"""Options that have another name here; the others are written in camel case."""
_TOP: Final = ("safetySettings", "cachedContent", "toolConfig", "serviceTier", "labels")
"""Options beside the configuration of the generation."""
_OLDER = re.compile(r"gemini-(?:[12]\b|pro|flash-exp)|gemma|learnlm")


def is_older(model: str) -> bool:
    """Whether a model is from before Gemini 3."""
    return _OLDER.match(model) is not None


def body(request: ModelRequest, model: str, names: ToolNames, settings: Settings) -> dict[str, Any]:
    """The request as the API reads it."""
    system, contents = conversation(request, names, signed=not is_older(model))
    found: dict[str, Any] = {"contents": contents}
    if system:
        found["systemInstruction"] = {"parts": [{"text": system}]}
    config: dict[str, Any] = {}
    if level := thinking_of(request, settings.options):
        config["thinkingConfig"] = _thinking(level, model)
    if request.output is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": request.output.schema}
    for options in (settings.options, request.options):
        for name, value in options.items():
            if name not in _OURS:
                written = _NAMES.get(name) or _camel(name)
                (found if written in _TOP else config)[written] = value
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    if request.tools:
        found["tools"] = [{"functionDeclarations": [_tool(schema, names) for schema in request.tools]}]
        if (choice := _choice(request, names)) is not None:
            found["toolConfig"] = {"functionCallingConfig": choice}
    if config := {name: value for name, value in config.items() if value is not None}:
        found["generationConfig"] = config
    return {name: value for name, value in found.items() if value is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def _thinking(level: str, model: str) -> dict[str, Any]:
    """How long to think: by a budget of tokens, or since Gemini 3 by a level."""
    shown = {"includeThoughts": True} if level != "off" else {}
    if is_older(model):
        least = LEAST_BUDGET if "pro" in model else 0
        return {"thinkingBudget": max(BUDGETS[level], least), **shown}
    lowest = "low" if "pro" in model else "minimal"
    return {"thinkingLevel": (lowest if level == "off" else level).upper(), **shown}


def _tool(schema: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": names.wire(schema["name"]),
        "description": schema.get("description") or "",
    }
    if (parameters := schema.get("parameters")) and parameters.get("properties"):
        found["parametersJsonSchema"] = parameters
    return found


def _choice(request: ModelRequest, names: ToolNames) -> dict[str, Any] | None:
    choice = request.tool_choice
    if choice == "auto":
        return None
    if isinstance(choice, dict):
        return {"mode": "ANY", "allowedFunctionNames": [names.wire(choice.get("name", ""))]}
    return {"mode": "NONE" if choice == "none" else "ANY"}


def conversation(request: ModelRequest, names: ToolNames, *, signed: bool) -> tuple[str, list[Message]]:
    """The system prompt, and the contents in turns of user and model."""
    systems = [request.system]
    found: list[Message] = []
    called: dict[str, str] = {}
    for message in request.messages:
        role = message.get("role")
        if role in ("system", "developer"):
            systems.append(content_text(message.get("content")))
            continue
        if role == "assistant":
            parts = _answer(message, names, signed)
            called.update(
                (str(c.get("id")), c.get("name", "")) for c in message.get("tool_calls") or ()
            )
        elif role == "tool":
            parts = _result(message, names, called)
        else:
            parts = [_part(part) for part in read_parts(message.get("content"))]
        side = "model" if role == "assistant" else "user"
        if found and found[-1]["role"] == side:
            found[-1]["parts"] += parts
        elif parts:
            found.append({"role": side, "parts": parts})
    return "\n\n".join(filter(None, systems)), found


def _answer(message: Message, names: ToolNames, signed: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    calls = False
    for block in answer_blocks(message, PROVIDER):
        kept = {SIGNATURE: block.kept[SIGNATURE]} if SIGNATURE in block.kept else {}
        if block.kind == "call":
            if signed and not kept and not calls:
                kept = {SIGNATURE: UNSIGNED}
            calls = True
            found.append({"functionCall": _called(block.value, names), **kept})
        elif block.kind == "own":
            found.append(block.kept)
        elif block.value or kept:
            found.append({"text": block.value, **kept})
    return found


def _called(call: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    return {
        "id": str(call.get("id", "")),
        "name": names.wire(call.get("name", "")),
        "args": call_arguments(call),
    }


def _result(message: Message, names: ToolNames, called: Mapping[str, str]) -> list[dict[str, Any]]:
    """A tool's result; its media follow it, as every model of the API accepts them."""
    place = str(message.get("tool_call_id", ""))
    parts = [_part(part) for part in read_parts(message.get("content"))]
    text = "\n".join(part["text"] for part in parts if "text" in part)
    answer = {
        "id": place,
        "name": names.wire(str(message.get("name") or called.get(place) or "tool")),
        "response": {"error" if message.get("is_error") else "result": text},
    }
    return [{"functionResponse": answer}, *(part for part in parts if "text" not in part)]


def _part(part: ReadPart) -> dict[str, Any]:
    if isinstance(part, dict):
        return part
    if isinstance(part, str):
        return {"text": part}
    if part.url:
        return {"fileData": {"mimeType": part.mime_type, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.mime_type, "data": part.data}}

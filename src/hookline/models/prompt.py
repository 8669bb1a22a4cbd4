"""How a request is put to the local model: plain chat messages, and tool calls as JSON.

The templates of small models know no tools. So they are described in a few words, and decoding is
held to a schema in which every answer is one call. What was called before is shown in the same form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from hookline.errors import ModelFailed
from hookline.text.foreign_json import parse_json
from hookline.types import Message

from .model import ModelRequest, ToolSchema
from .output import OutputSchema
from .parts import written_text

DEFAULT_SYSTEM = "You are a helpful assistant."
"""Without any, a small model's template brings one of its own that confuses it."""


# Of requests and calls of tools that need not exist: what a small model takes from them is the form,
# and that arguments are copied from the request. Examples with placeholders, it copies whole.
_EXAMPLES = (
    ("Look up the word hook.", "lookup", {"word": "hook"}),
    ("Copy a.txt to b.txt", "copy", {"source": "a.txt", "target": "b.txt"}),
    ("What time is it in Lima?", "clock", {"place": "Lima"}),
)


def chat_messages(request: ModelRequest) -> list[dict[str, str]]:
    """The request's messages with plain text, one system message, and no role twice in a row."""
    systems = [request.system]
    chat: list[tuple[str, str]] = []
    for message in request.messages:
        role, text = _plain(message)
        if role == "system":
            systems.append(text)
        elif chat and chat[-1][0] == role:
            chat[-1] = (role, f"{chat[-1][1]}\n\n{text}")
        else:
            chat.append((role, text))
    system = "\n\n".join(filter(None, systems)) or DEFAULT_SYSTEM
    return [{"role": role, "content": _clean(text)} for role, text in [("system", system), *chat]]


def offered_tools(request: ModelRequest, offer: bool) -> list[ToolSchema]:
    """The tools that this request may or must call; none when the answer is to be text."""
    choice = request.tool_choice
    if isinstance(choice, dict):
        named = [tool for tool in request.tools if tool["name"] == choice.get("name")]
        if not named:
            raise ModelFailed(
                f"tool_choice asks for {choice.get('name')!r}, which is not among the request's tools"
            )
        return named
    if choice == "required":
        if not request.tools:
            raise ModelFailed("tool_choice is 'required', but the request has no tools")
        return request.tools
    return request.tools if offer and choice == "auto" else []


def answer_name(tools: Iterable[ToolSchema]) -> str:
    """The name under which a model that may call tools answers in words instead."""
    names = {tool["name"] for tool in tools}
    name = "answer"
    while name in names:
        name += "_"
    return name


def answer_tool(name: str, output: OutputSchema | None = None) -> ToolSchema:
    """Answering in words, or in the form that is asked for, in the form of a tool."""
    if output is not None:
        return {"name": name, "description": "Give the final answer.", "parameters": output.schema}
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return {"name": name, "description": "Answer the user in words.", "parameters": text}


def call_messages(
    request: ModelRequest, tools: list[ToolSchema], words: str | None
) -> list[dict[str, str]]:
    """The messages, with the tools in a few words and examples of calls before the conversation.

    `words` is the tool that stands for an answer in words, if that is allowed.
    """
    system, *chat = chat_messages(request)
    lines = [system["content"], "", "Answer with one JSON call of a tool:", *map(_line, tools)]
    examples = [
        (said, _written({"name": name, "arguments": values})) for said, name, values in _EXAMPLES
    ]
    if words and request.output is None:
        greeting = {"name": words, "arguments": {"text": "Hello! How can I help you?"}}
        examples.append(("Hello!", _written(greeting)))
    shown = [
        {"role": role, "content": text}
        for said, call in examples
        for role, text in (("user", said), ("assistant", call))
    ]
    return [{"role": "system", "content": "\n".join(lines)}, *shown, *chat]


def call_schema(tools: Iterable[ToolSchema], *, loose: bool = False) -> dict[str, Any]:
    """The JSON Schema of a call of one of the tools; `loose` leaves the arguments open."""
    definitions: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for number, tool in enumerate(tools):
        key = f"t{number}"
        parameters = {"type": "object"} if loose else tool.get("parameters") or {"type": "object"}
        # References in a tool's schema are from its own root, which is now further down.
        definitions[key] = _rooted(parameters, f"#/$defs/{key}")
        calls.append(
            {
                "type": "object",
                "properties": {
                    "name": {"const": tool["name"]},
                    "arguments": {"$ref": f"#/$defs/{key}"},
                },
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return {"anyOf": calls, "$defs": definitions}


def read_call(text: str) -> tuple[str, str] | None:
    """The name and the arguments, as JSON text, of a written call; one that was cut off counts."""
    found = _CALL.match(text)
    if not found:
        return None
    rest = found["rest"].rstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        end = len(rest)
    return parse_json(found["name"]), rest[:end]


def read_answer(arguments: str) -> str:
    """The text of an answer that was written as a call; of a truncated one, what there is."""
    try:
        return str(parse_json(arguments)["text"])
    except (ValueError, KeyError, TypeError):
        return re.sub(r'^\s*\{\s*"text"\s*:\s*"?', "", arguments)


_CALL = re.compile(
    r'\s*\{\s*"name"\s*:\s*(?P<name>"(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?P<rest>.*)', re.S
)


def _plain(message: Message) -> tuple[str, str]:
    role = str(message.get("role") or "user")
    text = written_text(message.get("content"))
    if role == "tool":
        name = message.get("name") or "the tool"
        return "user", f"Result of {name}: {text}"
    calls = message.get("tool_calls")
    if role == "assistant" and calls:
        written = [_written(call) for call in cast("Iterable[Mapping[str, Any]]", calls)]
        text = "\n".join(filter(None, [text, *written]))
    return ("system" if role == "developer" else role), text


def _written(call: Mapping[str, Any]) -> str:
    arguments: object = call.get("arguments", {})
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return f'{{"name": {json.dumps(call.get("name") or "")}, "arguments": {written}}}'


def _clean(text: str) -> str:
    """Half characters cannot be encoded, and the runtime refuses them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _line(tool: ToolSchema) -> str:
    parameters = cast("Mapping[str, Any]", tool.get("parameters") or {})
    names = ", ".join(cast("Mapping[str, Any]", parameters.get("properties") or {}))
    about = _clean(str(tool.get("description") or "")).strip().partition("\n")[0]
    return f"- {tool['name']}({names}): {about}".rstrip(": ")


def _rooted(schema: Any, root: str) -> Any:
    """The schema with its references from a new root, and its objects closed to invented fields."""
    if isinstance(schema, list):
        return [_rooted(item, root) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _rooted(value, root) for key, value in cast("dict[str, Any]", schema).items()}
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = root + reference[1:]
    if isinstance(moved.get("properties"), dict) and moved.get("type") == "object":
        moved.setdefault("additionalProperties", False)
    return moved

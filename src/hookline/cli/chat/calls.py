"""`/tool_name …`: a person's tool call, through the same runner and every gate."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from hookline.hooks import HooklineError

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.tools.runner import ToolOutcome
    from hookline.tools.tool import Tool

PAIR = re.compile(r"(\w+)=(.*)", re.DOTALL)


class BadArguments(HooklineError, ValueError):
    """A tool's arguments that cannot be read."""


async def call_tool(app: Hookline, session_id: str, name: str, written: str) -> ToolOutcome:
    """Call a tool for the person at the keyboard; the call and its result are on the tape."""
    from hookline import person

    given = arguments_of(app.tools.get(name), written)
    return await person.call_tool(app, session_id, name, given, channel="terminal")


def arguments_of(tool: Tool, written: str) -> dict[str, Any]:
    """The arguments as they were written: an object, `key=value` pairs, or the one that is needed."""
    written = written.strip()
    if written.startswith("{"):
        try:
            return json.loads(written)
        except ValueError as error:
            raise BadArguments(f"the arguments of /{tool.name} are not JSON: {error}") from None
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    pairs = pairs_of(written)
    if pairs is not None:
        return {key: value_of(value, properties.get(key, {})) for key, value in pairs.items()}
    required: list[str] = tool.parameters.get("required", [])
    if len(required) == 1:
        return {required[0]: value_of(written, properties.get(required[0], {}))}
    raise BadArguments(f"write the arguments as key=value or as JSON: {usage(tool)}")


def pairs_of(written: str) -> dict[str, str] | None:
    """`key=value` pairs, quoted as in a shell; None where it is something else."""
    try:
        words = [PAIR.fullmatch(word) for word in shlex.split(written)]
    except ValueError:
        return None
    return {pair[1]: pair[2] for pair in words if pair} if all(words) else None


def value_of(written: str, schema: dict[str, Any]) -> Any:
    """A value as its schema wants it; text that is no JSON stays text, and the schema has its say."""
    if schema.get("type") == "string":
        return written
    try:
        return json.loads(written)
    except ValueError:
        return written


def usage(tool: Tool) -> str:
    """How a tool is called."""
    required = tool.parameters.get("required", [])
    words = [f"{p}=…" if p in required else f"[{p}=…]" for p in tool.parameters.get("properties", {})]
    return " ".join([f"/{tool.name}", *words])

"""`todo`: a to-do list in the session's state."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.tool import tool

KEY = "todo"
"""Where the list is kept: `[{"number": 1, "text": "…", "done": false}, …]`."""

_MOST = 200
Text = Annotated[str, Field(min_length=1, max_length=1000)]


@tool(side_effects=SideEffects.none, registry=None)
async def todo(
    context: ToolContext,
    action: Literal["add", "done", "remove", "show"] = "show",
    items: list[Text] = [],  # noqa: B006  # pydantic copies it
    numbers: list[int] = [],  # noqa: B006
) -> str:
    """Keep and show a to-do list for this session.

    action: What to do with the list.
    items: The items to add, in order.
    numbers: The numbers of the items to mark as done or to remove.

    """
    entries: list[dict[str, Any]] = context.state.setdefault(KEY, [])
    match action:
        case "add":
            _add(entries, items)
        case "done":
            for entry in _chosen(entries, numbers):
                entry["done"] = True
        case "remove":
            for entry in _chosen(entries, numbers):
                entries.remove(entry)
        case "show":
            pass
    return "\n".join(map(_line, entries)) or "[nothing is to be done]"


def _add(entries: list[dict[str, Any]], items: list[str]) -> None:
    if not items:
        raise ToolError("add needs items: a list of texts")
    if len(entries) + len(items) > _MOST:
        raise ToolError(f"the list takes {_MOST} entries; remove some that are done")
    last = max((entry["number"] for entry in entries), default=0)
    entries += (
        {"number": number, "text": " ".join(text.split()), "done": False}
        for number, text in enumerate(items, start=last + 1)
    )


def _chosen(entries: list[dict[str, Any]], numbers: list[int]) -> list[dict[str, Any]]:
    """The entries of these numbers; nothing happens if one is not there."""
    by_number = {entry["number"]: entry for entry in entries}
    if not numbers:
        raise ToolError("say which: numbers is empty")
    missing = [str(number) for number in numbers if number not in by_number]
    if missing:
        raise ToolError(f"the list has no number {', '.join(missing)}")
    return [by_number[number] for number in dict.fromkeys(numbers)]


def _line(entry: dict[str, Any]) -> str:
    return f"{entry['number']}. [{'x' if entry['done'] else ' '}] {entry['text']}"

"""Tools under the names of the format: `shell` is `Bash`, its `timeout` there is in milliseconds.

Both ways: what a hook is shown, and what it gives back in `updatedInput`. A field that has no
counterpart keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

Input: TypeAlias = dict[str, Any]

NAMES: Mapping[str, tuple[str, ...]] = {
    "shell": ("Bash",),
    "read_file": ("Read",),
    "write_file": ("Write",),
    "edit_file": ("Edit", "MultiEdit"),
    "list_files": ("Glob",),
    "search_files": ("Grep",),
    "fetch_url": ("WebFetch",),
    "delegate": ("Task", "Agent"),
    "todo": ("TodoWrite",),
}
"""Our tools, and what the format calls each."""

_FIELDS: Mapping[str, Mapping[str, str]] = {
    "shell": {"background": "run_in_background"},
    "read_file": {"path": "file_path", "start": "offset"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path"},
    "search_files": {"ignore_case": "-i", "limit": "head_limit"},
    "delegate": {"role": "subagent_type"},
}
_EDIT = {"old": "old_string", "new": "new_string", "all": "replace_all"}


def subjects(tool: str) -> tuple[str, ...]:
    """Every name that a matcher may mean a tool by."""
    return (*NAMES.get(tool, ()), tool)


def of_server(server: str, name: str) -> str:
    """The name of an MCP server's tool."""
    return f"mcp__{server}__{name}"


def shown_name(tool: str, given: Mapping[str, Any]) -> str:
    """The name that a hook is told."""
    if tool == "edit_file" and len(_list(given.get("edits"))) > 1:
        return "MultiEdit"
    return subjects(tool)[0]


def shown_input(tool: str, given: Mapping[str, Any], workspace: Path) -> Input:
    """A tool's input as a hook is told it."""
    names = _FIELDS.get(tool, {})
    shown = {names.get(key, key): value for key, value in given.items()}
    if isinstance(path := shown.get("file_path"), str) and "\0" not in path:
        shown["file_path"] = str(workspace / path)
    if tool == "shell" and isinstance(seconds := shown.get("timeout"), int | float):
        shown["timeout"] = round(seconds * 1000)
    elif tool == "read_file" and isinstance(end := shown.pop("end", None), int):
        shown["limit"] = end - int(given.get("start") or 1) + 1
    elif tool == "edit_file":
        edits = [_renamed(edit, _EDIT) for edit in _list(shown.pop("edits", None))]
        shown.update(edits[0] if len(edits) == 1 else {"edits": edits})
    elif tool == "delegate":
        tasks = [str(task) for task in _list(shown.get("tasks"))]
        shown["prompt"] = "\n\n".join(tasks)
        shown["description"] = shown["prompt"].partition("\n")[0][:80]
    elif tool == "todo" and "items" in shown:
        todos = [{"content": item, "status": "pending"} for item in _list(shown.pop("items"))]
        shown["todos"] = todos
    return shown


def taken_input(
    tool: str, updated: Mapping[str, Any], given: Mapping[str, Any], workspace: Path
) -> Input:
    """The input that a hook gave back, in our names; what it left as it was is as it was."""
    before = shown_input(tool, given, workspace)
    updated = dict(updated)
    back = {theirs: ours for ours, theirs in _FIELDS.get(tool, {}).items()}
    taken: Input = {}
    if tool == "delegate":
        unchanged = updated.get("prompt") == before.get("prompt")
        prompt = updated.pop("prompt", None)
        updated.pop("description", None)
        if prompt is not None and not unchanged:
            updated["tasks"] = [prompt]
        elif prompt is not None:
            updated.setdefault("tasks", given.get("tasks"))
    elif tool == "edit_file" and ("old_string" in updated or "new_string" in updated):
        edit = {key: updated.pop(key) for key in _EDIT.values() if key in updated}
        updated["edits"] = [edit]
    elif tool == "read_file" and isinstance(limit := updated.pop("limit", None), int):
        taken["end"] = int(updated.get("offset") or 1) + limit - 1
    elif tool == "todo" and "todos" in updated:
        todos = _list(updated.pop("todos"))
        updated["items"] = [_content(each) for each in todos]
    for key, value in updated.items():
        if key in before and before[key] == value and back.get(key, key) in given:
            value = given[back.get(key, key)]
        elif key == "file_path" and isinstance(value, str):
            value = _relative(value, workspace)
        elif key == "timeout" and tool == "shell" and isinstance(value, int | float):
            value = value / 1000
        elif key == "edits" and tool == "edit_file":
            value = [_renamed(edit, {v: k for k, v in _EDIT.items()}) for edit in _list(value)]
        taken[back.get(key, key)] = value
    return taken


def shown_response(tool: str, given: Mapping[str, Any], text: str, workspace: Path) -> Input:
    """A tool's result as a hook is told it."""
    if tool == "shell":
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    response: Input = {"success": True, "content": text}
    if isinstance(path := given.get("path"), str) and "file_path" in _FIELDS.get(tool, {}).values():
        response["filePath"] = str(workspace / path)
    return response


def _relative(path: str, workspace: Path) -> str:
    """A path as our tools take it: relative where it lies in the workspace."""
    prefix = f"{workspace}/"
    return path[len(prefix) :] if path.startswith(prefix) else path


def _renamed(table: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(table, Mapping):
        return table
    given = cast("Mapping[str, Any]", table)
    return {names.get(key, key): value for key, value in given.items()}


def _content(todo: Any) -> Any:
    return cast("Mapping[str, Any]", todo).get("content", "") if isinstance(todo, Mapping) else todo


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []

"""The tools of hosts under the names of ours, so that one handler and one policy serve every host.

`Bash` of Claude Code, `run_shell_command` of Gemini CLI and `bash` of opencode and pi are `shell` here,
with a `command`. A tool or a field without a counterpart keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hookline.ext.command_hooks.names import NAMES, shown_input, taken_input

CLAUDE: dict[str, str] = {theirs: ours for ours, names in NAMES.items() for theirs in names}

TOOLS: Mapping[str, Mapping[str, str]] = {
    "claude-code": CLAUDE,
    "codex": {"Bash": "shell"},
    "gemini": {
        "run_shell_command": "shell",
        "read_file": "read_file",
        "write_file": "write_file",
        "replace": "edit_file",
        "glob": "list_files",
        "grep_search": "search_files",
        "search_file_content": "search_files",
        "web_fetch": "fetch_url",
    },
    "opencode": {
        "bash": "shell",
        "read": "read_file",
        "write": "write_file",
        "edit": "edit_file",
        "glob": "list_files",
        "grep": "search_files",
        "webfetch": "fetch_url",
    },
    "pi": {
        "bash": "shell",
        "read": "read_file",
        "write": "write_file",
        "edit": "edit_file",
        "find": "list_files",
        "grep": "search_files",
    },
}
"""The tools of each host that are one of ours."""

FIELDS: Mapping[str, Mapping[str, str]] = {
    "gemini": {"absolute_path": "file_path"},
    "opencode": {
        "filePath": "file_path",
        "oldString": "old_string",
        "newString": "new_string",
        "replaceAll": "replace_all",
    },
    "pi": {"path": "file_path", "oldText": "old_string", "newText": "new_string"},
}
"""Fields of a host's tools as Claude Code calls them, whose names have counterparts already."""
_TEXTS = ("text", "content", "llmContent", "output", "file")
"""Where a result may have its text."""
_SECONDS = frozenset({"pi"})
"""Hosts whose time-outs are in seconds already."""


class HostToolNames:
    """The tools of one host."""

    def __init__(self, host: str) -> None:
        self._tools = TOOLS[host]
        self._fields = FIELDS.get(host, {})
        self._is_in_seconds = host in _SECONDS

    def ours(self, name: str, given: Mapping[str, Any], workspace: Path) -> tuple[str, dict[str, Any]]:
        """A call as handlers see it."""
        tool = self._tools.get(name)
        if tool is None:
            return name, dict(given)
        return tool, taken_input(tool, self._renamed(given), {}, workspace)

    def theirs(
        self,
        name: str,
        given: Mapping[str, Any],
        arguments: Mapping[str, Any],
        workspace: Path,
    ) -> dict[str, Any]:
        """The host's input after handlers left these arguments; fields that they left alone stay."""
        tool = self._tools.get(name)
        if tool is None:
            return dict(arguments)
        _, before = self.ours(name, given, workspace)
        was, now = shown_input(tool, before, workspace), shown_input(tool, arguments, workspace)
        back = {theirs: ours for ours, theirs in self._fields.items() if ours not in given}
        back = {**back, **{self._fields[key]: key for key in given if key in self._fields}}
        changed = {
            back.get(key, key): renamed(value, back)
            for key, value in now.items()
            if was.get(key) != value
        }
        gone = {back.get(key, key) for key in was.keys() - now.keys()}
        if self._is_in_seconds and "timeout" in changed:
            changed["timeout"] = changed["timeout"] / 1000
        return {**{key: value for key, value in given.items() if key not in gone}, **changed}

    def _renamed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        fields = self._fields
        found = {fields.get(key, key): renamed(value, fields) for key, value in given.items()}
        timeout = found.get("timeout")
        if self._is_in_seconds and isinstance(timeout, int | float):
            found["timeout"] = timeout * 1000
        return found


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A list of edits with other names for their fields; anything else as it is."""
    if not isinstance(value, list) or not names:
        return cast("Any", value)
    return [
        {names.get(key, key): inner for key, inner in cast("dict[str, Any]", each).items()}
        if isinstance(each, dict)
        else each
        for each in cast("list[Any]", value)
    ]


def text_of(result: Any) -> str | None:
    """The text of a host's tool result; None if it has no form that is known."""
    if isinstance(result, str):
        return result
    if isinstance(result, list):
        parts = [text_of(part) for part in cast("list[Any]", result)]
        return None if None in parts else "\n".join(str(part) for part in parts)
    if not isinstance(result, Mapping):
        return None
    found = cast("Mapping[str, Any]", result)
    if isinstance(found.get("stdout"), str):
        errors = found.get("stderr")
        return f"{found['stdout']}{errors}" if isinstance(errors, str) else found["stdout"]
    key = next((key for key in _TEXTS if key in found), "")
    return text_of(found[key]) if key else None


def with_text(result: Any, text: str) -> Any:
    """A host's tool result in its own form, with another text in it."""
    if isinstance(result, list):
        return [{"type": "text", "text": text}]
    if not isinstance(result, Mapping):
        return text
    found = cast("Mapping[str, Any]", result)
    if isinstance(found.get("stdout"), str):
        return {**found, "stdout": text, **({"stderr": ""} if "stderr" in found else {})}
    key = next((key for key in _TEXTS if key in found), "")
    return {**found, key: with_text(found[key], text)} if key else text

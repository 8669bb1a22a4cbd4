"""Subagent files: Markdown with front matter, each a role that `delegate` can give tasks to.

A file can only restrict: its tools are at most those of the agent that delegates, and every call passes
the same gates. Fields that would loosen something, or run something, are not used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from hookline.ext.command_hooks.names import NAMES
from hookline.ext.skills.errors import SkillError
from hookline.ext.skills.files import read_text
from hookline.ext.skills.frontmatter import fields_of
from hookline.runtime.subagent_task import Role

FOLDER = Path(".claude", "agents")
LARGEST = 1_000_000
MOST = 100
"""Files of one folder."""
READ = {
    "name", "description", "tools", "disallowedTools", "model", "skills", "maxTurns", "permissionMode",
    "color",
}  # fmt: skip
STRICT_MODES = ("plan", "dontAsk")
"""Permission modes that forbid more than the default, which a role here cannot promise."""
_OURS = {theirs: ours for ours, names in NAMES.items() for theirs in names}


def agent_files(folder: Path) -> Iterator[Path]:
    """The subagent files of a `.claude/agents` folder, also in folders below it, by name."""
    found = sorted(path for path in folder.rglob("*.md") if path.is_file())
    yield from found[:MOST]


def read_agent(path: Path, folder: Path, models: Collection[str]) -> tuple[Role, list[str]]:
    """The role that a file describes, with what is not used of it; `SkillError` says what is wrong."""
    fields, body = fields_of(read_text(path, folder, LARGEST))
    unused = [f"{key} is not used here" for key in fields if key not in READ]
    mode = fields.get("permissionMode", "default")
    if mode in STRICT_MODES:
        raise SkillError(f"permissionMode {mode!r} cannot be kept here; list its `tools` instead")
    if mode != "default":
        unused.append(f"permissionMode {mode!r} is not used: every call passes the same gates")
    model = fields.get("model")
    if model is not None and model != "inherit" and model not in models:
        unused.append(f"model {model!r} is not configured; the role has the model of its parent")
    tools = fields.get("tools")
    try:
        role = Role(
            name=str(fields.get("name") or path.stem),
            description=" ".join(str(fields.get("description") or "").split()),
            instructions=body.strip(),
            model=model if model in models else None,
            tools=None if tools in (None, "*") else tuple(_tools("tools", tools, unused)),
            excluded=tuple(_excluded(fields.get("disallowedTools"))),
            skills=tuple(_words("skills", fields["skills"])) if fields.get("skills") else None,
            steps=fields.get("maxTurns"),
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = {"steps": "maxTurns"}.get(str(first["loc"][0]), str(first["loc"][0]))
        raise SkillError(f"{name}: {first['msg']}, got {first['input']!r}") from None
    if not role.description:
        raise SkillError("description is missing: say when to give this agent a task")
    return role, unused


def _tools(key: str, value: Any, unused: list[str]) -> Iterator[str]:
    """Our names of the tools that a role may use; one that is unknown here is left out."""
    for word in _words(key, value):
        if (ours := _name(word)) is not None:
            yield ours
        else:
            unused.append(f"{key}: {word!r} names no tool here, so the role does not have it")


def _excluded(value: Any) -> Iterator[str]:
    """Our names of the tools that a role must not use; a pattern on one takes the whole tool."""
    for word in _words("disallowedTools", value) if value is not None else ():
        ours = _name(word.partition("(")[0])
        if ours is not None:
            yield ours
        elif word.startswith("mcp__"):
            raise SkillError(f"disallowedTools: {word!r} must name one tool: mcp__server__tool")


def _name(word: str) -> str | None:
    if word in _OURS:
        return _OURS[word]
    server, _, tool = word.removeprefix("mcp__").partition("__")
    is_one = word.startswith("mcp__") and server and tool and "*" not in word
    return f"{server}.{tool}" if is_one else None


def _words(key: str, value: Any) -> list[str]:
    """A list as it may be written: YAML, or words with commas between them."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        raise SkillError(f"{key} must be a list, or names with commas between them, not {value!r}")
    return [str(each).strip() for each in cast("list[Any]", value) if str(each).strip()]

"""A project's settings files for coding agents: which there are, and what trusting one covers.

A settings file names commands, and these name scripts of the project. Its hash covers them too: a
script that changes must be trusted again, as the file itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from .sources import Source, SourceError, files_below, read_source, sha256_of
from .trust import Item

FOLDER = ".claude"
NAMES = ("settings.json", "settings.local.json")
SCRIPTS = Path(FOLDER, "hooks")

_WORDS = r"[^\s\"'`;|&()<>=]+"
_PROJECT = re.compile(r"\$\{CLAUDE_PROJECT_DIR\}|\$CLAUDE_PROJECT_DIR\b")


def settings_items(project: Path) -> Iterator[Item]:
    """The settings files of a project that run something."""
    for name in NAMES:
        try:
            source = read_source(project / FOLDER / name, project)
        except SourceError:
            continue  # it cannot be loaded either
        item = settings_item(source, project)
        if item is not None:
            yield item


def settings_item(source: Source, project: Path) -> Item | None:
    """A settings file with the scripts that it runs; None where it runs nothing."""
    runs = [text for _, text in commands_of(source.content)]
    if not runs:
        return None
    lines = [source.sha256]
    for path in scripts_of(runs, project):
        name = path.relative_to(project).as_posix()
        try:
            lines.append(f"{read_source(path, project).sha256}  {name}")
        except SourceError as error:
            lines.append(f"unreadable  {name}: {error}")
    sha256 = sha256_of("\n".join(lines).encode()) if len(lines) > 1 else source.sha256
    return Item("settings", project, source.path, sha256, tuple(runs))


def commands_of(content: bytes) -> list[tuple[str, str]]:
    """What a settings file runs or connects to, each with the name of its event."""
    try:
        data: Any = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return []
    hooks = cast("dict[str, Any]", data).get("hooks") if isinstance(data, dict) else None
    events = cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}
    return [(event, text) for event, value in events.items() for text in _commands(value)]


def _commands(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _commands(each)
    elif isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        for key in ("command", "url"):
            if isinstance(table.get(key), str):
                args: Any = table.get("args")
                words = cast("list[Any]", args) if isinstance(args, list) else []
                yield " ".join([table[key], *map(str, words)])
        yield from _commands(table.get("hooks"))


def scripts_of(commands: list[str], project: Path) -> list[Path]:
    """The files of the project that commands name, and everything in its folder of hook scripts."""
    found = dict.fromkeys(files_below(project / SCRIPTS, every=True))
    for command in commands:
        text = _PROJECT.sub(str(project), command)
        # a quote may stand in the middle of a path: "$CLAUDE_PROJECT_DIR"/check.sh
        for word in re.findall(_WORDS, text.replace('"', "").replace("'", "")):
            path = project / word
            try:
                if path.is_file() and path.resolve().is_relative_to(project.resolve()):
                    found.setdefault(project / path.resolve().relative_to(project.resolve()))
            except (OSError, ValueError, RuntimeError):
                continue  # no path at all
    return sorted(found)

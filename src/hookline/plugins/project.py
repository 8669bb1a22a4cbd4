"""What a project brings that would run: its hook files, its configuration, its settings files for
coding agents, its skills with scripts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from .sources import SourceError, files_below, read_source, real_path, sha256_of
from .trust import Item

HOOKS = Path(".hookline", "hooks")
CONFIG = Path(".hookline", "config.toml")
SKILLS = Path(".agents", "skills")

SCRIPTS = {
    ".bash", ".bat", ".cjs", ".cmd", ".js", ".lua", ".mjs", ".php", ".pl", ".ps1", ".py", ".rb",
    ".sh", ".ts", ".zsh",
}  # fmt: skip
_RUN = ("command", "url")
_LARGEST_OF_SKILL = 20_000_000


def project_items(project: Path) -> list[Item]:
    """Everything of a project that needs trust; what cannot be read, or leads out, is not among it."""
    from .settingsfiles import settings_items

    return [
        *hook_items(project),
        *config_items(project),
        *settings_items(project),
        *skill_items(project),
    ]


def hook_items(project: Path) -> Iterator[Item]:
    """Every Python file among the hook files, helpers too."""
    yield from hook_items_in(project / HOOKS, project)


def hook_items_in(place: Path, project: Path) -> Iterator[Item]:
    """The same for one folder or file, where it lies in the project."""
    paths = [place] if place.suffix == ".py" else files_below(place)
    for path in paths if stays(place, project) else ():
        if path.suffix == ".py":
            try:
                source = read_source(path, project)
            except SourceError:
                continue  # it cannot be loaded either, and loading says why
            yield Item("hook file", project, path, source.sha256)


def config_items(project: Path) -> Iterator[Item]:
    """The project's configuration, where it runs something."""
    path = project / CONFIG
    try:
        source = read_source(path, project)
    except SourceError:
        return
    runs = commands_in(source.content)
    if runs:
        yield Item("config", project, path, source.sha256, tuple(runs))


def commands_in(config: bytes) -> list[str]:
    """What a configuration runs or connects to: each table with a `command` or a `url`."""
    import tomllib

    try:
        tables = tomllib.loads(config.decode())
    except ValueError:
        return []
    return [f"{place}: {text}" for place, text in (*_commands("", tables), *_changed_servers(tables))]


def _changed_servers(tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Servers of which something is said here, and what they run elsewhere."""
    found: Any = tables
    for name in ("mcp", "servers"):
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, Mapping) else None
    for name, server in cast("dict[str, Any]", found).items() if isinstance(found, dict) else ():
        if not isinstance(server, dict) or not any(key in server for key in _RUN):
            yield f"mcp.servers.{name}", "changes how this server is run"


def _commands(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for number, each in enumerate(cast("list[Any]", value), 1):
            yield from _commands(f"{place}[{number}]", each)
    if not isinstance(value, Mapping):
        return
    table = cast("Mapping[str, Any]", value)
    for key in _RUN:
        if key in table:
            yield place or key, " ".join([*_words(table[key]), *_words(table.get("args", []))])
    for key, each in table.items():
        yield from _commands(f"{place}.{key}" if place else key, each)


def _words(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else [str(value)]


def skill_items(project: Path) -> Iterator[Item]:
    """The project's skills that have scripts."""
    yield from skill_items_in(project / SKILLS, project)


def skill_items_in(folder: Path, project: Path) -> Iterator[Item]:
    """The skills with scripts of one folder, where it lies in the project."""
    if not stays(folder, project) or not folder.is_dir():
        return
    for child in sorted(folder.iterdir()):
        if child.is_dir() and stays(child, folder):
            item = skill_item(child, project)
            if item is not None:
                yield item


def skill_item(folder: Path, project: Path) -> Item | None:
    """A skill that has scripts; None for one that is text alone.

    Its hash covers every file of the folder: a script may read or run any of them.
    """
    files = files_below(folder, every=True)
    scripts = tuple(p.relative_to(folder).as_posix() for p in files if is_script(p))
    if not scripts:
        return None
    lines: list[str] = []
    for path in files:
        name = path.relative_to(folder).as_posix()
        try:
            lines.append(f"{read_source(path, folder, _LARGEST_OF_SKILL).sha256}  {name}")
        except SourceError as error:
            lines.append(f"unreadable  {name}: {error}")
    content = "\n".join(lines).encode()
    return Item("skill", project, folder, sha256_of(content), scripts)


def is_script(path: Path) -> bool:
    """Whether a file of a skill is there to be run."""
    if path.name == "SKILL.md":
        return False
    return path.suffix.lower() in SCRIPTS or (path.is_file() and os.access(path, os.X_OK))


def stays(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder with all links followed."""
    try:
        real_path(path, folder)
    except SourceError:
        return False
    return True

"""A project's settings files for coding agents: which there are, and what trusting one covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from hookline.errors import SourceError
from hookline.text.foreign_json import parse_json

from .project import hook_commands, hook_variables, item_of
from .sources import FileSource, read_source
from .trust import TrustItem

FOLDER = ".claude"
NAMES = ("settings.json", "settings.local.json")


def settings_items(project: Path) -> Iterator[TrustItem]:
    """The settings files of a project that run something."""
    for name in NAMES:
        try:
            source = read_source(project / FOLDER / name, project)
        except SourceError:
            continue  # it cannot be loaded either
        item = settings_item(source, project)
        if item is not None:
            yield item


def settings_item(source: FileSource, project: Path) -> TrustItem | None:
    """A settings file with the files that its commands reach; None if it runs nothing."""
    events = events_of(source.content)
    commands = [*hook_commands(events, "hooks")]
    if not commands:
        return None
    return item_of("settings", source, project, commands, map(str, commands), hook_variables(events))


def events_of(content: bytes) -> Mapping[str, Any]:
    """The command hooks of a settings file, by event."""
    try:
        data: Any = parse_json(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}
    hooks = cast("dict[str, Any]", data).get("hooks") if isinstance(data, dict) else None
    return cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}

"""Where command hooks are written: the user's settings and configuration, and a trusted project's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import SourceError
from hookline.plugins.project import CONFIG
from hookline.plugins.settingsfiles import FOLDER, NAMES, settings_item
from hookline.plugins.sources import FileSource, read_source
from hookline.text.foreign_json import parse_json

from .errors import SettingsError
from .settings import CommandHooksSettings, Table, read_table, with_lines

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

SECTION = "hooks.commands"
CLIENT = "hookline/system/hook_client.py"
"""In the command that `hookline hook install` writes: there it asks these same hooks."""
_SCALARS = ("enabled", "settings_files", "on_failure", "timeout")


@dataclass(frozen=True, slots=True)
class HooksFile:
    """The hooks of one place."""

    name: str
    """What failures are told under."""
    table: Table
    sha256: str = ""
    """For a project's file: what was trusted."""


class Files:
    """Reads every place; a project's file counts only with trusted content."""

    def __init__(self, app: Hookline, home: Path | None) -> None:
        self._app = app
        self._home = home
        app.config.declare(SECTION, CommandHooksSettings)
        self.defaults = self._defaults()

    def _defaults(self) -> CommandHooksSettings:
        """What holds for all hooks; the user alone says it."""
        own = self._app.config.of_user(SECTION)
        scalars = {key: own[key] for key in _SCALARS if key in own}
        from hookline.config.validation import faults

        for fault in faults(CommandHooksSettings, scalars, SECTION):
            place = self._app.config.source(fault.dotted) or "the configuration"
            raise SettingsError(f"{place}: {fault.dotted}: {fault.text}")
        return CommandHooksSettings.model_validate(scalars)

    def read(self) -> Iterator[HooksFile]:
        """Every place that has hooks, the user's first."""
        if not self.defaults.enabled:
            return
        off = False
        foreign = self.defaults.settings_files and self._app.foreign_hooks
        if foreign:
            for source, name in self._of_user():
                made, off = self._settings(source, name)
                yield made
        own = _events(self._app.config.of_user(SECTION))
        if own:
            place = self._app.config.source(f"{SECTION}.{next(iter(own))}") or "config.toml"
            yield HooksFile("config", self._table(own, place, SECTION, text_of(place)))
        if self._app.project:
            yield from self._of_project(settings=foreign and not off)

    def _of_user(self) -> Iterator[tuple[FileSource | SourceError, str]]:
        if self._home is not None:
            path = self._home / FOLDER / NAMES[0]
            if path.exists():
                yield _read(path), f"~/{FOLDER}/{NAMES[0]}"

    def _of_project(self, *, settings: bool) -> Iterator[HooksFile]:
        app, project = self._app, self._app.workspace
        for name in NAMES if settings else ():
            path = project / FOLDER / name
            if not path.exists() or self._is_users(path):
                continue
            source = _read(path, project)
            shown = f"project/{FOLDER}/{name}"
            if isinstance(source, SourceError):
                yield HooksFile(shown, Table(problems=[str(source)]))
                continue
            item = settings_item(source, project)
            if item is not None and app.trust.covers(item):
                table = self._settings(source, shown)[0].table
                yield HooksFile(shown, self._watched(table, path), item.sha256)
            elif item is not None:
                yield HooksFile(shown, Table(), item.sha256)
        if app.config.project_dir is not None:
            yield from self._of_project_config(app.config.project_dir / CONFIG.name)

    def _of_project_config(self, path: Path) -> Iterator[HooksFile]:
        """The project's `[hooks.commands]`, as the settings were read and trusted."""
        config = self._app.config
        written = _events(config.written_in_project(SECTION))
        if not written:
            return
        name = f"project/{CONFIG.as_posix()}"
        item = self._app.trust.item(path)
        if not config.trusted or item is None:
            yield HooksFile(name, Table(), "not trusted")
            return
        table = self._table(_events(config.of_project(SECTION)), str(path), SECTION, text_of(path))
        yield HooksFile(name, self._watched(table, path), item.sha256)

    def _watched(self, table: Table, path: Path) -> Table:
        """The hooks of a trusted file, each checked again right before it starts."""
        app = self._app

        item = app.trust.item(path)
        unclear: Mapping[str, str] = item.unclear if item is not None else {}
        obstacle = partial(app.trust.broken, path)
        hooks = [
            replace(hook, obstacle=obstacle, unclear=unclear.get(hook.place.rpartition(": ")[2], ""))
            for hook in table.hooks
        ]
        return Table(hooks, table.problems, table.warnings)

    def _is_users(self, path: Path) -> bool:
        """In the user's home, the project's settings are the user's own."""
        return self._home is not None and path.parent == self._home / FOLDER and path.name == NAMES[0]

    def _settings(self, source: FileSource | SourceError, name: str) -> tuple[HooksFile, bool]:
        """The hooks of a settings file, and whether it turns hooks off."""
        if isinstance(source, SourceError):
            return HooksFile(name, Table(problems=[str(source)])), False
        try:
            text = source.content.decode("utf-8-sig")
            data: Any = parse_json(text)
        except (ValueError, RecursionError) as error:
            return HooksFile(name, Table(problems=[f"{source.path}: it is not JSON: {error}"])), False
        if not isinstance(data, dict):
            return HooksFile(name, Table(problems=[f"{source.path}: it is not a JSON object"])), False
        values = cast("dict[str, Any]", data)
        if values.get("disableAllHooks") is True:
            return HooksFile(name, Table()), True
        table = self._table(values.get("hooks", {}), str(source.path), "hooks", text)
        return HooksFile(name, table), False

    def _table(self, events: Any, file: str, above: str, text: str) -> Table:
        on_failure, timeout = self.defaults.on_failure, self.defaults.timeout
        table = read_table(events, file, above, on_failure=on_failure, timeout=timeout)
        table.hooks = [hook for hook in table.hooks if CLIENT not in hook.command]
        table.hooks = with_lines(table.hooks, text)
        return table


def text_of(path: str | Path) -> str:
    """A file's text, to find lines in; nothing if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _events(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in _SCALARS}


def _read(path: Path, root: Path | None = None) -> FileSource | SourceError:
    try:
        return read_source(path, root)
    except SourceError as error:
        return error

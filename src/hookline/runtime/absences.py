"""Absences: what could not be loaded, and whether the app may run without it.

A guard must not vanish because its file has a syntax error. So `running()` refuses to start while a
plugin, a hook file or a file of command hooks that should take part could not be loaded. `without` says
what to leave out this once; `[plugins] on_load_error = "continue"` lets the app run without whatever
fails. What is required, by its manifest or by `[plugins] required`, must load in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hookline.errors import LoadFailed
from hookline.hooks.errors import suggestion

if TYPE_CHECKING:
    from hookline.plugins import PluginFailure

    from .app import Hookline

log = logging.getLogger("hookline")

OnLoadError = Literal["stop", "continue"]


class Absences:
    """Decides whether an app may run without what could not be loaded."""

    def __init__(
        self, app: Hookline, without: Iterable[str] = (), on_load_error: OnLoadError | None = None
    ) -> None:
        if on_load_error not in (None, "stop", "continue"):
            raise ValueError(f"on_load_error must be 'stop' or 'continue', not {on_load_error!r}")
        self._app = app
        self.without = frozenset(map(_short, without))
        """The names left out for this run."""
        self.on_load_error: OnLoadError | None = on_load_error
        """Set by the code that created the app; if unset, the settings decide."""
        self.enforced = True
        """Whether a failure stops the run. Commands that only look at things turn it off."""
        self.say: Callable[[str], object] = log.warning
        """Says what the app runs without; the command line sets it."""
        self.parts: dict[str, Iterable[str]] = {}
        """What plugins loaded from files of their own, by plugin; `plugins.required` may name it."""
        self._met: set[str] = set()
        self._told: set[str] = set()

    def leaves_out(self, name: str) -> bool:
        """Whether a hook file or a file of command hooks is to be left out."""
        if name not in self.without:
            return False
        self._met.add(name)
        return True

    @property
    def continues(self) -> bool:
        """Whether the app runs without what fails."""
        chosen = self.on_load_error or self._app.config.on_load_error()
        return chosen == "continue"

    @property
    def failures(self) -> list[PluginFailure]:
        """What could not be loaded."""
        return [failure for failure in self._app.failures if failure.left_out]

    def notes(self) -> list[str]:
        """A line for each plugin or file that the run continues without."""
        left_out = [f"{name} takes no part: --without leaves it out" for name in sorted(self.without)]
        return [*left_out, *(f"{failure} (it takes no part)" for failure in self.failures)]

    def check(self) -> None:
        """Raise `LoadFailed` unless the app may run without the missing parts; list them otherwise."""
        if not self.enforced:
            return
        self._app.plugins.find_gone()
        self._check_sections()
        self._check_required()
        self._check_names()
        failures = self.failures
        if failures and not self.continues:
            raise LoadFailed(_stopped(failures, self._app.home))
        fresh = [note for note in self.notes() if note not in self._told]
        self._told.update(fresh)
        for note in fresh:
            self.say(f"going on although {note}")

    def _check_sections(self) -> None:
        """Refuse settings for a part of Hookline that was removed: they may describe a guard."""
        missing = self._app.plugins.missing
        if missing and (unread := self._app.config.unread()):
            raise LoadFailed(
                f"[{unread[0]}] of your settings is for a plugin that is not installed "
                f"({', '.join(missing)}); install Hookline again, or remove the section"
            )

    def _check_required(self) -> None:
        reasons = {failure.plugin: str(failure) for failure in self.failures}
        plugins, listed = self._app.plugins, self._app.config.required_plugins()
        for name in listed:
            if not self._is_there(name):
                raise LoadFailed(
                    f"{name!r} is required by plugins.required in your settings, and "
                    f"{reasons.get(name) or self._why_absent(name)}; nothing runs without it"
                )
        for name in sorted({*reasons, *self.without}):
            if plugins.requires_itself(name):
                package = plugins.gone.get(name)
                raise LoadFailed(
                    f"plugin {name!r} is marked as required by its manifest, and "
                    f"{reasons.get(name) or self._why_absent(name)}; nothing runs without it. "
                    + (
                        f"Install {package} again, or run `hookline plugins lock {package}` to accept "
                        "that it is gone"
                        if package
                        else f"Fix it, or run `hookline plugins disable {name}`"
                    )
                )

    def _is_there(self, name: str) -> bool:
        app = self._app
        if app.hooks.pm.has_plugin(name) or any(f.name == name for f in app.hook_files.files):
            return True
        return any(name in parts for parts in self.parts.values())

    def _why_absent(self, name: str) -> str:
        if name in self.without:
            return "--without cannot leave it out"
        if name in self._app.plugins.disabled:
            return "plugins.disabled leaves it out"
        return "it is not installed"

    def _check_names(self) -> None:
        """Refuse a name in `without` that nothing has: a typing error must not pass for a decision."""
        app = self._app
        packaged = {name for name in self.without if app.plugins.candidate(name) is not None}
        failed = {failure.plugin for failure in app.failures}
        for name in sorted(self.without - packaged - self._met - failed):
            there = [state.name for state in app.plugins.states() if state.order is not None]
            known = [*there, *(file.name for file in app.hook_files.files), *failed]
            raise LoadFailed(
                f"--without {name}: no plugin and no hook file has this name{suggestion(name, known)}"
            )


def _stopped(failures: list[PluginFailure], home: Path) -> str:
    """What failed, and the ways on."""
    names = [*dict.fromkeys(failure.plugin for failure in failures)]
    options = " ".join(f"--without {name}" for name in names)
    lines = [f"  {failure}" for failure in failures]
    return "\n".join(
        [
            "nothing runs, because this could not be loaded:",
            *lines,
            (
                "Fix it; or leave it out this once: "
                f'`hookline {options} …`; or set on_load_error = "continue" under [plugins] in '
                f"{home / 'config.toml'} to always go on without what fails."
            ),
        ]
    )


def _short(name: str) -> str:
    """A name as it is shown: a shell writes out the `~` of `~/.claude/settings.json`."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return name
    return f"~{name.removeprefix(home)}" if name.startswith(f"{home}/") else name

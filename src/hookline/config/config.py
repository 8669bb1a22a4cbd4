"""`Config`: the settings of all places as one, each traceable to where it stands.

    config = Config.load(Path("~/.hookline").expanduser(), workspace=Path.cwd())
    config.get("model")                      # a value
    config.source("model")                   # where it stands
    config.section("mcp")                    # a table, as it is written
    config.settings("limits", Limits)        # a table as a pydantic model, `${VAR}` filled in

Later places win: the user's file, the profile's, the project's, the environment, the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .errors import ConfigError
from .expand import Expanded, expand
from .layers import (
    MISSING,
    Layer,
    find,
    leaves,
    merged_all,
    nested,
    read_environment,
    read_file,
)
from .profile import DEFAULT, Profile
from .secrets import is_secret, masked
from .sections import SPELLED, admitted, check_top, known

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .review import Review

    M = TypeVar("M", bound=BaseModel)

FILE = "config.toml"
PROJECT = ".hookline"


class Config:
    """Settings, merged from layers that stay apart underneath."""

    def __init__(
        self,
        home: Path,
        profile: Profile,
        workspace: Path | None,
        overrides: Mapping[str, Any],
        environ: Mapping[str, str],
    ) -> None:
        self.home = home
        self.profiled = profile
        """The profile in use, with its folders."""
        self._workspace: Path | None = workspace
        self._overrides = overrides
        self._environ = environ
        self._declared: dict[str, type[BaseModel]] = {}
        self.reload()

    @classmethod
    def load(
        cls,
        home: Path,
        *,
        workspace: Path | None = None,
        profile: str | None = None,
        project: bool = True,
        overrides: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Config:
        """Read every place. A file that cannot be read or understood is an error that names it.

        `overrides` are tables, as in a file, that win over everything; `project=False` leaves the
        workspace's `.hookline` out. The profile is the one given, or `$HOOKLINE_PROFILE`.
        """
        environ = os.environ if environ is None else environ
        chosen = Profile.find(home, profile or environ.get("HOOKLINE_PROFILE") or DEFAULT)
        return cls(home, chosen, workspace if project else None, overrides or {}, environ)

    def reload(self, workspace: Path | None = None) -> None:
        """Read every place again, and the project of another workspace if one is given.

        What was declared stays. When a file is wrong nothing changes.
        """
        if workspace is None or self._workspace is None:  # without a project, none comes later
            workspace = self._workspace
        project_dir = workspace / PROJECT if workspace is not None else None
        if project_dir is not None and project_dir.absolute() == self.home.absolute():
            project_dir = None  # in the folder above the home, `.hookline` is the user's own
        layers = self._read(project_dir)
        taken, refused = admitted(merged_all(x.values for x in layers if x.origin == "project"))
        values = merged_all(taken if x.origin == "project" else x.values for x in layers)
        check_top(values, layers, self._declared)
        self._workspace, self.project_dir = workspace, project_dir
        self._layers, self._refused, self._values = layers, refused, values
        self._cache: dict[tuple[str, Any], Any] = {}

    def _read(self, project_dir: Path | None) -> list[Layer]:
        layers: list[Layer] = []
        files = [("user", self.home / FILE), ("profile", self.profiled.config_file)]
        if project_dir is not None:
            files.append(("project", project_dir / FILE))
        for origin, path in files:
            values = read_file(path)
            if values is not None:
                layers.append(Layer(cast("Any", origin), values, path))
        below = [SPELLED, *(layer.values for layer in layers)]
        layers.append(read_environment(self._environ, below))
        layers.append(Layer("command line", deepcopy(dict(self._overrides))))
        return layers

    def __repr__(self) -> str:
        return f"Config(home={str(self.home)!r}, profile={self.profile!r})"

    # --- the profile --------------------------------------------------------------------------

    @property
    def profile(self) -> str:
        """The name of the profile in use."""
        return self.profiled.name

    @property
    def profile_dir(self) -> Path:
        """The folder of the profile in use; it need not exist."""
        return self.profiled.dir

    # --- values -------------------------------------------------------------------------------

    def get(self, dotted: str, default: Any = None) -> Any:
        """One setting as it is written, such as `limits.steps`."""
        return deepcopy(find(self._values, dotted, default))

    def section(self, name: str) -> dict[str, Any]:
        """A table as it is written, merged from all places; empty when there is none.

        The name may be dotted. `${VAR}` is not filled in: `settings` does that, or `expand`.
        """
        return self._table(self._values, name)

    def of_user(self, name: str) -> dict[str, Any]:
        """What the user's and the profile's files say of a section, and nobody else."""
        own = [layer.values for layer in self._layers if layer.origin in ("user", "profile")]
        return self._table(merged_all(own), name)

    def own(self, name: str) -> dict[str, Any]:
        """What everybody but the project says of a section: files, environment, command line."""
        return self._table(merged_all(self._own_layers()), name)

    def _own_layers(self) -> list[dict[str, Any]]:
        return [layer.values for layer in self._layers if layer.origin != "project"]

    def of_project(self, name: str) -> dict[str, Any]:
        """What the project's file says of a section: a stranger's words until they are trusted."""
        own = [layer.values for layer in self._layers if layer.origin == "project"]
        return self._table(merged_all(own), name)

    def beside_project(self, name: str) -> dict[str, Any]:
        """What everybody but the project says of a section."""
        own = [layer.values for layer in self._layers if layer.origin != "project"]
        return self._table(merged_all(own), name)

    def disabled_plugins(self) -> list[str]:
        """The plugins that are left out. A project has no say: it might leave out what guards it."""
        names: Any = find(merged_all(self._own_layers()), "plugins.disabled", [])
        if not isinstance(names, list) or not all(isinstance(n, str) for n in cast("list[Any]", names)):
            place = self._place("plugins.disabled")
            raise ConfigError(f"{place}plugins.disabled must be a list of names of plugins")
        return cast("list[str]", names)

    def _table(self, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        found = find(values, name, MISSING)
        if found is MISSING:
            return {}
        if not isinstance(found, dict):
            raise ConfigError(f"{self._place(name)}{name} must be a table, such as [{name}]")
        return deepcopy(cast("dict[str, Any]", found))

    def settings(self, name: str, model: type[M]) -> M:
        """A section as a pydantic model, `${VAR}` filled in; what is wrong is named with its place."""
        key = (name, model)
        if key not in self._cache:
            self._cache[key] = self._checked(name, model)
        return self._cache[key]

    def _checked(self, name: str, model: type[M]) -> M:
        from .checking import faults

        values = expand(self.section(name), self._environ, where=name)
        found = faults(model, values, name)
        if found:
            lines = (f"{self._place(x.dotted)}{x.dotted}: {x.text}" for x in found)
            raise ConfigError("\n".join(lines))
        return model.model_validate(values)

    def expanded(self, name: str) -> dict[str, Mapping[str, Any]]:
        """The tables of a section, each with `${VAR}` filled in when it is read, not before."""
        return {
            key: Expanded(self.section(f"{name}.{key}"), self._environ, f"{name}.{key}")
            for key in self.section(name)
        }

    def source(self, dotted: str) -> str | None:
        """Where a setting stands: a file, a variable of the environment, or the command line."""
        for layer in reversed(self._layers):
            if layer.origin == "project" and dotted.partition(".")[0] in self._refused:
                continue
            if layer.has(dotted):
                return layer.label(dotted)
        return None

    def shown(self, name: str | None = None) -> dict[str, Any]:
        """Every setting as `{dotted name: value}`, with `***` in place of secrets."""
        values = self._values if name is None else nested(name, self.get(name, {}))
        hidden = masked(values, secret=self.is_secret)
        return {dotted: value for dotted, value in leaves(hidden) if value != {}}

    def is_secret(self, dotted: str) -> bool:
        """Whether a setting is never shown: by its name, or because it was declared so."""
        return is_secret(dotted) or any(_matches(at, dotted) for at in self._secret_fields())

    def _secret_fields(self) -> list[str]:
        if not self._declared:
            return []
        from .checking import secrets

        return [at for name, model in self._declared.items() for at in secrets(model, name)]

    # --- what is known ------------------------------------------------------------------------

    def declare(self, name: str, model: type[BaseModel]) -> None:
        """Make a section known, with its form. The name may be dotted: `plugins.mail`."""
        self._declared[name] = model
        self._cache = {key: made for key, made in self._cache.items() if key[0] != name}

    def known(self) -> list[str]:
        """The names that the top of a file may have."""
        return known(self._declared)

    def problems(self, plugins: Iterable[str] = ()) -> list[str]:
        """Everything that is wrong, one line each; `plugins` are the names of those loaded."""
        found = [*self._review().problems(set(plugins))] if self._values else []
        for layer in self._layers:
            if layer.origin == "project":
                told = self._refused.items()
                found += [f"{layer.path}: {name} is not taken from here: {why}" for name, why in told]
        return found

    def check(self, dotted: str, value: Any, *, project: bool = False) -> None:
        """Refuse a setting that means nothing, before it is written anywhere."""
        self._review().check(dotted, value)
        if project and (refused := admitted(nested(dotted, value))[1]):
            reason = refused[dotted.partition(".")[0]]
            raise ConfigError(f"{dotted} cannot be set for a project: {reason}")

    def _review(self) -> Review:
        from .review import Review

        return Review(self._values, self._declared, self._environ, self._place)

    def _place(self, dotted: str) -> str:
        """The place of a setting, or of the table that it is missing in, to begin a message with."""
        while dotted:
            if source := self.source(dotted):
                return f"{source}: "
            dotted = dotted.rpartition(".")[0]
        return ""


def _matches(pattern: str, dotted: str) -> bool:
    parts, names = pattern.split("."), dotted.split(".")
    return len(names) >= len(parts) and all(p in ("*", n) for p, n in zip(parts, names, strict=False))

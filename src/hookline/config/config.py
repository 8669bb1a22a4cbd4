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
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from hookline.errors import ConfigError

from .expand import Expanded, expand
from .layers import (
    MISSING,
    Layer,
    find,
    leaves,
    merged_all,
    nested,
    parse_bytes,
    read_bytes,
    read_environment,
    read_file,
)
from .profile import DEFAULT, Profile
from .project import IgnoredSetting, admitted
from .secrets import is_secret, masked
from .sections import SPELLED, check_top, known
from .user_choices import UserChoices

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .review import Review

    M = TypeVar("M", bound=BaseModel)
    Form: TypeAlias = type[BaseModel] | str

FILE = "config.toml"
PROJECT = ".hookline"
LARGEST_PROJECT = 256_000
"""Bytes that a project's file may have."""
LEAVE_OUT = " (`--no-project` leaves the project out)"

Trusts: TypeAlias = Callable[[Path, bytes], bool]
"""Whether a person trusted the project's file with these bytes."""


class _NoFile(ConfigError):
    """The project's settings file is not a readable regular file."""


class Config(UserChoices):
    """Settings, merged from layers that stay apart underneath."""

    def __init__(
        self,
        home: Path,
        profile: Profile,
        workspace: Path | None,
        overrides: Mapping[str, Any],
        environ: Mapping[str, str],
        trusts: Trusts,
    ) -> None:
        self.home = home
        self.profiled = profile
        """The profile in use, with its folders."""
        self._workspace: Path | None = workspace
        self._overrides = overrides
        self._environ = environ
        self._trusts = trusts
        self.project_dir: Path | None = None
        self.trusted = False
        """Whether the project's file counts as one that a person has trusted."""
        self.inert: list[IgnoredSetting] = []
        """What the project's file says that does not count."""
        self.fault = ""
        """Why the project's file counts for nothing."""
        self._written: dict[str, Any] = {}
        self._declared: dict[str, Form] = {}
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
        trusts: Trusts = lambda path, content: False,
    ) -> Config:
        """Read every place. A file that cannot be read or understood is an error that names it.

        `overrides` are tables, as in a file, that win over everything; `project=False` leaves the
        workspace's `.hookline` out. The profile is the one given, or `$HOOKLINE_PROFILE`. `trusts`
        says whether a person trusted the project's file with these bytes; without it nobody did.
        """
        environ = os.environ if environ is None else environ
        chosen = Profile.find(home, profile or environ.get("HOOKLINE_PROFILE") or DEFAULT)
        return cls(home, chosen, workspace if project else None, overrides or {}, environ, trusts)

    def reload(self, workspace: Path | None = None) -> None:
        """Read every place again, and the project of another workspace if one is given.

        What was declared stays. When a file is wrong nothing changes; but a project's file that was
        read before and is wrong now, or is no regular file in the project, counts for nothing, and
        `fault` says why.
        """
        if workspace is None or self._workspace is None:  # without a project, none comes later
            workspace = self._workspace
        project_dir = workspace / PROJECT if workspace is not None else None
        if project_dir is not None and project_dir.absolute() == self.home.absolute():
            project_dir = None  # in the folder above the home, `.hookline` is the user's own
        project, fault = None, ""
        try:
            project = self._read_project(project_dir)
        except _NoFile as error:
            fault = str(error)
        except ConfigError as error:
            if project_dir is None or project_dir != self.project_dir:
                raise
            fault = str(error)
        self._take(project_dir, project)
        self._workspace, self.project_dir, self.fault = workspace, project_dir, fault
        self._cache: dict[tuple[str, Any], Any] = {}

    def _read_project(self, project_dir: Path | None) -> tuple[bytes, dict[str, Any]] | None:
        """The bytes of the project's file and their contents, from one read."""
        if project_dir is None:
            return None
        path = project_dir / FILE
        try:
            real, root = path.resolve(), project_dir.parent.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise _NoFile(f"cannot read {path}: {error}; it is inert") from None
        if not real.is_relative_to(root):
            if not os.path.lexists(path):
                return None
            raise _NoFile(f"{path} leads out of the project to {real}; it is inert")
        try:
            data = read_bytes(real, LARGEST_PROJECT)
        except ConfigError as error:
            raise _NoFile(f"{error}; it is inert") from None
        try:
            return None if data is None else (data, parse_bytes(data, path))
        except ConfigError as error:
            raise ConfigError(f"{error}{LEAVE_OUT}") from None

    def _take(self, project_dir: Path | None, project: tuple[bytes, dict[str, Any]] | None) -> None:
        """Read the user's places and put everything together."""
        below = self._read()
        content, written = project or (b"", {})
        above = self._above(below)
        own = merged_all(layer.values for layer in (*below, *above))
        trusted, inert = False, list[IgnoredSetting]()
        if project_dir is not None and written:
            path = project_dir / FILE
            folder = project_dir.parent
            counts, inert = admitted(written, own, folder=folder)
            # asking for trust reads every file that a command of the project reaches
            trusted = any(each.waits for each in inert) and self._trusts(path, content)
            if trusted:
                counts, inert = admitted(written, own, trusted=True, folder=folder)
            below.append(Layer("project", counts, path))
            above = self._above(below)
        layers = [*below, *above]
        values = merged_all(layer.values for layer in layers)
        check_top(values, layers, self._declared)
        self._layers, self._values, self._written = layers, values, written
        self.trusted, self.inert = trusted, inert

    def _read(self) -> list[Layer]:
        """The files of the user."""
        layers: list[Layer] = []
        files = [("user", self.home / FILE), ("profile", self.profiled.config_file)]
        for origin, path in files:
            values = read_file(path)
            if values is not None:
                layers.append(Layer(cast("Any", origin), values, path))
        return layers

    @classmethod
    def fixed(cls, home: Path, values: Mapping[str, Any] | None = None) -> Config:
        """Settings that are given in code. No file and no environment variable counts."""
        return _FixedConfig(home, Profile(DEFAULT, home), None, values or {}, {}, _trusts_nothing)

    def _above(self, below: list[Layer]) -> list[Layer]:
        """What wins over files; variables find the names that files use."""
        environment = read_environment(self._environ, [SPELLED, *(layer.values for layer in below)])
        return [environment, Layer("command line", deepcopy(dict(self._overrides)))]

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
        """One setting as written, such as `limits.steps`."""
        found = find(self._values, dotted, default)
        return found if type(found) in (str, int, bool, type(None)) else deepcopy(found)

    def section(self, name: str) -> dict[str, Any]:
        """A table as it is written, merged from all places; empty when there is none.

        The name may be dotted. `${VAR}` is not filled in: `settings` does that, or `expand`.
        """
        return self._table(self._values, name)

    def of_user(self, name: str) -> dict[str, Any]:
        """A section of the user's and the profile's files only."""
        own = [layer.values for layer in self._layers if layer.origin in ("user", "profile")]
        return self._table(merged_all(own), name)

    def own(self, name: str) -> dict[str, Any]:
        """What every place but the project says of a section."""
        return self._table(self.own_values(), name)

    def own_values(self) -> dict[str, Any]:
        """The settings of every place but the project."""
        return merged_all(layer.values for layer in self._layers if layer.origin != "project")

    def of_project(self, name: str) -> dict[str, Any]:
        """What counts of what the project's file says of a section."""
        own = [layer.values for layer in self._layers if layer.origin == "project"]
        return self._table(merged_all(own), name)

    def written_in_project(self, name: str) -> dict[str, Any]:
        """What the project's file says of a section, to be shown and for nothing else."""
        found = find(self._written, name, {})
        return deepcopy(cast("dict[str, Any]", found)) if isinstance(found, dict) else {}

    def settings(self, name: str, model: type[M]) -> M:
        """A section as a pydantic model, with `${VAR}` expanded; errors name their source."""
        key = (name, model)
        if key not in self._cache:
            self._cache[key] = self._checked(name, model)
        return self._cache[key]

    def _checked(self, name: str, model: type[M]) -> M:
        from .validation import faults

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
        """The source of a setting: a file, an environment variable, or the command line."""
        for layer in reversed(self._layers):
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
        present = [name for name in self._declared if find(self._values, name, MISSING) is not MISSING]
        if not present:
            return []
        from .validation import form_of, secrets

        forms = [(name, form_of(self._declared[name])) for name in present]
        return [at for name, form in forms if form is not None for at in secrets(form, name)]

    # --- what is known ------------------------------------------------------------------------

    def declare(self, name: str, model: Form) -> None:
        """Make a section known, with its form. The name may be dotted: `plugins.mail`.

        `module:Class` is imported when the section is checked; an empty text allows any form.
        """
        self._declared[name] = model
        self._cache = {key: made for key, made in self._cache.items() if key[0] != name}

    def known(self) -> list[str]:
        """The names that the top of a file may have."""
        return known(self._declared)

    def unread(self) -> list[str]:
        """The sections that nothing which is loaded declares."""
        known = self.known()
        unread = [name for name in self._values if name not in known]
        if "hooks.commands" not in self._declared and self.get("hooks.commands"):
            unread.append("hooks.commands")
        return unread

    def problems(self, plugins: Iterable[str] = ()) -> list[str]:
        """Everything that is wrong, one line each; `plugins` are the names of those loaded.

        What is inert in a project's file is not wrong: `inert_lines` has it.
        """
        found = [*self._review().problems(set(plugins))] if self._values else []
        return [*found, self.fault] if self.fault else found

    def inert_lines(self, most: int | None = None) -> list[str]:
        """What the project's file sets without effect, and why, in at most this many lines."""
        if self.project_dir is None:
            return []
        path = self.project_dir / FILE
        lines = [f"{path}: {each.dotted} is inert: {each.reason}" for each in self.inert]
        if most is not None and len(lines) > most:
            lines = [*lines[: most - 1], f"{path}: {len(lines) - most + 1} more settings are inert"]
        return lines

    def check(self, dotted: str, value: Any, *, project: bool = False) -> None:
        """Refuse a setting that means nothing, before it is written anywhere."""
        self._review().check(dotted, value)
        if not project or self.project_dir is None:
            return
        own = self.own_values()
        inert = admitted(nested(dotted, value), own, trusted=True, folder=self.project_dir.parent)[1]
        if inert:
            raise ConfigError(f"{dotted} cannot be set for a project: {inert[0].reason}")

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


class _FixedConfig(Config):
    """Settings that no file can change."""

    def _read(self) -> list[Layer]:
        return []


def _trusts_nothing(path: Path, content: bytes) -> bool:
    return False

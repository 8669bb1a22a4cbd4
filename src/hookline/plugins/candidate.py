"""Candidates: plugins that were found, and what their manifests say, before they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import PluginError
from hookline.hooks.errors import error_text
from hookline.hookspecs import API_VERSION
from hookline.text.requirement import HOOKLINE, Requirement

from .packages import GROUP, EntryPoint

if TYPE_CHECKING:
    from hookline.specs import PluginManifest

ORDER = 5000
"""The place of a plugin that states none."""


class Candidate:
    """A plugin of an installed package, known by its entry point and by what its manifest says."""

    def __init__(self, entry: EntryPoint, manifest: EntryPoint | None = None) -> None:
        self.entry = entry
        self.name = entry.name
        self.own = entry.own
        """Whether it comes with Hookline."""
        self._factory = manifest
        self.placed: int | None = None
        """The order that the settings give it."""

    @cached_property
    def _answer(self) -> dict[str, Any] | PluginError | None:
        """What the manifest's factory gave, when it was first asked: a disabled plugin is not."""
        if self._factory is None:
            return None
        try:
            return said_by(self._factory)
        except (Exception, SystemExit) as error:
            reason = error_text(error)
            wrong = PluginError(f"its manifest {self._factory.value} cannot be read: {reason}")
            wrong.__cause__ = error
            return wrong

    @property
    def error(self) -> PluginError | None:
        """Why its manifest could not be read."""
        return self._answer if isinstance(self._answer, PluginError) else None

    @property
    def said(self) -> dict[str, Any] | None:
        """Its manifest as plain data; None if it has none."""
        return self._answer if isinstance(self._answer, dict) else None

    @property
    def version(self) -> str:
        """The manifest's version, or the distribution's."""
        return str((self.said or {}).get("version") or self.entry.version)

    @property
    def states_order(self) -> bool:
        """Whether its place was chosen, by its author or by the settings."""
        return self.placed is not None or "order" in (self.said or {})

    @property
    def order(self) -> int:
        """Its place: lower loads first."""
        if self.placed is not None:
            return self.placed
        order = (self.said or {}).get("order", ORDER)
        return order if isinstance(order, int) else ORDER

    @property
    def requirements(self) -> list[Requirement]:
        """Its requirements, with versions."""
        return [Requirement.read(text) for text in strings((self.said or {}).get("requires"))]

    @property
    def requires(self) -> list[str]:
        """The plugins that it needs."""
        return [required.name for required in self.requirements if required.name != HOOKLINE]

    @property
    def provides(self) -> list[str]:
        """What its manifest says it provides."""
        return strings((self.said or {}).get("provides"))

    @property
    def namespaces(self) -> list[str]:
        """The namespaces of tools that it claims."""
        return strings((self.said or {}).get("namespaces"))

    @property
    def settings(self) -> dict[str, str]:
        """The sections of the settings that it reads, each with the class that has its form."""
        given = (self.said or {}).get("settings")
        return dict(cast("Mapping[str, str]", given)) if isinstance(given, Mapping) else {}

    @property
    def required(self) -> bool:
        """Whether its manifest says that nothing may run without it."""
        return (self.said or {}).get("required") is True

    @property
    def has_cli(self) -> bool:
        """Whether it may add commands to the command line; unknown without a manifest."""
        return self.said is None or "cli" in self.provides

    @property
    def in_order(self) -> bool:
        """Whether its manifest fits this release as far as can be seen without checking it whole.

        The whole check needs pydantic, which would double the time in which the command line starts.
        """
        if self.error is not None:
            return False
        return self.said is None or self._fits

    @property
    def _fits(self) -> bool:
        said = str((self.said or {}).get("api_version", API_VERSION))
        return said.partition(".")[0] == API_VERSION.partition(".")[0]

    @cached_property
    def manifest(self) -> PluginManifest | None:
        """The validated manifest; None if there is none. Raises if it is invalid."""
        if self.error is not None:
            raise self.error
        if self.said is None:
            return None
        from pydantic import ValidationError

        from hookline.specs import PluginManifest

        try:
            manifest = PluginManifest.model_validate(self.said)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the whole"
            raise PluginError(f"its manifest is wrong at {field}: {first['msg']}") from error
        if manifest.name != self.name:
            raise PluginError(
                f"its manifest says name {manifest.name!r} and its entry point {self.name!r}; "
                "make them the same"
            )
        if not self._fits:
            raise PluginError(
                f"it is written for plugin api {manifest.api_version}, and this is {API_VERSION}; "
                f"install a version of {self.entry.distribution} for api {API_VERSION}"
            )
        return manifest


def strings(value: Any) -> list[str]:
    """The strings of a list; none if it is something else."""
    if not isinstance(value, list | tuple):
        return []
    return [str(item) for item in cast("Iterable[Any]", value)]


def candidates(entries: Iterable[EntryPoint]) -> tuple[list[Candidate], list[tuple[str, PluginError]]]:
    """The plugins among entry points, each with its manifest; and the names that cannot be used."""
    plugins: dict[str, EntryPoint] = {}
    manifests: dict[tuple[str, str], EntryPoint] = {}
    wrong: list[tuple[str, PluginError]] = []
    for entry in entries:
        if entry.group != GROUP:
            manifests[entry.distribution, entry.name] = entry
        elif entry.name in plugins:
            clash = f"both {plugins[entry.name]} and {entry} bring a plugin of this name; remove one"
            wrong.append((entry.name, PluginError(clash)))
        else:
            plugins[entry.name] = entry
    found = [
        Candidate(entry, manifests.pop((entry.distribution, entry.name), None))
        for entry in plugins.values()
    ]
    wrong += [
        (name, PluginError(f"{entry} has a manifest of this name, but no entry point in [{GROUP}]"))
        for (_, name), entry in manifests.items()
        if name not in plugins
    ]
    return found, wrong


def said_by(entry: EntryPoint) -> dict[str, Any]:
    """The result of a manifest factory: a mapping, or a `PluginManifest`."""
    given: Any = entry.named_in(module_at(entry) if entry.own else module_alone(entry.module))
    if callable(given):
        given = cast("Callable[[], Any]", given)()
    if hasattr(given, "model_dump"):
        given = given.model_dump(mode="json", exclude_unset=True)
    if not isinstance(given, Mapping):
        raise PluginError(f"it must give a mapping or a PluginManifest, not {given!r}")
    return dict(cast("Mapping[str, Any]", given))


@cache
def module_at(entry: EntryPoint) -> ModuleType:
    """The module of an own entry point, read from its file: quicker than to look for it."""
    spec = spec_from_file_location(entry.module, f"{entry.path}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_alone(name: str) -> ModuleType:
    """Import a module alone, without its parent packages.

    So a manifest can live next to its plugin without running any of the plugin's code.
    """
    if name in sys.modules:
        return sys.modules[name]
    from .verified import spec_within

    top, *rest = name.split(".")
    spec = find_spec(top)
    for end in range(len(rest)):
        if spec is None or spec.submodule_search_locations is None:
            break
        below = ".".join([top, *rest[: end + 1]])
        spec = spec_within(below, [*spec.submodule_search_locations])
    if spec is None or spec.loader is None or spec.name != name:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

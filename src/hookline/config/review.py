"""A review of the settings: every error, and what could be added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import ConfigError
from hookline.hooks.errors import suggestion

from .expand import expand
from .layers import MISSING, find, leaves, merged, nested
from .schema import CORE
from .sections import SCALARS, check_top, known
from .validation import SettingError, faults, form_of

if TYPE_CHECKING:
    from .config import Form


class Review:
    """Checks the settings; `place` names the source of one, to start a message with."""

    def __init__(
        self,
        values: Mapping[str, Any],
        declared: Mapping[str, Form],
        environ: Mapping[str, str],
        place: Callable[[str], str],
    ) -> None:
        self._values = values
        self._declared = declared
        self._environ = environ
        self._place = place

    def problems(self, plugins: set[str]) -> Iterator[str]:
        """A line for each thing that is wrong; `plugins` are the names of those loaded."""
        yield from self._unknown_sections()
        yield from self._unknown_plugins(plugins)
        for name, model in {**CORE, **self._declared}.items():
            for fault in self._faults(name, model):
                yield f"{self._place(fault.dotted)}{fault.dotted}: {fault.text}"
        for dotted, value in leaves(self._values):
            try:
                expand(value, self._environ, where=dotted)
            except ConfigError as error:
                yield f"{self._place(dotted)}{error}"

    def _unknown_sections(self) -> Iterator[str]:
        names = known(self._declared)
        for name, value in self._values.items():
            if name not in names:
                what = "section" if isinstance(value, dict) else "setting"
                yield (
                    f"{self._place(name)}unknown {what} {name!r}{suggestion(name, names)} "
                    "(no plugin that is loaded declares it)"
                )

    def _unknown_plugins(self, plugins: set[str]) -> Iterator[str]:
        given: Any = self._values.get("plugins")
        tables = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        names = {n.partition(".")[2] for n in self._declared if n.startswith("plugins.")} | plugins
        for name, value in tables.items():
            if isinstance(value, dict) and name not in names and name != "order":
                at = f"plugins.{name}"
                near = suggestion(name, names)
                yield f"{self._place(at)}{at}: no plugin {name!r} is loaded{near}"

    def _faults(self, name: str, declared: Form) -> list[SettingError]:
        table = find(self._values, name, MISSING)
        if table is MISSING:
            return []
        if not isinstance(table, dict):
            return [SettingError(name, f"must be a table, such as [{name}]")]
        model = form_of(declared)
        found = faults(model, cast("dict[str, Any]", table), name) if model else []
        # A reference is checked when it is used: its value may be a number.
        return [fault for fault in found if "${" not in str(find(self._values, fault.dotted, ""))]

    def check(self, dotted: str, value: Any) -> None:
        """Refuse a setting that means nothing."""
        name = dotted.partition(".")[0]
        names = known(self._declared)
        if not all(dotted.split(".")):
            raise ConfigError(f"{dotted!r} is no name of a setting: write model, or limits.steps")
        if name not in names:
            raise ConfigError(f"unknown setting {dotted!r}{suggestion(name, names)}")
        if name in SCALARS or dotted in names:
            check_top(nested(dotted, value), [], self._declared)
        after = merged(self._values, nested(dotted, value))
        for section, declared in {**CORE, **self._declared}.items():
            table = find(after, section)
            if not isinstance(table, dict) or not _related(section, dotted):
                continue
            model = form_of(declared)
            if model is None:
                continue
            for fault in faults(model, cast("dict[str, Any]", table), section):
                if _related(fault.dotted, dotted) and "${" not in str(value):
                    raise ConfigError(f"{fault.dotted}: {fault.text}")


def _related(one: str, other: str) -> bool:
    """Whether two dotted names are one, or one lies in the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")

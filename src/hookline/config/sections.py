"""The sections of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hookline.errors import ConfigError
from hookline.hooks.errors import suggestion

if TYPE_CHECKING:
    from .layers import Layer

THINKING = ("off", "low", "medium", "high")

SCALARS = {"model": "the model that answers", "thinking": "how long it thinks first"}
"""The settings that stand above all tables; both are texts."""

CHECKED = ("compaction", "hooks", "limits", "plugins", "providers", "streaming")
"""The sections that `schema` defines."""

OPEN = ("agents", "audit", "options", "policy", "redaction", "sandbox", "tape")
"""The sections of Hookline itself whose form is declared by the code that reads them."""

SPELLED: Mapping[str, Any] = {"providers": {"openai-compatible": {}}}
"""Names with a hyphen, for variables of the environment, which have none."""


def known(declared: Iterable[str]) -> list[str]:
    """The allowed top-level names, including declared ones."""
    return [*SCALARS, *CHECKED, *OPEN, *(name.partition(".")[0] for name in declared)]


def check_top(values: Mapping[str, Any], layers: Sequence[Layer], declared: Iterable[str]) -> None:
    """Refuse what cannot be anybody's section: an unknown name that is no table, and wrong kinds."""
    names = known(declared)
    for name, value in values.items():
        owner = next((layer for layer in reversed(layers) if layer.has(name)), None)
        place = f"{owner.label(name)}: " if owner else ""
        if name in SCALARS:
            _check_scalar(name, value, place)
        elif isinstance(value, dict):
            continue  # a plugin that is not loaded may own it: a review tells
        elif name in names:
            raise ConfigError(f"{place}{name} must be a table, such as [{name}]")
        elif (
            owner is None or owner.origin != "environment"
        ):  # the variable may belong to another program
            raise ConfigError(
                f"{place}unknown setting {name!r}{suggestion(name, names)}; a plugin's section must be "
                f"a table, such as [{name}]"
            )


def _check_scalar(name: str, value: Any, place: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{place}{name} must be a text, {SCALARS[name]}")
    if name == "thinking" and value not in THINKING:
        levels = ", ".join(THINKING)
        raise ConfigError(f"{place}thinking must be one of {levels}{suggestion(value, THINKING)}")

"""Settings that the user decides on: a project has no say, or can only make them stricter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from hookline.errors import ConfigError

from .layers import MISSING, find


class UserChoices(ABC):
    """Which plugins take part, and what their failures lead to."""

    @abstractmethod
    def own_values(self) -> dict[str, Any]:
        """The settings without the project's."""

    @abstractmethod
    def of_project(self, name: str) -> dict[str, Any]:
        """A section of the project's settings."""

    @abstractmethod
    def _place(self, dotted: str) -> str:
        """Where a setting stands, as the start of an error message."""

    def disabled_plugins(self) -> list[str]:
        """The plugins that are left out. A project has no say: it might leave out what guards it."""
        return self._own_plugins("plugins.disabled")

    def required_plugins(self) -> list[str]:
        """What nothing may run without. A project has no say in it."""
        return self._own_plugins("plugins.required")

    def on_load_error(self) -> str:
        """Whether a run stops or continues without something that cannot be loaded. A project cannot
        set it.
        """
        return self._choice(self.own_values(), "plugins.on_load_error", "stop", "continue")

    def on_gate_error(self) -> str:
        """Whether a gate ignores a handler that raises, or denies. A project can only set "deny"."""
        places = self.own_values(), {"hooks": self.of_project("hooks")}
        said = [self._choice(values, "hooks.on_gate_error", "allow", "deny") for values in places]
        return "deny" if "deny" in said else "allow"

    def _choice(self, values: Mapping[str, Any], key: str, default: str, other: str) -> str:
        chosen: Any = find(values, key, default)
        if chosen not in (default, other):
            raise ConfigError(f'{self._place(key)}{key} must be "{default}" or "{other}"')
        return chosen

    def plugin_pinning(self) -> tuple[bool, list[str]]:
        """Whether only plugins in the lock file load, and which are not compared with it.

        A project has no say in either.
        """
        required: Any = find(self.own_values(), "plugins.require_lock", False)
        if not isinstance(required, bool):
            place = self._place("plugins.require_lock")
            raise ConfigError(f"{place}plugins.require_lock must be true or false")
        return required, self._own_plugins("plugins.unpinned")

    def plugin_orders(self) -> dict[str, int]:
        """The orders that replace those of the plugins' manifests. A project has no say in it."""
        orders = self._table(self.own_values(), "plugins.order")
        for name, order in orders.items():
            if type(order) is not int or not 0 <= order <= 10000:
                key = f"plugins.order.{name}"
                raise ConfigError(f"{self._place(key)}{key} must be a whole number from 0 to 10000")
        return orders

    def _own_plugins(self, key: str) -> list[str]:
        names: Any = find(self.own_values(), key, [])
        if not isinstance(names, list) or not all(isinstance(n, str) for n in cast("list[Any]", names)):
            raise ConfigError(f"{self._place(key)}{key} must be a list of names of plugins")
        return cast("list[str]", names)

    def _table(self, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        found = find(values, name, MISSING)
        if found is MISSING:
            return {}
        if not isinstance(found, dict):
            raise ConfigError(f"{self._place(name)}{name} must be a table, such as [{name}]")
        return deepcopy(cast("dict[str, Any]", found))

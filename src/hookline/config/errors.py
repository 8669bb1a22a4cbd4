"""What can be wrong with a configuration."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion


class ConfigError(HooklineError, ValueError):
    """A setting or a file of settings that cannot be used; the message says where it is."""


class MissingVariable(ConfigError):
    """A `${VAR}` whose variable is not set."""

    def __init__(self, variable: str, where: str = "") -> None:
        place = f" ({where})" if where else ""
        super().__init__(
            f"the environment variable {variable} is not set, and the configuration refers to it "
            f"as ${{{variable}}}{place}: set it, or write the value itself"
        )
        self.variable = variable


class UnknownProfile(ConfigError):
    """A profile that nobody made."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        known = list(known)
        there = f"there is {', '.join(known)}" if known else "there is none but the default"
        super().__init__(
            f"unknown profile {name!r}{suggestion(name, known)}\n{there}; "
            f"make it: hookline config set --profile {name} model MODEL"
        )
        self.name = name

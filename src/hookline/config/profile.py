"""Profiles: one person's several ways of working, each with its own settings, hooks and skills."""

from __future__ import annotations

import re
from pathlib import Path

from hookline.errors import ConfigError
from hookline.hooks.errors import suggestion

DEFAULT = "default"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"


class Profile:
    """A folder of the home for one way of working. The default one need not exist."""

    __slots__ = ("dir", "name")

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.dir = folder

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {str(self.dir)!r})"

    @classmethod
    def of(cls, home: Path, name: str = DEFAULT) -> Profile:
        """The profile of that name, whether or not it exists."""
        if name != DEFAULT and not re.match(_NAME, name):
            raise ConfigError(
                f"{name!r} cannot be the name of a profile: use letters, digits, '-', '_' and '.'"
            )
        return cls(name, home / "profiles" / name)

    @classmethod
    def find(cls, home: Path, name: str = DEFAULT) -> Profile:
        """The profile of that name, which must exist unless it is the default."""
        profile = cls.of(home, name)
        if name != DEFAULT and not profile.dir.is_dir():
            known = profiles(home)
            there = f"there is {', '.join(known)}" if known else "there is none but the default"
            raise ConfigError(
                f"unknown profile {name!r}{suggestion(name, known)}\n{there}; "
                f"make it: hookline config set --profile {name} model MODEL"
            )
        return profile

    @property
    def config_file(self) -> Path:
        """Its settings, above those of the user."""
        return self.dir / "config.toml"

    @property
    def hooks_dir(self) -> Path:
        """Its hook files."""
        return self.dir / "hooks"


def profiles(home: Path) -> list[str]:
    """The profiles that there are."""
    try:
        return sorted(each.name for each in (home / "profiles").iterdir() if each.is_dir())
    except OSError:
        return []

"""Requirements: which plugin another one needs, and in which versions (PEP 440).

`"other"`, `"other>=1.2,<2"`. The name `hookline` stands for Hookline itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HOOKLINE = "hookline"
_FORM = r"(?s)\s*([A-Za-z0-9_][A-Za-z0-9_.:/-]*)\s*(.*?)\s*"


class Requirement(NamedTuple):
    """A plugin's name, and its accepted versions; any by default."""

    name: str
    versions: str = ""

    @classmethod
    def read(cls, text: str) -> Requirement:
        """Parse a requirement; `check` reports errors."""
        found = re.fullmatch(_FORM, text)
        return cls(*found.groups()) if found else cls("", text)

    def check(self) -> None:
        """Raise `ValueError` for an invalid requirement."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(self.versions)
        except InvalidSpecifier:
            self._refuse()
        if not self.name:
            self._refuse()

    def _refuse(self) -> None:
        raise ValueError(
            f"{self.name + self.versions!r} is no requirement; write the name of a plugin and the "
            "versions that will do, such as 'other' or 'other>=1.2,<2'"
        ) from None

    def problem(self, version: str) -> str:
        """Why an installed version will not do; nothing if it will."""
        if not self.versions:
            return ""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet
        from packaging.version import InvalidVersion, Version

        try:
            Version(version)
            fits = SpecifierSet(self.versions).contains(version, prereleases=True)
        except InvalidVersion:
            return f"its version {version!r} cannot be compared: PEP 440 has no such version"
        except InvalidSpecifier:
            return "that is no range of versions"
        return "" if fits else f"version {version} is installed"

    def __str__(self) -> str:
        return f"{self.name!r} {self.versions}".strip()


def hookline_version() -> str:
    """The version of Hookline and of the plugins that come with it."""
    from importlib.metadata import version

    return version("hookline")

"""Imports of pinned plugins: only bytes with the pinned hash run.

A finder in front of all others handles imports from the packages of pinned plugins. A source file is
hashed when it is read to be compiled. Its bytecode is kept in the user's home: a `.pyc` in the plugin's
`__pycache__`, which Python would run without looking at the source, is never read. A module that is
found anywhere but in its pinned place, as in a folder that was put first on the path, is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

from hookline.errors import UnpinnedImport


class VerifiedFinder:
    """Finds the modules of pinned packages, and lets through only what is pinned.

    Not an `importlib.abc.MetaPathFinder`: importing that takes longer than all that is done here.
    """

    def __init__(self) -> None:
        self._tops: frozenset[str] = frozenset()
        self._packages: dict[str, dict[str, str]] = {}
        """The pinned files with their hashes, for each package."""
        self._caches: dict[str, str] = {}

    def pin(self, packages: Sequence[str], files: dict[str, str], cache: Path) -> None:
        """Let these packages come from these files alone; `cache` is where their bytecode goes."""
        known = {os.path.abspath(place): digest for place, digest in files.items()}  # noqa: PTH100
        for package in packages:
            self._packages[package] = known
            self._caches[package] = str(cache)
        self._tops = frozenset(name.partition(".")[0] for name in self._packages)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a pinned module; None for all others."""
        if fullname.partition(".")[0] not in self._tops:
            return None
        package = self._package_of(fullname)
        if package is None:
            return None
        spec = _other_spec(self, fullname, path, target)
        if spec is None or spec.origin is None:  # a namespace, in which others are looked up again
            return spec
        origin = os.path.abspath(spec.origin)  # noqa: PTH100
        expected = self._packages[package].get(origin)
        if expected is None:
            raise UnpinnedImport(
                f"{spec.origin} is not pinned in plugins.lock; `hookline plugins verify` tells more",
                name=fullname,
                path=spec.origin,
            )
        if type(spec.loader) is SourceFileLoader:
            spec.loader = VerifiedLoader(fullname, spec.origin, expected, self._caches[package])
            spec.cached = None
        else:  # a compiled module, which the system loads from the file
            check(Path(origin).read_bytes(), expected, origin, fullname)
        return spec

    def _package_of(self, fullname: str) -> str | None:
        name = fullname
        while name:
            if name in self._packages:
                return name
            name = name.rpartition(".")[0]
        return None


class VerifiedLoader(SourceFileLoader):
    """Compiles a source file whose hash is known, and keeps the bytecode in the user's home."""

    def __init__(self, fullname: str, path: str, expected: str, cache: str) -> None:
        super().__init__(fullname, path)
        self._expected = expected
        self._cache = cache

    def get_code(self, fullname: str):
        """The code of the module. The prefix is the process's: another thread may use it meanwhile."""
        before = sys.pycache_prefix
        sys.pycache_prefix = self._cache
        try:
            return super().get_code(fullname)
        finally:
            sys.pycache_prefix = before

    def get_data(self, path: str) -> bytes:
        """The bytes of the source, or of our own bytecode."""
        data = super().get_data(path)
        if path == self.path:
            check(data, self._expected, path, self.name)
        elif not path.startswith(self._cache):
            raise OSError(f"{path} is not read: only bytecode in {self._cache} is")
        return data


def check(data: bytes, expected: str, place: str, fullname: str) -> None:
    """Refuse bytes that have another hash."""
    import hashlib

    if hashlib.sha256(data).hexdigest() != expected:
        raise UnpinnedImport(
            f"{place} was changed since it was pinned in plugins.lock; "
            "`hookline plugins lock` shows what changed",
            name=fullname,
            path=place,
        )


def spec_within(fullname: str, locations: Sequence[str]) -> ModuleSpec | None:
    """The spec of a module in a package that need not be imported."""
    return FINDER.find_spec(fullname, locations) or PathFinder.find_spec(fullname, locations)


def _other_spec(
    finder: VerifiedFinder, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for other in sys.meta_path:
        if other is not finder:
            spec = other.find_spec(fullname, path, target)
            if spec is not None:
                return spec
    return None


FINDER = VerifiedFinder()
"""The one finder of this process."""

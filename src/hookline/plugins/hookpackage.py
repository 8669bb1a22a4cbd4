"""The private package of a folder of hook files: siblings import each other, and nobody else them.

Its modules are made from bytes that were read once and judged; the import system never reads the
folder itself. Each loading makes a package of another name, so that the old one stays whole for what
is still running, and two folders never see each other's modules.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from hookline.errors import SourceError

from .sources import FileSource

PREFIX = "hookline_hook_files_"
_counter = count(1)

Judge = Callable[[FileSource], None]
"""Raises if a file may not run."""


class HookPackage:
    """The modules of one folder, as they were when the folder was read."""

    def __init__(
        self, folder: Path, sources: Iterable[FileSource], judge: Judge, owner: object
    ) -> None:
        """Make the package; its modules go with `owner`, so `judge` must not refer to that."""
        self.name = f"{PREFIX}{next(_counter)}"
        self.folder = folder
        self.judge = judge
        self.modules: dict[str, FileSource | None] = {self.name: None}
        """By module name; None for a folder without an `__init__.py`."""
        for source in sources:
            self._add(source)
        _Finder.packages[self.name] = self
        self.close = weakref.finalize(owner, _forget, self.name, self.modules)
        """Forget its modules; functions that are still referenced keep working."""
        self.close.atexit = False
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.append(_Finder())

    def _add(self, source: FileSource) -> None:
        parts = [*source.path.relative_to(self.folder).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        if is_package:
            parts.pop()
        for end in range(1, len(parts)):
            self.modules.setdefault(".".join([self.name, *parts[:end]]), None)
        name = ".".join([self.name, *parts])
        if is_package or not isinstance(self.modules.get(name), FileSource):
            self.modules[name] = source

    def module_name(self, source: FileSource) -> str:
        """The name under which a file of the folder itself is imported."""
        return f"{self.name}.{source.path.stem}"

    def load(self, source: FileSource) -> ModuleType:
        """Import one file of the folder itself; one that fails leaves no module behind."""
        from importlib import import_module

        return import_module(self.module_name(source))


def _forget(package: str, modules: Iterable[str]) -> None:
    _Finder.packages.pop(package, None)
    for name in modules:
        sys.modules.pop(name, None)


class _Finder(MetaPathFinder):
    """Finds the modules of hook packages; asked last, and only about names that are theirs."""

    packages: dict[str, HookPackage] = {}  # noqa: RUF012  (shared on purpose)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(PREFIX):
            return None
        package = self.packages.get(fullname.partition(".")[0])
        if package is None or fullname not in package.modules:
            return None
        source = package.modules[fullname]
        is_package = any(name.startswith(f"{fullname}.") for name in package.modules) or (
            source is None or source.path.name == "__init__.py"
        )
        spec = ModuleSpec(fullname, _Loader(package, source), is_package=is_package)
        if source is not None:
            spec.origin, spec.has_location = str(source.path), True
        return spec


class _Loader(InspectLoader):
    """Makes a module from the bytes that its package holds."""

    def __init__(self, package: HookPackage, source: FileSource | None) -> None:
        self.package = package
        self.source = source

    def get_source(self, fullname: str) -> str | None:
        """The text, for tracebacks."""
        from importlib.util import decode_source

        return decode_source(self.source.content) if self.source else ""

    def get_code(self, fullname: str) -> CodeType | None:
        """The code, compiled from the judged bytes."""
        if self.source is None:
            return compile("", f"<{self.package.folder}>", "exec")
        try:
            self.package.judge(self.source)
        except SourceError as error:
            raise ImportError(str(error), name=fullname, path=str(self.source.path)) from error
        code: Any = compile(self.source.content, str(self.source.path), "exec", dont_inherit=True)
        return code

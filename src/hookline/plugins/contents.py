"""What an installed distribution consists of: its files as they are on the disk, each with its hash.

RECORD is not trusted: every file is read. Files in the packages of the distribution that RECORD does
not list count too, because they can be imported. The packages of an editable install are hashed where
they are. `__pycache__` is left out: `verified` never reads it for a plugin.
"""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from .packages import EntryPoint, names_in, normal

LEFT_OUT = ("__pycache__", ".git", ".hg", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv")
ABOUT = ("METADATA", "PKG-INFO", "entry_points.txt", "direct_url.json")
"""The metadata that describes the plugin; other files differ from one installation to the next."""


@dataclass(frozen=True, slots=True)
class Contents:
    """A distribution as it is installed."""

    name: str
    version: str
    files: dict[str, str]
    """The SHA-256 of each file, by its path within the place it is installed in."""
    entry_points: dict[str, str]
    hooks: list[str]
    """The hooks that its functions implement, read from the source without importing it."""
    dependencies: dict[str, str]
    """Its dependencies, and theirs, with version and the hash of what RECORD says of them."""
    places: dict[str, str] = field(default_factory=dict[str, str])
    """Where each file is."""
    packages: dict[str, str] = field(default_factory=dict[str, str])
    """The packages and modules that it provides, by dotted name, with their paths."""
    folders: list[str] = field(default_factory=list[str])
    """Every folder in which a new file could be imported, and the metadata of dependencies."""
    faults: list[str] = field(default_factory=list[str])
    """Files that are not what RECORD says."""

    @property
    def digest(self) -> str:
        """One hash for all of it."""
        return digest_of(self.files, self.entry_points, self.dependencies)


def digest_of(files: dict[str, str], entry_points: dict[str, str], dependencies: dict[str, str]) -> str:
    """The hash of a distribution's pinned contents."""
    told = hashlib.sha256()
    for table in (files, entry_points, dependencies):
        for name in sorted(table):
            told.update(f"{len(name)} {name} {table[name]}\n".encode())
        told.update(b"\n")
    return told.hexdigest()


def contents_of(entries: list[EntryPoint]) -> Contents:
    """Read everything that a distribution installed, whose entry points these are."""
    info = Path(entries[0].info)
    recorded = dict(_recorded(info))
    found = _Collected(info.parent)
    for name in ABOUT:
        found.add(info / name, f"dist-info/{name}")
    modules = [entry.module for entry in entries]
    paths = [path for path in recorded if not _is_left_out(path, info.name)]
    for path in paths:
        found.add(info.parent / path, path)
    for package, place in _packages(info.parent, paths, modules):
        found.walk(package, place)
    faults = [
        f"{path} is not what RECORD says"
        for path, expected in recorded.items()
        if expected and path in found.hashes and found.hashes[path] != expected
    ]
    needed = dependencies_of(info)
    found.folders.update(map(str, needed.values()))  # another version has another folder
    return Contents(
        entries[0].distribution,
        entries[0].version,
        found.hashes,
        {f"{entry.group}: {entry.name}": entry.value for entry in entries},
        sorted({hook for path in found.places.values() for hook in _hooks_in(path)}),
        {name: _described(place) for name, place in needed.items()},
        found.places,
        found.packages,
        sorted(found.folders),
        faults,
    )


class _Collected:
    """The files that were found, each read once."""

    def __init__(self, site: Path) -> None:
        self._site = site
        self.hashes: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.folders: set[str] = set()
        self._known: dict[str, str] = {}

    def add(self, place: Path, name: str) -> None:
        """Hash a file, unless it is not there."""
        real = os.path.realpath(place)
        if real in self._known or not os.path.isfile(real):  # noqa: PTH113
            return
        with open(real, "rb") as file:  # noqa: PTH123
            self.hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        self.places[name] = self._known[real] = str(place)

    def walk(self, package: str, place: Path) -> None:
        """Hash all files of a package, or the one file of a module."""
        self.packages[package] = str(place)
        if not place.is_dir():
            self.add(place, self._named(place, package))
            return
        seen: set[str] = set()
        for folder, below, files in os.walk(place, followlinks=True):
            real = os.path.realpath(folder)
            if real in seen:
                below.clear()
                continue
            seen.add(real)
            self.folders.add(folder)
            below[:] = sorted(name for name in below if name not in LEFT_OUT)
            for name in sorted(files):
                path = Path(folder, name)
                inner = path.relative_to(place).as_posix()
                self.add(path, f"{package.replace('.', '/')}/{inner}")

    def _named(self, place: Path, package: str) -> str:
        return "/".join([*package.split(".")[:-1], place.name])


def _recorded(info: Path) -> Iterator[tuple[str, str]]:
    """The contents of RECORD: each path with its SHA-256, or nothing if it has none."""
    for row in csv.reader(_text(info / "RECORD").splitlines()):
        if not row:
            continue
        algorithm, _, value = (row[1] if len(row) > 1 else "").partition("=")
        digest = ""
        if algorithm == "sha256":
            try:
                digest = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
            except ValueError:
                digest = "unreadable"
        yield row[0], digest


def _is_left_out(path: str, info: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return parts[0] == info or "__pycache__" in parts


def _packages(site: Path, paths: Iterable[str], modules: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """The packages and modules of a distribution, below namespaces that it shares with others."""
    known = [path.split("/") for path in paths if path.endswith((".py", ".so", ".pyd", ".pyc"))]
    known += [[*module.split(".")] for module in modules]
    yielded: set[str] = set()
    for parts in known:
        for end in range(1, len(parts) + 1):
            name = ".".join(part.partition(".")[0] for part in parts[:end])
            place = _place_of(site, name)
            if place is None or (place.is_dir() and not _is_package(place) and end < len(parts)):
                continue  # a namespace: its contents may belong to another distribution
            if name not in yielded:
                yielded.add(name)
                yield name, place
            break


def _place_of(site: Path, name: str) -> Path | None:
    """The path of a package or module: where it was installed, or where an editable install points."""
    here = site.joinpath(*name.split("."))
    if here.is_dir():
        return here
    for other in sorted(here.parent.glob(f"{here.name}.*")):
        if other.suffix in (".py", ".so", ".pyd", ".pyc") and other.is_file():
            return other
    top, *rest = name.split(".")
    try:
        spec = find_spec(top)  # which imports nothing, as it is not within a package
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    for location in spec.submodule_search_locations or ():
        below = Path(location, *rest)
        if below.exists():
            return below
        if below.with_suffix(".py").exists():
            return below.with_suffix(".py")
    return Path(spec.origin) if not rest and spec.origin and Path(spec.origin).exists() else None


def _is_package(folder: Path) -> bool:
    return any(folder.glob("__init__.*"))


def _hooks_in(path: str) -> Iterator[str]:
    """The functions marked `@hookimpl` in a source file."""
    if not path.endswith(".py"):
        return
    text = _text(Path(path))
    if "hookimpl" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {_mark(decorator) for decorator in node.decorator_list}
            if "hookimpl" in marks:
                yield node.name


def _mark(decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


# --- dependencies -----------------------------------------------------------------------------


def dependencies_of(info: Path) -> dict[str, Path]:
    """The requirements and contents of a distribution, without what Hookline itself needs."""
    installed = distributions()
    own = _closure(_requires(Path(installed["hookline"])), installed) if "hookline" in installed else {}
    needed = _closure(_requires(info), installed)
    return {
        name: Path(place)
        for name, place in sorted(needed.items())
        if name not in own and name != "hookline" and Path(place) != info
    }


def distributions() -> dict[str, str]:
    """The installed distributions by their normal names, with where their metadata is."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        for name in names_in(folder or "."):
            if name.endswith((".dist-info", ".egg-info")):
                stem = name.rpartition(".")[0].partition("-")[0]
                found.setdefault(normal(stem), os.path.join(folder or ".", name))  # noqa: PTH118
    return found


def _closure(names: Iterable[str], installed: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in installed and name not in found:
            found[name] = installed[name]
            waiting += _requires(Path(installed[name]))
    return found


def _requires(info: Path) -> list[str]:
    """The names of a distribution's requirements, including those of extras."""
    lines = (_text(info / "METADATA") or _text(info / "PKG-INFO")).splitlines()
    found = (re.match(r"Requires-Dist:\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line) for line in lines)
    return [normal(match[1]) for match in found if match]


def _described(info: Path) -> str:
    version = info.name.rpartition(".")[0].partition("-")[2]
    lines = sorted(f"{path} {digest}" for path, digest in _recorded(info) if digest)
    return f"{version} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"


def changed_dependency_files(dependencies: Iterable[str]) -> Iterator[str]:
    """Files of dependencies that are not what RECORD says: all of them are read."""
    installed = distributions()
    for name in dependencies:
        info = Path(installed[name]) if name in installed else None
        for path, expected in _recorded(info) if info is not None else ():
            if not expected or info is None or _is_left_out(path, info.name):
                continue
            place = info.parent / path
            if not place.exists() or hashlib.sha256(place.read_bytes()).hexdigest() != expected:
                yield f"{name}: {path}"

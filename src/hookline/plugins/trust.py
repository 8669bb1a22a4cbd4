"""Trust: which files of which projects may run here, by their content.

A project is code from somebody else. Its hook files, the scripts of its skills and a configuration
that runs commands do nothing until a person has trusted exactly these bytes; one that changes must be
trusted again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import SourceError, TrustError
from hookline.system.private_files import private_folder
from hookline.text.foreign_json import parse_json

from .sources import read_source, sha256_of

if TYPE_CHECKING:
    from .snapshot import Snapshot

FILE = "trust.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class TrustItem:
    """Something of a project that would run."""

    kind: str
    """`hook file`, `skill`, `config` or `settings`."""
    project: Path
    path: Path
    """The file, or the folder of a skill."""
    sha256: str
    runs: tuple[str, ...] = ()
    """What would run, for people: commands, servers, scripts."""
    reads: tuple[str, ...] = ()
    """Variables of the user's environment that it asks for."""
    snapshot: Snapshot | None = field(default=None, compare=False, repr=False)
    """The files that the hash covers, where the item names commands."""
    unclear: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """Commands, by location, whose files cannot be determined, and why: they run only in the sandbox.
    """

    @property
    def name(self) -> str:
        """Its place in the project."""
        return within(self.project, self.path)


class Trust:
    """What a person has trusted, stored in `trust.json` of the home, readable only by this user."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        self._read: tuple[tuple[int, ...], dict[str, dict[str, str]]] | None = None
        self._covered: dict[str, TrustItem] = {}
        """The items that were found trusted, by path."""

    @property
    def pycache(self) -> str:
        """Where Python keeps compiled files of a project's commands, instead of in the project."""
        return str(self.path.parent / "cache" / "pycache")

    def allows(self, path: Path, content: bytes | None = None) -> bool:
        """Whether these bytes of that file were trusted; by default, its current bytes.

        Pass the bytes that will run, so that exactly those are judged.
        """
        if content is None:
            try:
                content = read_source(path).content
            except SourceError:
                return False
        return self.has(path, sha256_of(content))

    def has(self, path: Path, sha256: str) -> bool:
        """Whether a file or folder was trusted with that hash, as a part of a project that holds it.

        Nothing was where the record cannot be read.
        """
        try:
            real, projects = path.resolve(), self.projects()
        except (OSError, RuntimeError, ValueError, TrustError):
            return False
        return any(
            real.is_relative_to(project) and trusted.get(within(Path(project), real)) == sha256
            for project, trusted in projects.items()
        )

    def covers(self, item: TrustItem) -> bool:
        """Whether an item was trusted as it is; `broken` watches over it from now on."""
        trusted = self.has(item.path, item.sha256)
        if trusted:
            self._covered[str(item.path)] = item
        else:
            self._covered.pop(str(item.path), None)
        return trusted

    def item(self, path: Path) -> TrustItem | None:
        """The item that was found trusted at a path."""
        return self._covered.get(str(path))

    def watched(self) -> list[Path]:
        """The files that trusted commands run from."""
        items = self._covered.values()
        return [path for item in items if item.snapshot is not None for path in item.snapshot.files]

    def broken(self, path: Path) -> str:
        """Why a trusted item at a path may no longer run; nothing while it may.

        Call it right before each start: a file that the command reaches may have changed meanwhile.
        """
        item = self._covered.get(str(path))
        if item is None or not self.has(item.path, item.sha256):
            return f"{path} is not trusted; `hookline trust` shows it and asks"
        if item.snapshot is not None and (changed := item.snapshot.changed()):
            return f"{changed} changed since it was trusted; `hookline trust` shows it and asks"
        return ""

    def pending(self, project: Path, items: Iterable[TrustItem]) -> list[TrustItem]:
        """Those of a project's items that are not trusted as they are."""
        trusted = self.projects().get(str(project.resolve()), {})
        return [item for item in items if trusted.get(item.name) != item.sha256]

    def knows(self, item: TrustItem) -> bool:
        """Whether the item was trusted with some content, perhaps another."""
        return item.name in self.projects().get(str(item.project.resolve()), {})

    def knows_place(self, project: Path, path: Path) -> bool:
        """Whether something at a path, or below it, was trusted with some content."""
        try:
            name = path.relative_to(project).as_posix()
            trusted = self.projects().get(str(project.resolve()), {})
        except (OSError, RuntimeError, ValueError, TrustError):
            return False
        return any(each == name or each.startswith(f"{name}/") for each in trusted)

    def grant(self, items: Iterable[TrustItem]) -> None:
        """Trust items as they were when they were read."""
        projects = self.projects()
        for item in items:
            projects.setdefault(str(item.project.resolve()), {})[item.name] = item.sha256
        self._write(projects)

    def revoke(self, project: Path, names: Iterable[str] | None = None) -> list[str]:
        """Revoke the trust of a project, or of parts of it. Returns what was trusted."""
        projects = self.projects()
        trusted = projects.get(str(project.resolve()), {})
        gone = [name for name in trusted if names is None or name in set(names)]
        for name in gone:
            del trusted[name]
        if gone:
            self._write({place: kept for place, kept in projects.items() if kept})
        return gone

    def projects(self) -> dict[str, dict[str, str]]:
        """Each project with its trusted items: a hash for each location."""
        try:
            about = self.path.stat()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TrustError(f"{self.path} cannot be read: {error.strerror}") from error
        if hasattr(os, "getuid") and (about.st_uid not in (os.getuid(), 0) or about.st_mode & 0o022):
            raise self._bad("somebody else could have written it")
        stamp = (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
        if self._read is None or self._read[0] != stamp:
            self._read = stamp, self._parsed()
        return {project: dict(trusted) for project, trusted in self._read[1].items()}

    def _parsed(self) -> dict[str, dict[str, str]]:

        try:
            data: Any = parse_json(self.path.read_bytes())
        except OSError as error:
            raise TrustError(f"{self.path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise self._bad("it is not JSON") from error
        found = cast("dict[str, Any]", data).get("projects") if isinstance(data, dict) else None
        if not isinstance(found, dict):
            raise self._bad("it has no projects")
        if cast("dict[str, Any]", data).get("version") != VERSION:
            raise self._bad(f"its version is not {VERSION}")
        for trusted in cast("dict[str, Any]", found).values():
            if not isinstance(trusted, dict) or not all(
                isinstance(value, str) for value in cast("dict[str, Any]", trusted).values()
            ):
                raise self._bad("a project's entry is not a list of hashes")
        return cast("dict[str, dict[str, str]]", found)

    def _bad(self, reason: str) -> TrustError:
        return TrustError(
            f"{self.path} cannot be used: {reason}; nothing counts as trusted until you delete it and "
            "run `hookline trust` again"
        )

    def _write(self, projects: dict[str, dict[str, str]]) -> None:
        import json

        text = json.dumps({"version": VERSION, "projects": projects}, indent=2, sort_keys=True)
        beside = self.path.with_name(f"{FILE}.{os.getpid()}.tmp")
        try:
            private_folder(self.path.parent)
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise TrustError(f"{self.path} cannot be written: {error.strerror}") from error


def within(project: Path, path: Path) -> str:
    """A path relative to its project, with `/`; links followed on both sides."""
    return path.resolve().relative_to(project.resolve()).as_posix()

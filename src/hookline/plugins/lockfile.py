"""`plugins.lock`: which plugins are known, each by the hash of everything that it installed.

    lock = PluginLock(home)
    refused = lock.check(entries())      # at every start

The first time a plugin is seen it is pinned, and that is announced; `require` refuses it instead. A
plugin that changed is not loaded until `hookline plugins lock` accepted it. `plugins.lock` says nothing
about the machine and may be copied to others; `plugins.stamps` notes which files were seen with which
size, times and inode, so that a start need not read them again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hookline.errors import BadLockFile, PluginError

from .packages import EntryPoint
from .verified import FINDER

if TYPE_CHECKING:
    from .contents import Contents

LOCK = "plugins.lock"
STAMPS = "plugins.stamps"
BYTECODE = "pycache"
VERSION = 1


class Pin(NamedTuple):
    """The pinned state of one distribution."""

    version: str
    digest: str
    files: dict[str, str]
    entry_points: dict[str, str]
    hooks: list[str]
    dependencies: dict[str, str]
    required: list[str] = []  # noqa: RUF012
    """The plugins that the manifests marked as required, when they could last be read."""

    @classmethod
    def of(cls, contents: Contents) -> Pin:
        """The pin of a distribution as it is installed."""
        return cls(
            contents.version,
            contents.digest,
            contents.files,
            contents.entry_points,
            contents.hooks,
            contents.dependencies,
        )


def summary(lines: Sequence[str]) -> str:
    """The first differences in one line."""
    more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + more


def difference(before: Pin | None, after: Pin) -> list[str]:
    """What changed, a line for each."""
    if before is None:
        lines = [f"version {after.version} is new"]
        lines += [f"entry point {name} = {value}" for name, value in after.entry_points.items()]
        lines += [f"hooks {', '.join(after.hooks)}"] if after.hooks else []
        return [*lines, f"{len(after.files)} files"]
    lines = list[str]()
    if before.version != after.version:
        lines.append(f"version {before.version} became {after.version}")
    lines += _changed("entry point", before.entry_points, after.entry_points, shown=True)
    lines += [f"hook {name} is new" for name in after.hooks if name not in before.hooks]
    lines += [f"hook {name} is gone" for name in before.hooks if name not in after.hooks]
    lines += _changed("dependency", _versions(before), _versions(after), shown=True)
    same = {name for name, told in _versions(before).items() if _versions(after).get(name) == told}
    lines += [
        f"dependency {name} has other files"
        for name in sorted(same)
        if before.dependencies[name] != after.dependencies[name]
    ]
    return [*lines, *_changed("file", before.files, after.files)]


def _versions(pin: Pin) -> dict[str, str]:
    return {name: told.partition(" ")[0] for name, told in pin.dependencies.items()}


def _changed(
    what: str, before: Mapping[str, str], after: Mapping[str, str], *, shown: bool = False
) -> list[str]:
    lines: list[str] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None:
            lines.append(f"{what} {name} is new" + (f" ({new})" if shown else ""))
        elif new is None:
            lines.append(f"{what} {name} is gone")
        elif old != new:
            lines.append(f"{what} {name} changed" + (f" from {old} to {new}" if shown else ""))
    return lines


class PluginLock:
    """The lock file of a home."""

    def __init__(self, home: Path, *, require: bool = False, unpinned: Collection[str] = ()) -> None:
        self.home = home
        self.require = require
        self.unpinned = unpinned
        """Plugins that their developers change all the time, and that nothing is checked of."""
        self.news: list[str] = []
        """The plugins that were pinned because they are new."""

    # --- at every start -----------------------------------------------------------------------

    def check(self, entries: Iterable[EntryPoint]) -> dict[str, PluginError]:
        """Why plugins cannot be loaded, by the names of the plugins."""
        groups = self.groups(entries)
        if not groups:
            return {}
        refused: dict[str, PluginError] = {}
        pins, stamps = self.pins(), self._stamps()
        fresh: dict[str, Pin] = {}
        before = json.dumps(stamps)
        for name, group in groups.items():
            try:
                pin = self._check(group, pins.get(name), stamps)
            except PluginError as error:
                refused |= {entry.name: error for entry in group}
            else:
                if pin is not None:
                    fresh[name] = pin
        if fresh:
            self._note_new(fresh)
        if json.dumps(stamps) != before:
            self._keep(STAMPS, stamps)
        return refused

    def groups(self, entries: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
        """The entry points of each distribution, without plugins that are not to be pinned."""
        found: dict[str, list[EntryPoint]] = {}
        for entry in entries:
            found.setdefault(entry.distribution, []).append(entry)
        return {
            name: group
            for name, group in found.items()
            if not {entry.name for entry in group}.issubset(self.unpinned)
        }

    def _check(self, group: list[EntryPoint], pin: Pin | None, stamps: dict[str, Any]) -> Pin | None:
        """Refuse a distribution that is not as pinned. Returns the pin of one that is new."""
        info = group[0].info
        noted = stamps.get(info)
        name = group[0].distribution
        if pin is None and self.require:
            raise PluginError(
                f"{group[0]} is not in {self.home / LOCK}, and [plugins] require_lock is set; "
                f"look at it, then run `hookline plugins lock {name}`"
            )
        if pin is not None and noted is not None and noted["digest"] == pin.digest and _is_same(noted):
            self._admit(noted)
            return None
        from .contents import contents_of

        contents = contents_of(group)
        found = Pin.of(contents)
        if pin is not None and found.digest != pin.digest:
            raise PluginError(
                f"{name} is not what {self.home / LOCK} says: {summary(difference(pin, found))}; "
                f"`hookline plugins lock {name}` shows all of it and accepts it"
            )
        noted = stamped(contents)
        stamps[info] = noted
        self._admit(noted)
        return found if pin is None else None

    def _admit(self, noted: dict[str, Any]) -> None:
        """Let the packages of a distribution be imported, from its pinned files alone."""
        files = {place: told[0] for place, told in noted["files"].items()}
        FINDER.pin(noted["packages"], files, self.home / BYTECODE)

    def _note_new(self, fresh: dict[str, Pin]) -> None:
        try:
            self.write(self.pins() | fresh)
        except BadLockFile as error:
            self.news.append(f"{', '.join(fresh)}: new, and not pinned: {error}")
            return
        self.news += [
            f"package {name} {pin.version} brings a new plugin; it is now pinned in {self.home / LOCK}"
            for name, pin in fresh.items()
        ]

    def note_required(self, names: Mapping[str, set[str]]) -> None:
        """Write down which plugins of each distribution say that nothing may run without them.

        Once a plugin was changed, its manifest is not asked any more.
        """
        pins = self.pins()
        fresh = {
            name: pins[name]._replace(required=sorted(required))
            for name, required in names.items()
            if name in pins and sorted(required) != pins[name].required
        }
        if fresh:
            self.write(pins | fresh)

    # --- the files ----------------------------------------------------------------------------

    def pins(self) -> dict[str, Pin]:
        """The pins, by distribution name."""
        path = self.home / LOCK
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BadLockFile(f"{path} cannot be read: {error.strerror}") from error
        try:
            told = json.loads(text)
            if told["version"] != VERSION:
                raise ValueError(f"version {told['version']!r} is not known")
            return {name: Pin(**fields) for name, fields in told["plugins"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadLockFile(
                f"{path} is damaged ({error}); restore it, or remove it and pin your plugins anew"
            ) from error

    def write(self, pins: Mapping[str, Pin]) -> None:
        """Replace the pins."""
        told = {name: pins[name]._asdict() for name in sorted(pins)}
        self._keep(LOCK, {"version": VERSION, "plugins": told}, needed=True)

    def _stamps(self) -> dict[str, Any]:
        """The cache of files that were read; empty if it is damaged: they are read again."""
        try:
            told: Any = json.loads((self.home / STAMPS).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", told) if isinstance(told, dict) else {}

    def _keep(self, name: str, value: Any, *, needed: bool = False) -> None:
        path = self.home / name
        part = path.with_name(f"{name}.{os.getpid()}")
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1 if needed else None)
            part.replace(path)
        except OSError as error:
            if needed:
                raise BadLockFile(f"{path} cannot be written: {error.strerror}") from error


def stamped(contents: Contents) -> dict[str, Any]:
    """What startup compares instead of reading a distribution again."""
    return {
        "digest": contents.digest,
        "packages": sorted(contents.packages),
        "files": {
            place: [contents.files[name], *_stamp(place)] for name, place in contents.places.items()
        },
        "folders": {place: _stamp(place) for place in contents.folders},
    }


def _is_same(noted: dict[str, Any]) -> bool:
    """Whether no file and no folder was touched since it was noted."""
    try:
        return all(told[1:] == _stamp(place) for place, told in noted["files"].items()) and all(
            told == _stamp(place) for place, told in noted["folders"].items()
        )
    except (KeyError, TypeError, AttributeError, OSError):
        return False


def _stamp(place: str) -> list[int]:
    about = os.stat(place)  # noqa: PTH116
    return [about.st_size, about.st_mtime_ns, about.st_ino, about.st_ctime_ns]

"""What a confined child sees of the file system, whichever sandbox confines it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hookline.errors import SandboxError

from . import secrets
from .repository import Guarded, enclosing, guard
from .settings import Profile, SandboxSettings
from .words import words

EMPTIED = ("/run", "/sys", "/boot", "/lost+found", "/var/run", "/mnt/wslg")
"""Folders of sockets and devices that a child finds empty."""

KEPT = ("/run/current-system", "/run/opengl-driver", "/sys/devices/system")
"""What programs need of them."""

TEMPORARY = ("/tmp", "/var/tmp")

_KERNEL = ("/proc", "/sys", "/dev")

_ACCESS = (os.R_OK, os.W_OK, os.X_OK)
"""A folder that cannot be listed may still be entered, and a socket needs no more than writing."""

_TICK = 20_000_000
"""Nanoseconds within which two changes of a folder may have the same time."""

GIT_FILES = (".gitconfig", ".config/git")

TOOLCHAINS = words(
    """
    .pyenv .rbenv .nodenv .jenv .asdf .volta .nvm .fnm .sdkman .rustup .cargo .bun .deno .ghcup
    .opam .juliaup .dotnet .conda miniconda3 miniforge3 anaconda3 mambaforge go .go .rye .pixi
    .swiftly .elan .nix-profile .local/bin .local/lib .local/pipx .local/share/uv
    .local/share/pipx .local/share/mise .local/share/fnm .local/share/pnpm .local/share/rtx
    .local/share/virtualenvs .local/share/nvm .local/state/nix .cache/uv .virtualenvs
    .npm-global .yarn/bin .linuxbrew .krew
    """
)
"""Where compilers, interpreters and their packages live in a home."""

_BROAD = {
    "",
    ".local",
    ".config",
    ".cache",
    ".local/share",
    "Library",
    "Documents",
    "Desktop",
    "Downloads",
}
"""Folders of a home that hold far more than a toolchain."""


@dataclass(slots=True)
class FileView:
    """The file system of one child."""

    profile: Profile
    emptied: list[Path] = field(default_factory=list[Path])
    """Folders replaced by empty read-only ones."""
    readable: list[Path] = field(default_factory=list[Path])
    """What is restored in them, read-only."""
    writable: list[Path] = field(default_factory=list[Path])
    held: list[Path] = field(default_factory=list[Path])
    """Writable folders on the way to a secret. They cannot be renamed: the next child would find the
    secret where nothing hides it."""
    pinned: list[Path] = field(default_factory=list[Path])
    readonly: list[Path] = field(default_factory=list[Path])
    """What stays read-only within a writable folder."""
    masked: list[Path] = field(default_factory=list[Path])
    """Secrets: files that cannot be opened, folders that are empty."""
    restored: list[Path] = field(default_factory=list[Path])
    """What the caller needs of a masked folder, read-only."""
    restored_writable: list[Path] = field(default_factory=list[Path])
    repository: Path | None = None
    """The work tree that the workspace is a folder of: readable, and commits work."""
    guarded: list[Guarded] = field(default_factory=list[Guarded])
    line: list[list[str]] = field(default_factory=list[list[str]])
    """Parts of the sandbox's command line, once they were put together. Copies share them."""
    note: str = ""
    """Why the child may do less than its profile says."""
    watched: Watched | None = None
    """What would change if a new view differed from this one; only in `open`, which hides nothing but
    secrets."""

    def shows(self, path: Path) -> bool:
        """Whether a path would be visible before anything is masked."""
        if any(path.is_relative_to(folder) for folder in (*self.readable, *self.writable)):
            return True
        return not any(path.is_relative_to(folder) for folder in (*self.emptied, *TEMPORARY))


class Watched:
    """Folders, and whether an entry of any was added, removed or replaced since it was looked at."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._before: dict[str, tuple[int, int, int]] = {}
        self.add(folders)

    def add(self, folders: Iterable[str], *, entries: bool = True) -> None:
        """Watch more of them; without `entries`, whether they are the same folders."""
        for folder in folders:
            path = folder
            while not os.path.exists(path):  # then what is to come appears further up  # noqa: PTH110
                path = os.path.dirname(path)  # noqa: PTH120
            found = os.stat(path)  # noqa: PTH116
            changed = found.st_ctime_ns if entries else 0
            # some file systems, such as NFS, know no fractions of a second
            tick = _TICK if changed % 1_000_000_000 else 2_000_000_000
            if time.time_ns() - changed < tick:  # the next change may get the same time
                changed = -1
            self._before.setdefault(path, (found.st_dev, found.st_ino, changed))

    @property
    def unchanged(self) -> bool:
        """Whether everything is as it was."""
        stat = os.stat
        try:
            for path, (device, number, changed) in self._before.items():
                found = stat(path)
                if found.st_ino != number or found.st_dev != device:
                    return False
                if changed and found.st_ctime_ns != changed:
                    return False
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SandboxPaths:
    """The fixed points of one app: its workspace, its own home, the user's home."""

    workspace: Path
    own: tuple[Path, ...]
    """Hookline's own folders and sockets."""
    homes: tuple[Path, ...]


def view(
    places: SandboxPaths,
    settings: SandboxSettings,
    profile: Profile,
    *,
    read: Sequence[Path] = (),
) -> FileView:
    """Build the view of a child with this profile."""
    seen = FileView(profile)
    if profile == "open":
        seen.watched = Watched(secrets.folders(places.homes))  # before anything is looked for
    _hide_homes(seen, places)
    seen.emptied += _folders(EMPTIED)
    seen.readable += _folders(KEPT)
    seen.readable += _installation()
    if profile == "open":
        seen.writable += places.homes
    else:
        seen.readable += _toolchains(places.homes)
        seen.readable += _given(settings.read, places, "read")
    _add_workspace(seen, places, settings)
    given = list(_readable(read, places))
    seen.readable += given  # before anything is masked: a secret in it stays hidden
    _mask(seen, places)
    _restore(seen, places, given)
    _hold(seen, places)
    if seen.watched is not None:
        bound = (*seen.restored, *seen.readable, *seen.writable)
        seen.watched.add(map(str, bound), entries=False)
    return seen


def _hide_homes(seen: FileView, places: SandboxPaths) -> None:
    """Hide every home; in `open` the user's own is put back as a whole."""
    found = _folders(secrets.HOMES)
    for home in (*places.homes, *secrets.other_homes()):
        covered = any(home.is_relative_to(folder) for folder in found)
        if not covered and home.is_dir() and home != Path("/"):
            found.append(home)
    seen.emptied += found


def _folders(names: Iterable[str]) -> list[Path]:
    """The folders that exist and are no links."""
    return [path for path in map(Path, names) if path.is_dir() and not path.is_symlink()]


def _add_workspace(seen: FileView, places: SandboxPaths, settings: SandboxSettings) -> None:
    folder = places.workspace
    if _of_kernel(folder) and not folder.is_relative_to("/dev/shm"):
        raise SandboxError(
            f"{folder} belongs to the kernel and cannot be a workspace; change the folder"
        )
    holds_home = any(home.is_relative_to(folder) for home in places.homes)
    holds_home = holds_home or folder == Path("/") or str(folder) in secrets.HOMES
    if seen.profile == "open":
        if not holds_home:
            seen.writable.append(folder)
        seen.writable += _given(settings.write, places, "write")
        return
    if holds_home:
        roots = [entry for home in places.homes for entry in _visible_entries(home)]
        seen.note = "the workspace holds a home folder, so only the folders in it are writable"
    else:
        roots = [folder]
        above = enclosing(folder)
        if above is not None and not any(home.is_relative_to(above) for home in places.homes):
            seen.repository = above
            seen.readable.append(above)
    if seen.profile == "read-only":
        seen.readable += roots
        return
    roots += _given(settings.write, places, "write")
    seen.writable += roots


def guarded(seen: FileView, workspace: Path, protect: Sequence[str]) -> FileView:
    """Protect what runs later outside, given the writable folders at this moment."""
    if seen.profile != "workspace":
        return seen
    fresh = replace(seen, readable=[*seen.readable], writable=[], guarded=[])
    for root in seen.writable:
        found = Guarded()
        if root == workspace:
            found = guard(root, tuple(protect), seen.repository)
        elif root.is_dir():
            found = guard(root)
        if found.reason:
            fresh.readable.append(root)
            fresh.note = f"{root} is read-only, because {found.reason}"
            continue
        fresh.writable.append(root)
        fresh.guarded.append(found)
    fresh.pinned = [path for each in fresh.guarded for path in each.pinned]
    fresh.readonly = [
        path for each in fresh.guarded for path in (*each.readonly, *each.folders, *each.files)
    ]
    return fresh


def _visible_entries(home: Path) -> Iterator[Path]:
    """The folders and files at the top of a home that are neither hidden nor links."""
    try:
        with os.scandir(home) as entries:
            found = sorted(
                entry.path
                for entry in entries
                if not entry.name.startswith(".") and not entry.is_symlink() and entry.name != "snap"
            )
    except OSError:
        return
    yield from map(Path, found)


def _mask(seen: FileView, places: SandboxPaths) -> None:
    bound = (*seen.readable, *seen.writable)
    homes = [
        home
        for home in places.homes
        if any(home.is_relative_to(root) or root.is_relative_to(home) for root in bound)
    ]
    masked: list[Path] = []
    unreadable: list[Path] = []
    for path in _secret_places(places, homes):
        if any(path.is_relative_to(each) for each in masked):
            continue
        if not any(os.access(path, mode) for mode in _ACCESS):  # gone, or closed to this user anyway
            unreadable.append(path)
        elif seen.shows(path):
            masked.append(path)
    seen.masked = masked
    if seen.watched is not None:  # a secret that is a link lies elsewhere
        seen.watched.add(map(str, (*(path.parent for path in masked), *unreadable)))


def _secret_places(places: SandboxPaths, homes: Iterable[Path]) -> list[Path]:
    """The places that no child may read: of the system, the environment, homes, and our own."""
    found = [*secrets.in_system(), *secrets.agent_sockets(), *places.own]
    return secrets.unique([*found, *(each for home in homes for each in secrets.in_home(home))])


def _of_kernel(path: Path) -> bool:
    """Whether a path is in a folder that each child has its own of."""
    return any(path.is_relative_to(each) for each in _KERNEL)


def _readable(wanted: Sequence[Path], places: SandboxPaths) -> Iterator[Path]:
    """What a caller may read of what it wants.

    Of the places of secrets, that is only what lies in our own folders or, since scripts of hooks are
    there, in `.claude`.
    """
    opens = (*places.own, *(home / ".claude" for home in places.homes))
    hidden: list[Path] = []
    if wanted:
        hidden = [each for each in _secret_places(places, places.homes) if each not in opens]
    for path in secrets.unique(wanted):
        closed = path in opens or any(path.is_relative_to(each) for each in hidden)
        if path.exists() and not closed and not _of_kernel(path):
            yield path


def _restore(seen: FileView, places: SandboxPaths, given: Sequence[Path]) -> None:
    """Restore what lies in a masked folder: a workspace in Hookline's home, a caller's files."""
    folder = places.workspace
    hiding = next((each for each in seen.masked if folder.is_relative_to(each)), None)
    if hiding is not None:
        if hiding not in places.own or folder == hiding:
            raise SandboxError(f"the workspace {folder} is in {hiding}, which the sandbox hides")
        into = seen.restored if folder in seen.readable else seen.restored_writable
        into.append(folder)
    for path in given:
        if any(path.is_relative_to(each) for each in seen.masked):
            seen.readable.remove(path)
            seen.restored.append(path)


def _hold(seen: FileView, places: SandboxPaths) -> None:
    """Hold the folders above masked places and the workspace that the child could rename."""
    bound = {*seen.readable, *seen.writable}
    for path in (*seen.masked, places.workspace):
        for folder in path.parents:
            if folder in bound or folder in seen.held or len(folder.parts) <= 2:
                continue  # mounted already
            root = next((each for each in folder.parents if each in bound), None)
            writable = root in seen.writable if root else seen.profile == "open" and seen.shows(folder)
            if writable and os.access(folder.parent, os.W_OK):
                seen.held.append(folder)


def _given(names: Iterable[str], places: SandboxPaths, setting: str) -> list[Path]:
    """The paths of a setting; one in a place of secrets is an error."""
    found: list[Path] = []
    for name in names:
        path = Path(name).expanduser()
        path = (path if path.is_absolute() else places.workspace / path).resolve()
        hidden = [*secrets.in_system(), *places.own]
        hidden += [each for home in places.homes for each in secrets.in_home(home)]
        for each in hidden:
            if path.is_relative_to(each.resolve()):
                raise SandboxError(
                    f"[sandbox] {setting}: {name} is in {each}, which the sandbox always hides"
                )
        if path.exists():
            found.append(path)
    return found


@cache
def _installation() -> list[Path]:
    """Python and Hookline itself, if they are installed below a temporary folder."""
    places = [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[1]]
    return [path for path in places if any(path.is_relative_to(each) for each in TEMPORARY)]


@cache
def _toolchains(homes: tuple[Path, ...]) -> list[Path]:
    """What programs on the path need to run, as far as it lies in a home."""
    candidates = [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[1]]
    candidates += [home / name for home in homes for name in (*TOOLCHAINS, *GIT_FILES)]
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        if Path(entry).is_absolute():
            candidates.append(Path(entry))
            if any((Path(entry).parent / name).exists() for name in ("lib", "pyvenv.cfg")):
                candidates.append(Path(entry).parent)
    if (git := shutil.which("git")) is not None:
        candidates.append(Path(os.path.realpath(git)))
    found: list[Path] = []
    for path in secrets.unique(each for each in candidates if each.exists()):
        home = next((each for each in homes if path.is_relative_to(each)), None)
        if home is None or path.relative_to(home).as_posix() in _BROAD:
            continue
        found.append(path)
    return [path for path in sorted(found) if not any(each in path.parents for each in found)]

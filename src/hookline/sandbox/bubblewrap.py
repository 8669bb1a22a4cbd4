"""bubblewrap: namespaces, with a view of the file system put together from mounts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hookline.system.children.environment import program as own_program

from .environment import encoded
from .view import TEMPORARY, FileView
from .words import words

_PROCESS = words(
    """
    --unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try
    --hostname sandbox --die-with-parent --cap-drop ALL
    """
)
"""Not `--new-session`: the first process inside stays in the group of the one outside, so that a signal
to the group ends both. `--die-with-parent` takes effect only some milliseconds after the start. The
child has no terminal, because the children package starts it in a session of its own."""

_OWN = ("proc", "dev", "tmp")
"""Folders at the top that every child gets a fresh one of."""


def program() -> str | None:
    """Where `bwrap` is, if it is installed."""
    found = _located(os.environ.get("PATH"))
    if found is None or not os.access(found, os.X_OK):
        _located.cache_clear()
        found = _located(os.environ.get("PATH"))
    return found


@lru_cache(maxsize=1)
def _located(path: str | None) -> str | None:
    return own_program("bwrap")


def arguments(
    bwrap: str,
    view: FileView,
    temporary: Path,
    cwd: Path,
    *,
    options: Sequence[str] = (),
    shared: Sequence[tuple[Path, str]] = (),
) -> list[str]:
    """The command line up to the child's own; `shared` are files bound under another name.

    The root is a new file system with what the child may see of the old one. Each mount costs a tenth
    of a millisecond, so that there are as few as possible.
    """
    if not view.line:  # the same for every child with this view, whatever the workspace contains
        view.line += ([*_top(view)], [*_emptied(view)], [*_masks(view)])
    top, emptied, masks = view.line
    line = [bwrap, *_PROCESS, *options, *top]
    # Read-only as a whole: root without capabilities still owns /proc/sys and could write to it.
    line += ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    for name in TEMPORARY:  # before the homes: one may be in it
        if not os.path.islink(name):  # noqa: PTH114
            line += ("--bind", str(temporary), name)
    line += emptied
    line += _binds({"--bind": view.held}, {"--ro-bind": view.readable}, {"--bind": view.writable})
    # a linked work tree is a writable folder in a read-only one
    line += _binds({"--bind": view.pinned}, {"--ro-bind": view.readonly})
    line += masks
    for folder in view.emptied:
        if len(folder.parts) > 2 and folder not in view.writable:
            line += ("--remount-ro", str(folder))
    for source, target in shared:
        line += ("--ro-bind", str(source), target)
    return [*line, "--remount-ro", "/", "--chdir", str(cwd), "--"]


def _binds(*groups: Mapping[str, Iterable[Path]]) -> Iterator[str]:
    """Bind paths, a folder before its contents; of one path the last option counts."""
    found = {str(path): option for group in groups for option, paths in group.items() for path in paths}
    for path in sorted(found):
        yield from (found[path], path, path)


def _emptied(view: FileView) -> Iterator[str]:
    for folder in view.emptied:  # the root is a fresh file system already
        yield from ("--perms", "0755", "--tmpfs" if len(folder.parts) > 2 else "--dir", str(folder))


def _masks(view: FileView) -> Iterator[str]:
    """Hide what is secret, and bind what the child needs of it."""
    restored = (*view.restored, *view.restored_writable)
    for path in view.masked:
        within = any(each.is_relative_to(path) for each in restored)
        yield from _mask(path, "0111" if within else "0000")
    for path in view.restored_writable:
        yield from ("--bind", str(path), str(path))
    for path in view.restored:
        yield from ("--ro-bind", str(path), str(path))


def variables(env: Mapping[str, str]) -> bytes:
    """The arguments that give the child its environment."""
    pairs = (each.partition(b"=") for each in encoded(env).split(b"\0")[:-1])
    return b"".join(b"--setenv\0%b\0%b\0" % (name, value) for name, _, value in pairs)


def _top(view: FileView) -> Iterator[str]:
    """Bind the top of the file system, except what the child gets fresh or not at all."""
    bind = "--bind" if view.profile == "open" else "--ro-bind"
    emptied = set(map(str, view.emptied))
    with os.scandir("/") as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_symlink():
                yield from ("--symlink", os.readlink(entry.path), entry.path)  # noqa: PTH115
            elif entry.is_dir() and entry.name not in _OWN and entry.path not in emptied:
                if bind == "--bind" or _filled(entry.path):
                    yield from (bind, entry.path, entry.path)
                else:
                    yield from ("--dir", entry.path)


def _filled(folder: str) -> bool:
    """Whether there is something in a folder to be bound."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return True


def _mask(path: Path, mode: str) -> Sequence[str]:
    """An empty folder, entered only for what is put back into it, or a file that cannot be opened."""
    if path.is_dir():
        return ("--perms", mode, "--tmpfs", str(path))
    return ("--ro-bind", "/dev/null", str(path))

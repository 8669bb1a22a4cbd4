"""Files of a workspace that run later outside the sandbox, and therefore stay read-only inside.

Git runs hooks and commands that its configuration names; editors and agents run tasks and hooks of
their project folders. A confined command must not plant anything there.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from hookline.text.untrusted import read_beginning

GUARDED = (".hookline", ".claude", ".vscode", ".idea")
"""Folders that a confined command may neither change nor create."""

GUARDED_IF_PRESENT = (
    ".agents",
    ".codex",
    ".cursor",
    ".gemini",
    ".windsurf",
    ".zed",
    ".fleet",
    ".devcontainer",
    ".husky",
    ".envrc",
    ".mcp.json",
    ".gitmodules",
    ".pre-commit-config.yaml",
)
"""Entries that a confined command may not change if they exist."""

SETTING = re.compile(r"^[^\S\n]*+([A-Za-z][A-Za-z0-9-]*+)[^\S\n]*+=[^\S\n]*+(.*)$", re.MULTILINE)
_NOT_COMMANDS = {"worktree", "url", "pushurl", "merge", "remote", "fetch", "push"}
_LARGEST = 1 << 20


@dataclass(slots=True)
class Guarded:
    """How the paths of one writable folder are kept from being changed."""

    pinned: list[Path] = field(default_factory=list[Path])
    """Writable folders that cannot be renamed or replaced."""
    readonly: list[Path] = field(default_factory=list[Path])
    folders: list[Path] = field(default_factory=list[Path])
    """Read-only folders; missing ones are created for the time being, so that the child cannot."""
    files: dict[Path, bytes] = field(default_factory=dict[Path, bytes])
    """The same for files."""
    reason: str = ""
    """Why the whole folder has to be read-only; empty if it need not be."""


def enclosing(folder: Path) -> Path | None:
    """The work tree of the user's that a folder lies in, if the folder has no repository of its own."""
    if (folder / ".git" / "HEAD").exists() or (folder / ".git").is_file():
        return None
    for parent in folder.parents:
        git = parent / ".git"
        if os.path.lexists(git):
            owned = not git.is_symlink() and git.stat().st_uid == os.getuid()
            return parent if owned else None
    return None


def guard(root: Path, extra: tuple[str, ...] = (), above: Path | None = None) -> Guarded:
    """The parts of a writable folder that must not change; `above` is its work tree."""
    guarded = Guarded()
    folder = str(root)
    for name in (*GUARDED, *GUARDED_IF_PRESENT, *extra):
        path = os.path.join(folder, name)  # noqa: PTH118 (every start of a command waits for this)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            mode = 0
        if stat.S_ISLNK(mode):
            guarded.reason = f"{name} is a symbolic link"
        elif name in GUARDED:
            guarded.folders.append(root / name)
        elif mode:
            guarded.readonly.append(root / name)
    _guard_git(root, guarded)
    if above is not None:
        found = Guarded()
        _guard_git(above, found)
        if not found.reason:  # else it stays read-only as a whole
            guarded.pinned += found.pinned
            guarded.readonly += found.readonly
            guarded.folders += found.folders
            guarded.files |= found.files
    return guarded


def _guard_git(root: Path, guarded: Guarded) -> None:
    git = root / ".git"
    if git.is_symlink():
        guarded.reason = ".git is a symbolic link"
    elif (git / "HEAD").exists():
        _guard_git_folder(git, root, guarded)
    elif git.is_file():
        guarded.readonly.append(git)
        _guard_linked(git, root, guarded)
    else:
        guarded.folders.append(git)


def _guard_git_folder(git: Path, root: Path, guarded: Guarded) -> None:
    """Commits work; hooks, configuration and other work trees cannot be changed."""
    guarded.pinned.append(git)
    text = _text(git / "config")
    worktree_config = "worktreeconfig" in text.lower()
    for name in ("hooks", "config", "config.worktree", "commondir", "modules", "worktrees"):
        path = git / name
        if path.is_symlink():
            guarded.reason = f".git/{name} is a symbolic link"
        elif name == "hooks":
            guarded.folders.append(path)
        elif name == "commondir":
            # A file of this name sends git to another configuration. "." means this folder.
            guarded.files[path] = b".\n"
        elif name == "config.worktree" and worktree_config:
            guarded.files[path] = b""
        elif path.exists():
            guarded.readonly.append(path)
    for key, value in SETTING.findall(text):
        _guard_setting(key.lower(), value.rstrip(), git, root, guarded)


def _guard_setting(key: str, value: str, git: Path, root: Path, guarded: Guarded) -> None:
    """Keep what the configuration runs or includes."""
    if key in _NOT_COMMANDS or not value:
        return
    named = value.strip('"').lstrip("!").split()[:1]
    if not named or named[0].startswith("~"):
        return
    base = git if key == "path" else root
    try:
        path = (base / named[0].strip("'\"")).resolve()
        if not path.is_relative_to(root) or path in (root, git) or path in guarded.readonly:
            return
        if path.is_file():
            guarded.readonly.append(path)
        elif key == "hookspath" and path.parent.is_dir():
            guarded.folders.append(path)
    except (OSError, ValueError):
        return


def _guard_linked(file: Path, root: Path, guarded: Guarded) -> None:
    """A linked work tree or a submodule: its repository is elsewhere, and must point back here."""
    match = re.match(r"gitdir:\s*(.+)", _text(file))
    if match is None:
        return
    folder = (root / match[1].strip()).resolve()
    if not folder.is_dir():
        return
    back = _text(folder / "gitdir").strip()
    if back and Path(back).resolve() == file:
        common = (folder / (_text(folder / "commondir").strip() or ".")).resolve()
        if folder.parent == common / "worktrees":
            _guard_git_folder(common, root, guarded)
            guarded.pinned.append(folder)
            for name in ("commondir", "gitdir", "config.worktree"):
                if (folder / name).is_file():
                    guarded.readonly.append(folder / name)
        return
    for key, value in SETTING.findall(_text(folder / "config")):
        if key.lower() == "worktree" and (folder / value.rstrip()).resolve() == root:
            _guard_git_folder(folder, root, guarded)


def _text(path: Path) -> str:
    try:
        return read_beginning(path, _LARGEST).decode("utf-8", "replace")  # a pipe would hold it up
    except OSError:
        return ""

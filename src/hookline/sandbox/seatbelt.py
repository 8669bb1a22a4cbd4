"""Seatbelt: the sandbox of macOS, by a generated profile for `sandbox-exec`. Later rules win."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .view import FileView

PROGRAM = "/usr/bin/sandbox-exec"

_BASE = """(version 1)
(deny default)
(allow process-exec process-fork process-info* signal (target same-sandbox))
(allow sysctl-read mach-lookup ipc-posix-sem ipc-posix-shm pseudo-tty file-ioctl)
(allow file-read*)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))
"""


def profile(view: FileView, temporary: Path, *, network: bool) -> str:
    """The text of the profile for a view. Paths that do not exist yet are covered as well."""
    lines = [_BASE.rstrip()]
    if view.profile == "open":
        lines.append("(allow file-write*)")
    lines += _rule("deny file-read* file-write*", view.emptied)
    lines += _rule("allow file-read*", [*view.readable, *view.writable, *view.pinned])
    lines += _rule("allow file-write*", [*view.writable, *view.pinned, temporary])
    lines += _rule("deny file-write*", view.readonly)
    lines += _rule("deny file-read* file-write*", view.masked)
    lines += _rule("allow file-read*", [*view.restored, *view.restored_writable, temporary])
    lines += _rule("allow file-write*", view.restored_writable)
    lines.append("(allow network*)" if network else "(deny network*)")
    return "\n".join(lines) + "\n"


def _rule(what: str, paths: Iterable[Path]) -> list[str]:
    return [f"({what} (subpath {_quoted(path)}))" for path in paths]


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'

"""sandlock: Landlock and seccomp, where namespaces are forbidden.

Landlock only grants: what is granted for a folder is granted for all that is in it. So a folder with a
secret is granted by its other entries, and in the workspace nothing can be kept read-only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from .settings import ChildLimits
from .view import TEMPORARY, FileView

_CHILD = Path(__file__).with_name("landlock_child.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
MISSING = "sandlock cannot keep .git/hooks read-only, nor filter the network by host"


def installed() -> bool:
    """Whether the package is there."""
    return find_spec("sandlock") is not None


def arguments(
    view: FileView, temporary: Path, limits: ChildLimits, *, network: bool, variables: int | None = None
) -> list[str]:
    """The command line up to the child's own; the environment is read from the file `variables`."""
    hidden = {*view.emptied, *view.masked, *(Path(name) for name in TEMPORARY), Path("/dev")}
    write = [Path("/")] if view.profile == "open" else []
    read = list(granted(Path("/"), hidden))
    read += [path for root in view.readable for path in granted(root, view.masked)]
    writable = [path for root in view.writable for path in granted(root, view.masked)]
    if write:
        writable += granted(Path("/"), hidden)
    spec = {
        "read": [str(path) for path in (*read, *view.restored)],
        "write": [*map(str, (*writable, *view.restored_writable, temporary)), *_DEVICES],
        "network": network,
        "variables": variables,
        "limits": limits.model_dump(exclude_none=True),
    }
    return [sys.executable, "-I", str(_CHILD), json.dumps(spec)]


def granted(root: Path, hidden: Sequence[Path] | set[Path]) -> Iterator[Path]:
    """A folder, or, if something in it is hidden, its entries without that."""
    if root in hidden or root.is_symlink():
        return
    if not any(root in each.parents for each in hidden):
        yield root
        return
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return
    for entry in entries:
        yield from granted(entry, hidden)

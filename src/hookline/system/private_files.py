"""Private files: only their owner can read them, whatever the umask.

The home holds what users said, what agents did, keys and approvals, and code that runs. So folders in
it have mode 0700 and files 0600, modes that were wider are tightened when Hookline starts, and a home
that another user owns or can write to is refused: its settings could run their code. Root may use a
home of any owner, as in a container whose volume belongs to an ordinary user.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hookline.errors import ConfigError

OTHERS = 0o077
FOLDER, FILE = 0o700, 0o600


def check_home(home: Path) -> None:
    """Refuse a home that is not the user's own; one that does not exist yet is fine."""
    try:
        found = home.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"the home {home} cannot be used: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"the home {home} is not a folder; set HOOKLINE_HOME to one")
    if not _is_ours(found):
        raise ConfigError(
            f"the home {home} belongs to another user (uid {found.st_uid}), who could run code in your "
            f"name; set HOOKLINE_HOME to a folder of your own, or run `chown -R {os.geteuid()} {home}`"
        )
    if found.st_mode & stat.S_IWOTH:
        raise ConfigError(
            f"every user can write to the home {home}, and so run code in your name; look through it, "
            f"then run `chmod 700 {home}`"
        )


def prepare_home(home: Path) -> list[Path]:
    """Check a home and restrict it to its owner if it exists. Returns what was open to others."""
    check_home(home)
    if not home.is_dir():
        return []
    with suppress(OSError):
        if tighten(home):  # nothing inside can be reached any more, and its files are ours to close
            return [home, *filter(tighten, home.iterdir())]
    return []


def private_folder(folder: Path) -> Path:
    """Make a folder, and those above it that are missing, for the owner alone; leave what exists."""
    missing: list[Path] = []
    place = folder
    while not place.exists():
        missing.append(place)
        place = place.parent
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            each.mkdir(mode=FOLDER)
            each.chmod(FOLDER)
    if not folder.is_dir():
        folder.mkdir(mode=FOLDER)  # raises if something is in the way
    return folder


def private_file(path: Path | str) -> None:
    """Create an empty file for the owner alone, or close an existing one to everyone else.

    An existing file is not opened: closing it would release the locks that SQLite holds on it.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, FILE)
    except FileExistsError:
        for each in (path, f"{path}-wal", f"{path}-shm"):
            with suppress(OSError):
                tighten(Path(each))
        return
    try:
        os.fchmod(handle, FILE)
    finally:
        os.close(handle)


@contextmanager
def replaced(path: Path) -> Generator[Path]:
    """Write a file as a whole, for the owner alone: it takes the place of `path` when this ends well.

    The part is new and has a name that cannot be guessed, so a link that someone planted beside the
    file is not followed.
    """
    import tempfile  # it takes longer to import than all of this module

    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def tighten(path: Path) -> bool:
    """Take the access of others from a file or folder of ours; whether they had any."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) or not found.st_mode & OTHERS or not _is_ours(found):
        return False
    path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)
    return True


def mode_of(path: Path) -> str:
    """The permissions of a file, such as 0700."""
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def _is_ours(found: os.stat_result) -> bool:
    """Whether a file is the user's own. Root may use any: a container's volume has another owner."""
    return os.name == "nt" or os.geteuid() in (0, found.st_uid)


_CLOEXEC = getattr(os, "O_CLOEXEC", 0)

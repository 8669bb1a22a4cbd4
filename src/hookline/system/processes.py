"""The process tree: whether a process, or whoever holds a connection, descends from this one.

What an agent starts runs as the same user as the agent, so that neither a user id nor a file mode tells
the two apart. Their place in the tree does. It is read from `/proc`: on other systems nothing is known,
and `is_known` says so.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from .private_files import private_file, private_folder

PROC: Final = Path("/proc")
is_known: Final = sys.platform == "linux" and (PROC / "self" / "stat").exists()
"""Whether this system tells who descends from whom."""
SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER
UNKNOWN: Final = -1
"""The process at the other end of a connection, if it cannot be seen."""
_LAST: Final = 1


def adopt_orphans() -> bool:
    """Make this process the parent of descendants whose own parent ends; whether that worked.

    Without this, a process that forks twice would be a child of process 1, and no descendant any more.
    """
    if not is_known:
        return False
    import ctypes

    return ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0) == 0


def parent_of(pid: int) -> int | None:
    """The parent of a process, or None if there is no such process."""
    try:
        about = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may contain anything, parentheses and spaces too.
    return int(about.rpartition(b")")[2].split()[1])


def ancestors(pid: int) -> Iterator[int]:
    """The parents of a process, from the nearest on, without process 1."""
    seen = {pid}
    parent = parent_of(pid)
    while parent is not None and parent > _LAST and parent not in seen:
        yield parent
        seen.add(parent)
        parent = parent_of(parent)


def descendants(root: int | None = None) -> set[int]:
    """Every process that descends from another one: by default, from this one."""
    parents = {
        int(entry.name): parent_of(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit()
    }
    found, waiting = set[int](), [root or os.getpid()]
    while waiting:
        parent = waiting.pop()
        children = {pid for pid, above in parents.items() if above == parent} - found
        found |= children
        waiting += children
    return found


# --- connections ------------------------------------------------------------------------------------


def socket_row(address: str, port: int) -> tuple[int, int] | None:
    """The owner's user id and the inode of this machine's TCP socket at an address and port."""
    wanted = {_written(each, port) for each in _forms(address)}
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[1] in wanted:
                return int(fields[7]), int(fields[9])
    return None


def _forms(address: str) -> list[IPv4Address | IPv6Address]:
    """An address as both tables may have it."""
    try:
        given = ip_address(address.partition("%")[0])
    except ValueError:
        return []
    if isinstance(given, IPv6Address):
        return [given, given.ipv4_mapped] if given.ipv4_mapped is not None else [given]
    return [given, IPv6Address(f"::ffff:{given}")]


def _written(address: IPv4Address | IPv6Address, port: int) -> str:
    """An address as `/proc/net/tcp` writes it: words of 32 bits in the machine's own order."""
    packed = address.packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"


def holds(pid: int, inode: int) -> bool:
    """Whether a process has a socket open."""
    wanted = f"socket:[{inode}]"
    return wanted in _opened(pid)


def _opened(pid: int) -> list[str]:
    """The open files of a process; nothing if they are hidden or it is gone."""
    try:
        return [_target(path) for path in (PROC / str(pid) / "fd").iterdir()]
    except OSError:
        return []


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def peer_of(connection: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end of a Unix socket."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return pid, uid


def connected_from_below(address: str, port: int) -> int | None:
    """A process that has the other end of a TCP connection and that an agent may have started.

    That is a descendant of this process, or of another one that runs agents: a worker, say. `UNKNOWN`
    where the other end is on this machine and nobody can be seen to have it: it may have ended, or
    handed the connection on while it was looked for. None where somebody else has it.
    """
    if not is_own_address(address):
        return None
    row = socket_row(address, port)
    if row is None:
        return UNKNOWN
    own, found = descendants(), False
    others = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    for pid in [*own, *(pid for pid in others if pid not in own)]:
        if holds(pid, row[1]):
            if pid in own or is_below_an_agent(pid):
                return pid
            found = True
    if found and row == socket_row(address, port):
        return None
    # Only root can see the open files of other users' processes.
    is_others = row[1] != 0 and row[0] != os.geteuid() != 0
    return None if is_others else UNKNOWN


def is_own_address(address: str) -> bool:
    """Whether an address is one of this machine's."""
    numeric = socket.AI_NUMERICHOST
    try:
        given = socket.getaddrinfo(address, 0, type=socket.SOCK_DGRAM, flags=numeric)
        with socket.socket(given[0][0], socket.SOCK_DGRAM) as trial:
            trial.bind(given[0][4])
    except OSError as error:  # any other error leaves the question open
        return error.errno != errno.EADDRNOTAVAIL
    return True


# --- Hookline processes -----------------------------------------------------------------------------


def hookline_above(home: Path) -> int | None:
    """The nearest ancestor that is a Hookline process: the command, or one that has this home open."""
    if not is_known:
        return None
    place = f"{home.resolve()}{os.sep}"
    for pid in ancestors(os.getpid()):
        if _is_command(pid) or _has_open(pid, place) or _agent_note(home, pid).exists():
            return pid
    return None


def note_agent(home: Path, client: int) -> None:
    """Remember the process of another agent, which started a client of our hooks: what runs below it
    is not a person's. Those that are over are forgotten.
    """
    if not is_known:
        return
    agent = next((pid for pid in ancestors(client) if not _is_shell(pid)), None)
    if agent is None:
        return
    note = _agent_note(home, agent)
    if not note.exists():
        private_folder(note.parent)
        for other in note.parent.iterdir():
            if other != _agent_note(home, int(other.name.partition("-")[0])):
                other.unlink(missing_ok=True)
        private_file(note)


def _agent_note(home: Path, pid: int) -> Path:
    """The file that stands for a process: its id, and when it started, since ids are used again."""
    try:
        about = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        started = about[19].decode()
    except (OSError, IndexError):
        started = "over"
    return home / "hook" / "agents" / f"{pid}-{started}"


def _is_shell(pid: int) -> bool:
    try:
        name = (PROC / str(pid) / "comm").read_text().strip()
    except (OSError, ValueError):
        return False
    return name in ("sh", "bash", "dash", "zsh")


def _is_command(pid: int) -> bool:
    try:
        words = os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).split("\0")
    except OSError:
        return False
    names = [Path(word).name for word in words[:6]]
    is_command = names[0].startswith(("python", "hookline")) and "hookline" in names[:4]
    return is_command and "inspect" not in names  # which runs no agent, and may have opened a browser


def is_below_an_agent(pid: int) -> bool:
    """Whether a process descends from this one, or from another Hookline process."""
    own = os.getpid()
    return any(parent == own or _is_command(parent) for parent in ancestors(pid))


def _has_open(pid: int, place: str) -> bool:
    """Whether a process has a database or a lock of a home open; a redirected log is neither."""
    return any(
        path.startswith(place) and path.removesuffix(" (deleted)").endswith((".db", ".lock", "-wal"))
        for path in _opened(pid)
    )


def reap() -> None:
    """Wait for every child that is over, at the end of a process that adopted some."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Orphans:
    """Ends what is left of adopted processes that are over.

    A process that this one started itself is waited for by whoever started it, at once. So what is
    still there at the second look was adopted.
    """

    def __init__(self) -> None:
        self._over: set[int] = set()

    def look(self) -> None:
        """Reap what was finished at the last check, too."""
        over = {pid for pid in self._children() if _is_over(pid)}
        for pid in over & self._over:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        self._over = over - self._over

    @staticmethod
    def _children() -> set[int]:
        own = os.getpid()
        pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
        return {pid for pid in pids if parent_of(pid) == own}


def _is_over(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return False

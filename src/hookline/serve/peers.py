"""Peers: the other end of a connection, as the operating system knows it.

A header such as `X-Forwarded-For` can claim anything. The key for rate limits, and whether one of the
agent's own processes is connecting, come from the socket.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Scope

from hookline.system import processes

from .users import User

SCOPE: Final = "hookline.peer"


@dataclass(slots=True, eq=False)
class Peer:
    """The other end of one connection."""

    host: str
    """The address; for a Unix socket, `unix`."""
    port: int = 0
    pid: int | None = None
    uid: int | None = None
    """The credentials of the process at a Unix socket."""
    client: str = ""
    """The client address that a trusted proxy reports."""
    user: User | None = None
    """The user whose token was accepted on this connection."""
    known: Callable[[], Any] | None = None
    """Called when a token is accepted."""

    def admit(self, user: User) -> None:
        """Record an accepted token."""
        if self.user is None and self.known is not None:
            self.known()
        self.user = user

    @property
    def is_unix(self) -> bool:
        """Whether the connection uses the Unix socket."""
        return self.host == "unix"

    def key(self) -> str:
        """The key for counting wrong tokens: the address and, on this machine, the user.

        So one user of a machine cannot lock out the others.
        """
        if self.is_unix:
            return f"unix {self.uid}"
        row = processes.socket_row(self.host, self.port) if processes.is_known else None
        return self.host if row is None else f"{self.host} {row[0]}"

    async def suspect(self) -> dict[str, Any] | None:
        """Why one of the agent's processes may be connecting, or None.

        A local process that cannot be identified is suspect: one that exits right after its request,
        or hides its open files, is rejected.
        """
        if not processes.is_known:
            return None
        if self.is_unix:
            is_alive = self.pid is not None and processes.parent_of(self.pid) is not None
            if is_alive and not processes.is_below_an_agent(self.pid or 0):
                return None
            return {"pid": self.pid or 0} if is_alive else {"process": "unknown"}
        if self.client and processes.is_own_address(self.client):
            return {"process": "unknown"}  # it could have connected directly, and been seen
        # Every descriptor of every process may have to be checked.
        pid = await asyncio.to_thread(processes.connected_from_below, self.host, self.port)
        if pid is None:
            return None
        return {"process": "unknown"} if pid == processes.UNKNOWN else {"pid": pid}


def peer_of(scope: Scope) -> Peer:
    """The peer of a request; without our protocol underneath, what the server reports."""
    found: Peer | None = scope.get(SCOPE)
    if found is None:
        host, port = scope.get("client") or ("", 0)
        found = Peer(host, port)
    return found


def peer_at(transport: Any) -> Peer:
    """The peer at the other end of a transport."""
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is not None and connection.family == getattr(socket, "AF_UNIX", None):
        pid, uid = unix_peer(connection) or (None, None)
        return Peer("unix", pid=pid, uid=uid)
    name = transport.get_extra_info("peername")
    return Peer(str(name[0]), int(name[1])) if name else Peer("")


def unix_peer(connection: Any) -> tuple[int, int] | None:
    """The process and user at a Unix socket; uvloop has its own kind of socket."""
    try:
        with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as same:
            return processes.peer_of(same)
    except (OSError, AttributeError):
        return None


def is_own_user(peer: Peer) -> bool:
    """Whether the process at a Unix socket runs as the gateway's user or as root."""
    return peer.uid is not None and peer.uid in (os.getuid(), 0)


class Strangers:
    """Counts the connections of each address on which no token was sent yet."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, peer: Peer) -> bool:
        """Count a connection. Returns False if its address has too many."""
        if self._open[peer.host] >= self._most:
            return False
        self._open[peer.host] += 1
        return True

    def leave(self, peer: Peer) -> None:
        """Stop counting a connection that ended or sent a token."""
        self._open[peer.host] -= 1
        if self._open[peer.host] <= 0:
            del self._open[peer.host]

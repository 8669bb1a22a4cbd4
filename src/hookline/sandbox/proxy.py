"""The proxy: the only way from a sandbox to the network, and every connection is judged.

It speaks HTTP (`CONNECT`, and plain requests with a full address) on a Unix socket. Names are resolved
here, and the address that was checked is the address that is connected to.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import secrets
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from hookline.errors import ConnectionDenied
from hookline.types import NOBODY, Identity

from . import scratch

PORT = 3128
INSIDE = "/run/hookline/proxy.sock"
"""The path of the proxy's socket inside a sandbox."""

_LARGEST = 64 << 10
_PATIENCE = 30.0
"""Seconds within which a request must be complete, and a host must answer."""
_MOST = 256
"""Connections of one child at once."""
_REQUEST = re.compile(r"[A-Z]{1,20} [!-~]+ HTTP/1\.[01]")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*")
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Client:
    """A child that may reach some hosts."""

    kind: str
    hosts: tuple[str, ...]
    command: str = ""
    session_id: str = ""
    call_id: str = ""
    identity: Identity = NOBODY


@dataclass(frozen=True, slots=True)
class NetworkRequest:
    """One connection that a child wants to open."""

    host: str
    port: int
    scheme: str
    client: Client
    refused: str = ""
    """Why the settings of the sandbox refuse it; empty if they allow it."""


Judge: TypeAlias = Callable[[NetworkRequest], Awaitable[str | None]]
"""Decides on a connection: None lets it through, a text says why not. One that the sandbox refuses is
given to it as well, so that it can be recorded."""


async def let_through(request: NetworkRequest) -> str | None:
    """Judge nothing beyond the list of hosts."""
    return None


class Proxy:
    """Listens on a Unix socket of its own; connections wait until `start`."""

    def __init__(self, judge: Judge = let_through) -> None:
        self.judge = judge
        self._folder = Path(tempfile.mkdtemp(prefix="proxy-", dir=scratch.own()))
        self.path = self._folder / "proxy.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.bind(str(self.path))
        self._socket.listen(128)
        self._clients: dict[str, Client] = {}
        self._connections: Counter[str] = Counter()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Serve in the running loop."""
        if self._server is None:
            self._server = await asyncio.start_unix_server(
                self._serve, sock=self._socket, limit=_LARGEST
            )

    def close(self) -> None:
        """Stop, and remove the socket."""
        if self._server is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed already
                self._server.close()
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def admit(self, client: Client) -> str:
        """Let a child in; the token by which its connections are known."""
        token = secrets.token_urlsafe(18)
        self._clients[token] = client
        return token

    def dismiss(self, token: str) -> None:
        """Let a child in no more."""
        self._clients.pop(token, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counted = ""
        try:
            async with asyncio.timeout(_PATIENCE):
                token = (await reader.readline()).decode("ascii", "replace").strip()
                client = self._clients.get(token)
                if client is None:
                    return
                if self._connections[token] >= _MOST:
                    return
                self._connections[token] += 1
                counted = token
                head = await reader.readuntil(b"\r\n\r\n")
            try:
                await self._answer(client, head, reader, writer)
            except ConnectionDenied as refusal:
                await _refuse(writer, str(refusal))
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            if counted:
                self._connections[counted] -= 1
                self._connections += Counter()  # forget those at zero
            with contextlib.suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _answer(
        self,
        client: Client,
        head: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        method, target, headers = head_of(head)
        request = request_of(method, target, client)
        address = await self._judged(request)
        async with asyncio.timeout(_PATIENCE):
            ours = socket.socket(address[0], socket.SOCK_STREAM)
            ours.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(ours, address[1])
            except OSError as error:
                ours.close()
                raise ConnectionDenied(f"{request.host} cannot be reached: {error.strerror}") from None
            far_reader, far_writer = await asyncio.open_connection(sock=ours)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(forwarded(method, target, headers))
        await _join(reader, far_writer, far_reader, writer)

    async def _judged(self, request: NetworkRequest) -> tuple[socket.AddressFamily, Any]:
        """Check the host, resolve it, and ask the judge; the address to connect to."""
        try:
            address = await _resolved(request)
        except ConnectionDenied as refusal:
            await self.judge(replace(request, refused=str(refusal)))
            raise
        reason = await self.judge(request)
        if reason is not None:
            raise ConnectionDenied(reason)
        return address


async def _resolved(request: NetworkRequest) -> tuple[socket.AddressFamily, Any]:
    """The address of a host that the child may reach."""
    named = allowed(request.host, request.port, request.client.hosts)
    if named is None:
        raise ConnectionDenied(f"{request.host} is not among the hosts that this child may reach")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            request.host, request.port, type=socket.SOCK_STREAM
        )
    except OSError:
        raise ConnectionDenied(f"{request.host} cannot be resolved") from None
    usable = [each for each in found if named == "name" or _is_elsewhere(str(each[4][0]))]
    if not usable:
        raise ConnectionDenied(f"{request.host} is a local or private address; name it to allow it")
    return usable[0][0], usable[0][4]


def head_of(head: bytes) -> tuple[str, str, list[str]]:
    """The method, the target and the headers; what two readers could read differently is refused."""
    line, *headers = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if _REQUEST.fullmatch(line) is None:
        raise ConnectionDenied("this proxy speaks HTTP/1.1")
    if any(_HEADER.fullmatch(each) is None for each in headers):
        raise ConnectionDenied("a header of the request is malformed")
    method, target, _ = line.split(" ")
    return method, target, headers


def request_of(method: str, target: str, client: Client) -> NetworkRequest:
    """The target of a request line."""
    if method == "CONNECT":
        parts = urlsplit(f"//{target}")
        scheme, default = "https", 443
    else:
        parts = urlsplit(target)
        scheme, default = "http", 80
        if parts.scheme != "http":
            raise ConnectionDenied("plain requests need a full http:// address")
    try:
        port = parts.port or default
    except ValueError:
        raise ConnectionDenied("the port is not a number") from None
    host = normal(parts.hostname or "")
    if host is None or parts.username is not None:
        raise ConnectionDenied("the host is not a name or an address")
    return NetworkRequest(host, port, scheme, client)


def normal(host: str) -> str | None:
    """A host in the one way it is compared: lower case, without a final dot; None if it is none."""
    host = host.lower().removesuffix(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host if _NAME.fullmatch(host) else None


def allowed(host: str, port: int, patterns: Sequence[str]) -> str | None:
    """How a host is allowed: by its own `name`, by a `pattern`, or not at all."""
    found: str | None = None
    for pattern in patterns:
        given, wanted = pattern.lower().removesuffix("."), ""
        if given.count(":") == 1:
            given, _, wanted = given.partition(":")
        given = given.strip("[]")
        if wanted and wanted != str(port):
            continue
        if given == host:
            return "name"
        if given == "*" or (given.startswith("*.") and host.endswith(given[1:])):
            found = "pattern"
    return found


def is_public(address: str) -> bool:
    """Whether an address is on the internet: not this machine, its network, or a cloud's metadata."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.teredo is not None or ip not in ipaddress.ip_network("2000::/3"):
            return False
    return ip.is_global and not ip.is_multicast


def _is_elsewhere(address: str) -> bool:
    """Whether an address is on the internet, and not a public one that this machine has itself."""
    if not is_public(address):
        return False
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return True
    return False


def forwarded(method: str, target: str, headers: Sequence[str]) -> bytes:
    """A plain request as its server takes it; one per connection, so that none escapes judgement."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    dropped = ("proxy-", "connection:", "host:", "keep-alive:")
    kept = [line for line in headers if line and not line.lower().startswith(dropped)]
    host = parts.netloc.rpartition("@")[2]
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *kept, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _refuse(writer: asyncio.StreamWriter, reason: str) -> None:
    body = f"Hookline's sandbox does not connect: {reason}\n".encode()
    writer.write(
        b"HTTP/1.1 403 Forbidden by Hookline\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    await writer.drain()


async def _join(
    near: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
    far: asyncio.StreamReader,
    near_writer: asyncio.StreamWriter,
) -> None:
    """Copy both ways until both ends are done."""

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()

    try:
        await asyncio.gather(copy(near, far_writer), copy(far, near_writer))
    finally:
        far_writer.close()


def variables() -> dict[str, str]:
    """What tells programs of the proxy."""
    address = f"http://127.0.0.1:{PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    found = {each: address for name in names for each in (name, name.lower())}
    return {**found, "NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1"}

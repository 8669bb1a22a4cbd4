"""The open connections of a provider: one session per event loop and endpoint."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hookline.errors import ModelUnavailable

from .providers import INSTALL

if TYPE_CHECKING:
    from aiohttp import ClientSession


class _Shared:
    """A session and who uses it."""

    __slots__ = ("session", "users")

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.users: set[object] = set()


class Connections:
    """Sessions, shared by the models that use them and closed by the last one."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[asyncio.AbstractEventLoop, str], _Shared] = {}

    async def session(self, url: str, user: object) -> ClientSession:
        """The session of the running loop for this endpoint; it is noted who uses it."""
        place = (asyncio.get_running_loop(), url)
        shared = self._sessions.get(place)
        if shared is None or shared.session.closed:
            await self._forget_ended()
            shared = self._sessions[place] = _Shared(_open())
        shared.users.add(user)
        return shared.session

    async def leave(self, user: object) -> None:
        """Release a session; sessions without users are closed, whichever loop they belong to."""
        for place, shared in list(self._sessions.items()):
            shared.users.discard(user)
            if not shared.users:
                del self._sessions[place]
                await _close(shared.session, place[0])

    async def _forget_ended(self) -> None:
        """Drop the sessions of closed loops: they can be neither used nor awaited."""
        for place, shared in list(self._sessions.items()):
            if place[0].is_closed():
                del self._sessions[place]
                await shared.session.close()


async def _close(session: ClientSession, loop: asyncio.AbstractEventLoop) -> None:
    if loop.is_closed() or loop is asyncio.get_running_loop():
        await session.close()
    else:
        # Another thread's loop: only it may touch its connections.
        asyncio.run_coroutine_threadsafe(session.close(), loop)


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for this address. Loopback never goes through one."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and not proxy_bypass(host) else None


def http() -> Any:
    """The HTTP library, or an error that says how to install it."""
    try:
        return import_module("aiohttp")
    except ImportError as error:
        raise ModelUnavailable(
            f"models over HTTP need aiohttp, which is not installed: {INSTALL}"
        ) from error


def _open() -> ClientSession:
    aiohttp = http()
    return aiohttp.ClientSession(
        # As many connections as there are requests: the provider limits them, not we.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=300),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=True,
    )

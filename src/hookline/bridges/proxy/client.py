"""`ProxyClient`: writes one answer to a client, and keeps its connection alive while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from .wire import WireFormat

SESSION = "X-Hookline-Session"
"""The header that names the session of the answer."""


class ProxyClient:
    """The connection of one request."""

    def __init__(self, http: web.Request, form: WireFormat, stream: bool, seconds: float) -> None:
        self.session = ""
        self.headers: dict[str, str] = {}
        """Headers of the provider that the client gets."""
        self._http, self._form, self._stream, self._seconds = http, form, stream, seconds
        self._response: web.StreamResponse | None = None
        self._last = monotonic()

    async def write(self, data: bytes) -> None:
        """Send a part of a stream."""
        if data:
            await (await self._started()).write(data)
            self._last = monotonic()

    async def end(self) -> None:
        """End a stream."""
        await (await self._started()).write_eof()

    async def whole(self, body: bytes) -> None:
        """Send an answer at once."""
        response = await self._started()
        await response.write(body)
        await response.write_eof()

    async def fail(
        self, status: int, body: bytes, headers: dict[str, str], message: str
    ) -> web.StreamResponse:
        """Send an error: with its status, or as an event if the stream has begun."""
        if self._response is None:
            headers = {**headers, **({SESSION: self.session} if self.session else {})}
            return web.Response(status=status, body=body, headers=headers)
        if (
            not self._stream
        ):  # a status of 200 is on its way: the client must not take this for an answer
            if self._http.transport is not None:
                self._http.transport.abort()
            return self._response
        await self._response.write(self._form.error_event(message))
        await self._response.write_eof()
        return self._response

    @property
    def response(self) -> web.StreamResponse:
        """What was sent."""
        assert self._response is not None
        return self._response

    @asynccontextmanager
    async def kept_alive(self) -> AsyncGenerator[None]:
        """Send something the format ignores whenever nothing was sent for a while."""
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait([beating])

    async def _beat(self) -> None:
        while True:
            wait = self._last + self._seconds - monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            response = await self._started()
            # A comment in a stream of events, or white space before a JSON text.
            await response.write(b": keep-alive\n\n" if self._stream else b"\n")
            self._last = monotonic()

    async def _started(self) -> web.StreamResponse:
        if self._response is None:
            kind = "text/event-stream; charset=utf-8" if self._stream else "application/json"
            headers = {"Cache-Control": "no-store", **self.headers, SESSION: self.session}
            self._response = web.StreamResponse(headers={**headers, "Content-Type": kind})
            await self._response.prepare(self._http)
        return self._response

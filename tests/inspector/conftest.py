"""The inspector as `hookline inspect` serves it, on a loopback port in the loop of the test."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from hookline.serve import GatewaySettings
from hookline.serve.inspector_server import serve_inspector

TOKEN = "the-token-of-the-owner"


@dataclass
class Inspected:
    url: str
    http: aiohttp.ClientSession
    leaving: asyncio.Event

    async def get(self, path: str, **query: Any) -> Any:
        """What an endpoint gives."""
        async with self.http.get(f"{self.url}/api/{path}", params=query) as response:
            assert response.status == 200, await response.text()
            assert response.headers["cache-control"] == "no-store"
            return await response.json()

    async def status(self, path: str, **query: Any) -> tuple[int, str]:
        async with self.http.get(f"{self.url}/api/{path}", params=query) as response:
            return response.status, (await response.json())["detail"]

    @asynccontextmanager
    async def tail(self, **query: Any) -> AsyncGenerator[Any]:
        """The frames of the live tail, once it is listened to."""
        async with self.http.get(f"{self.url}/api/tail", params=query) as response:

            async def frames() -> AsyncGenerator[dict[str, Any]]:
                async for line in response.content:
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])

            found = frames()
            assert (await anext(found))["type"] == "watching"
            yield found
            await found.aclose()


@pytest.fixture
def inspected(app):
    """Serve the inspector of the app, which runs meanwhile."""

    @asynccontextmanager
    async def run(
        *, headers: dict[str, str] | None = None, **settings: Any
    ) -> AsyncGenerator[Inspected]:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        leaving = asyncio.Event()
        wanted = GatewaySettings(**{"port": 0, "token": TOKEN, **settings})
        serving = asyncio.create_task(
            serve_inspector(app, wanted, leaving=leaving, started=started.set_result)
        )
        await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        try:
            bearer = {"authorization": f"Bearer {TOKEN}"}
            async with aiohttp.ClientSession(headers=bearer if headers is None else headers) as http:
                yield Inspected(await started, http, leaving)
        finally:
            leaving.set()
            await serving

    return run

"""A gateway as `hookline gateway` runs it: uvicorn on a loopback port, in the loop of the test."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import websockets

from hookline.serve import Gateway, GatewaySettings
from hookline.serve.server import serve

TOKEN = "the-token-of-the-owner"
"""What the gateways of tests want, unless a test says otherwise."""


def bearer(token: str = TOKEN) -> dict[str, str]:
    """The header that brings a token."""
    return {"authorization": f"Bearer {token}"} if token else {}


@dataclass
class Served:
    gateway: Gateway
    url: str
    http: aiohttp.ClientSession

    def ws(self, session: str = "web:test", *, token: str = TOKEN, **options: Any):
        query = options.pop("query", "")
        if token and "subprotocols" not in options:
            options.setdefault("additional_headers", bearer(token))
        address = f"{self.url.replace('http', 'ws', 1)}ws?session={session}{query}"
        return websockets.connect(address, proxy=None, **options)

    async def say(self, text: str, session: str = "web:test", **body: Any) -> dict[str, Any]:
        at = f"{self.url}api/sessions/{session}/messages"
        async with self.http.post(at, json={"text": text, **body}) as response:
            return {"status": response.status, **await response.json()}

    async def events(self, text: str, session: str = "web:test", **body: Any) -> list[dict[str, Any]]:
        """The frames of an answer that is streamed as events."""
        at = f"{self.url}api/sessions/{session}/messages"
        accept = {"accept": "text/event-stream"}
        async with self.http.post(at, json={"text": text, **body}, headers=accept) as response:
            assert response.status == 200
            lines = (await response.text()).splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


@pytest.fixture
def served(app):
    """Serve the app's gateway; settings are those of `[gateway]`."""

    @asynccontextmanager
    async def run(enabled=None, inbox=None, headers=None, **settings: Any) -> AsyncGenerator[Served]:
        settings = {"port": 0, "requests_per_minute": 0, "token": TOKEN, **settings}
        wanted = GatewaySettings.model_validate(settings)
        gateway = Gateway(app, enabled=enabled, settings=wanted, inbox=inbox)
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(gateway, started=started.set_result))
        await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        try:
            given = bearer() if headers is None else headers
            async with aiohttp.ClientSession(headers=given) as http:
                yield Served(gateway, await started, http)
        finally:
            gateway.leave()
            await serving

    return run


async def frames_until(socket: Any, kind: str) -> list[dict[str, Any]]:
    """The frames of a WebSocket up to one of a kind."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] != kind:
        found.append(json.loads(await socket.recv()))
    return found

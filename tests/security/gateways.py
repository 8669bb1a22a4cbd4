"""A gateway on a loopback port with an owner and two users, and requests made by hand.

A client library would tidy up what is sent: paths, headers, halves of requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import websockets

from hookline.models import ScriptedModel
from hookline.policy import Policy
from hookline.runtime.app import Hookline
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.server import serve

OWNER, ADA, BOB = "the-token-of-the-owner", "the-token-of-ada-lovelace", "the-token-of-bob-the-builder"
USERS = {"ada": {"token": ADA}, "bob": {"token": BOB}}
TOKENS = {"owner": OWNER, "ada": ADA, "bob": BOB}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@dataclass
class Answer:
    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class House:
    gateway: Gateway
    port: int

    @property
    def app(self) -> Hookline:
        return self.gateway.app

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def raw(self, data: bytes) -> Answer:
        """Send bytes, and read one answer; 0 where the connection ends without one."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            return await read_answer(reader)
        finally:
            writer.close()

    async def ask(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: Any = None,
        more: str = "",
    ) -> Answer:
        """A request, its target as it is given."""
        content = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        given = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", **(headers or {})}
        if content:
            given = {"Content-Type": "application/json", **given}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        head = f"{method} {target} HTTP/1.1\r\n{lines}{more}Content-Length: {len(content)}\r\n\r\n"
        return await self.raw(head.encode("latin-1") + content)

    def ws(self, session: str, token: str = "", **options: Any) -> Any:
        if token:
            options.setdefault("additional_headers", bearer(token))
        address = f"ws://127.0.0.1:{self.port}/ws?session={session}"
        return websockets.connect(address, proxy=None, **options)

    async def say(self, token: str, session: str, text: str = "hi", **headers: str) -> Answer:
        path = f"/api/sessions/{session}/messages"
        return await self.ask("POST", path, {**bearer(token), **headers}, {"text": text})


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """One answer, up to its end or the end of the connection."""
    async with asyncio.timeout(300):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return Answer(0, "")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (e.partition(":") for e in lines)}
        try:
            length = int(headers.get("content-length", -1))
            body = await reader.readexactly(length) if length >= 0 else await reader.read()
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            body = getattr(error, "partial", b"")
    return Answer(int(first.split()[1]), body.decode("utf-8", "replace"), headers)


@asynccontextmanager
async def house(
    folder: Path, *replies: Any, policy: str = "auto", config: str = "", enabled: Any = None,
    plugins: Any = (), **settings: Any,
) -> AsyncIterator[House]:  # fmt: skip
    """A running gateway; without replies, its model says "answered" each time."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(config)
    app = Hookline(home=home, workspace=folder, policy=Policy(default=policy))
    app.load_hooks(packages=False)
    model = ScriptedModel([*replies]) if replies else ScriptedModel(["answered"], repeat=True)
    app.models.add(model)
    app.model = model.name
    for plugin in plugins:
        app.hooks.add(plugin)
    wanted = {
        "port": 0, "token": OWNER, "users": USERS, "requests_per_minute": 0,
        "wrong_tokens": 1_000_000, "drain": 0, **settings,
    }  # fmt: skip
    gateway = Gateway(app, enabled=enabled, settings=GatewaySettings.model_validate(wanted))
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(gateway, started=started.set_result))
    await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    try:
        yield House(gateway, int((await started).rstrip("/").rpartition(":")[2]))
    finally:
        gateway.leave()
        await serving


async def frame(socket: Any, kind: str) -> dict[str, Any]:
    """The next frame of a kind."""
    async with asyncio.timeout(30):
        while (found := json.loads(await socket.recv()))["type"] != kind:
            pass
    return found

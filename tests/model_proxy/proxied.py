"""A proxy in this process, in front of a strict model server, with the hooks of a home."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hookline.bridges.proxy.server import ProxyServer
from hookline.bridges.proxy.settings import ProxySettings
from hookline.tape.open import open_store

from ..openai_server import OpenAIServer

TOKEN = "token-of-the-proxy"
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "shell",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]
GUARD = """
def call(event):
    command = str(event.input.get("command"))
    if "sudo" in command:
        return event.deny("not as root")
    if "ask" in command:
        return event.ask("really?")
    if "crash" in command:
        raise ValueError("broken guard")
    if "rewrite" in command:
        return event.replace({**event.input, "command": "echo changed"})


def result(event):
    if "PHONE" in str(event.content):
        return event.replace(content=str(event.content).replace("PHONE", "[phone]"))


def prompt(event):
    if "forbidden" in event.text:
        return event.deny("not that")
    if "password" in event.text:
        return event.replace(event.text.replace("password", "****"))


hooks = [("tool_call", call), ("tool_result", result), ("input", prompt)]
"""


class Proxied:
    """The parts of a test."""

    def __init__(self, url: str, server: OpenAIServer, home: Path) -> None:
        self.url, self.server, self.home = url, server, home
        self.clients: list[Any] = []
        """Clients of providers' packages, to close at the end."""

    async def entries(self, session: str) -> list[tuple[str, Any]]:
        """What the tape has of a session."""
        store = await open_store(self.home, None)
        try:
            return [(entry.kind, entry.payload) for entry in await store.entries(session)]
        finally:
            await store.close()

    async def sessions(self) -> list[str]:
        """The recorded sessions."""
        store = await open_store(self.home, None)
        try:
            return [each.id for each in await store.sessions()]
        finally:
            await store.close()


@asynccontextmanager
async def proxied(
    tmp_path: Path,
    monkeypatch: Any,
    answers: Sequence[Any],
    *,
    guard: str = GUARD,
    kind: type[OpenAIServer] = OpenAIServer,
    **settings: Any,
) -> AsyncGenerator[Proxied]:
    """Run a proxy that forwards to a server which plays these answers."""
    home, work = tmp_path / "home", tmp_path / "work"
    hooks = home / "profiles" / "default" / "hooks"
    for folder in (hooks, work):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    if guard:
        (hooks / "guard.py").write_text(guard)
    with kind(answers) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        proxy = ProxyServer(home, work, TOKEN, ProxySettings(**settings))
        async with asyncio.timeout(20), proxy.running(0) as address:
            found = Proxied(address, server, home)
            try:
                yield found
            finally:
                for client in found.clients:
                    await client.close()

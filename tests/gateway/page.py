"""A gateway in this process, and a browser in front of it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hookline.policy import Policy
from hookline.runtime.app import Hookline
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.peers import Peer
from hookline.serve.server import serve
from hookline.types import StreamEvent

TOKEN = "the-token-of-the-owner"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
MISSING = "needs the browser chromium; scripts/system-packages installs it"


class Held:
    """A model whose answer goes on when the test says so: each `Event` in it is waited for."""

    name = "held"
    context_window = None

    def __init__(self, *pieces: str | asyncio.Event) -> None:
        self.pieces = pieces

    async def stream(self, request: Any) -> AsyncIterator[StreamEvent]:
        for piece in self.pieces:
            if isinstance(piece, str):
                yield StreamEvent("text", {"delta": piece})
            else:
                await piece.wait()
        yield StreamEvent("final", {"finish_reason": "stop"})

    async def close(self) -> None:
        """Nothing is held."""


class House:
    """One home, and the gateways that run on it one after the other, at the same address."""

    def __init__(self, folder: Path, model: Any, **settings: Any) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self._home = folder / "home"
        self._model = model
        self._settings = settings
        self.app: Hookline | None = None
        self.gateway: Gateway | None = None
        self.address = ""
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        app = self.app = Hookline(
            home=self._home, workspace=self.workspace, policy=Policy(default="auto")
        )
        app.load_hooks(packages=False)
        app.models.add(self._model)
        app.model = self._model.name
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.gateway = Gateway(
            app, settings=GatewaySettings(**{"port": 0, "drain": 0, "token": TOKEN, **self._settings})
        )
        self._serving = asyncio.create_task(serve(self.gateway, started=started.set_result))
        await asyncio.wait([self._serving, started], return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()
        self.address = await started
        self._settings["port"] = int(self.address.rstrip("/").rpartition(":")[2])

    async def stop(self) -> None:
        if self.gateway is not None and self._serving is not None:
            self.gateway.leave()
            await self._serving


@asynccontextmanager
async def serving(folder: Path, model: Any, **settings: Any) -> AsyncIterator[House]:
    """A running gateway."""
    house = House(folder, model, **settings)
    await house.start()
    try:
        yield house
    finally:
        await house.stop()


@asynccontextmanager
async def browser(*flags: str) -> AsyncIterator[Any]:
    """Chromium without a window."""
    from playwright.async_api import async_playwright

    # The browser is a child of the process that the gateway runs in, and may answer all the same.
    suspect, Peer.suspect = Peer.suspect, no_suspect
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # it cannot be had as root
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*sandbox, "--disable-gpu", *flags]
        )
        try:
            yield found
        finally:
            Peer.suspect = suspect
            await found.close()


async def no_suspect(peer):
    """What a peer says that no process of the gateway's own holds."""


async def opened(chromium, house, fragment="", connects=True, token=TOKEN, **options):
    """A page of its own, connected; what goes wrong in it fails the test."""
    context = await chromium.new_context(**options)
    page = await context.new_page()
    page.set_default_timeout(20_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on(
        "console",
        lambda said: page.problems.append(said.text) if "Content Security" in said.text else None,
    )
    if token:  # as the link that is printed brings it
        fragment = f"{fragment}&token={token}" if fragment else f"#token={token}"
    await page.goto(house.address + fragment)
    if connects:
        await connected(page)
    return page


async def connected(page):
    await page.wait_for_selector('#state[data-state="connected"]')


async def serious_faults(page):
    """What axe finds wrong with a page for people who cannot see it, or use no mouse."""
    from axe_playwright_python.async_playwright import Axe

    found = (await Axe().run(page)).response["violations"]
    return [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


async def say(page, text):
    await page.fill("#composer-text", text)
    await page.click("#send")


async def idle(page):
    await page.wait_for_selector("#cancel", state="hidden")


async def true(page, script, arg=None):
    """Wait until a script says yes.

    Playwright's own wait evaluates text inside the page, which the page's security policy forbids
    whenever the answer is not yes at once.
    """
    async with asyncio.timeout(30):
        while not await page.evaluate(script, arg):
            await asyncio.sleep(0.05)

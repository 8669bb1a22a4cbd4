"""Where each example of the reference is used: a real app, in the situation that the example is for."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from hookline.observe.reference.examples import PLUGINS, implementations
from hookline.runtime.app import Hookline
from hookline.runtime.turn import TurnResult
from hookline.serve import Gateway
from hookline.testing import RecordingChannel

from ...gateway.mailbox import Letters

SITUATIONS: dict[str, Callable[["Stage"], Awaitable[None]]] = {}


def situation(hook: str):
    """Declare the situation of a hook's example."""

    def declare(play: Callable[["Stage"], Awaitable[None]]) -> Callable[["Stage"], Awaitable[None]]:
        assert hook not in SITUATIONS
        SITUATIONS[hook] = play
        return play

    return declare


class Stage:
    """An app that runs the plugin of one example, and a model that answers as it is told."""

    def __init__(
        self,
        hook: str,
        app: Hookline,
        script: Any,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.hook, self.app, self.caplog, self.monkeypatch = hook, app, caplog, monkeypatch
        self.script = partial(script, name="local")
        """Sets what the model answers."""
        made = next(each for each in PLUGINS if hook in dict(implementations(each)))
        self.plugin: Any = made(app.workspace) if "home" in signature(made).parameters else made()
        self.calls: list[str] = []
        """What the example did each time that its hook fired."""
        self.failed: list[Any] = []
        self.channel = RecordingChannel()
        """The way to the person."""
        app.hooks.trace(self.note)

    @property
    def folder(self) -> Path:
        """The workspace, which is also the folder of the example's plugin."""
        return self.app.workspace

    def note(self, dispatch: Any) -> None:
        """Note what the plugin of the example did."""
        mine = [call for call in dispatch.calls if call.by == "example"]
        self.failed += [call for call in mine if call.did in ("raised", "timed out", "skipped")]
        if dispatch.hook == self.hook:
            self.calls += [call.did for call in mine]

    async def say(self, content: str = "hello", *answers: Any, **fields: Any) -> TurnResult:
        """Run one turn in an app that runs; without answers, the model goes on with its script."""
        if answers:
            self.script(*answers)
        return await self.app.process({"content": content, "session_id": "s", **fields}, self.channel)

    def running(self) -> AbstractAsyncContextManager[Hookline]:
        """The app, running."""
        return self.app.running(self.channel)

    async def turn(
        self, content: str = "hello", *answers: Any, then: type[Exception] | None = None, **fields: Any
    ) -> TurnResult:
        """Start the app, run one turn, and stop the app, or let it fail with an error."""
        self.model = self.script(*answers or ["Done."])
        async with self.running():
            result = await self.say(content, **fields)
            if then is not None:
                raise then
            return result

    def logged(self) -> list[str]:
        """The lines that examples log."""
        return [r.getMessage() for r in self.caplog.records if "examples" in r.name]

    @asynccontextmanager
    async def gateway(self, *answers: Any) -> AsyncGenerator["Post"]:
        """Serve a channel of another plugin through a gateway."""
        self.script(*answers or ["Done."])
        post = Post()
        self.app.hooks.register("provide_channels", lambda message_handler: [post])
        async with Gateway(self.app, enabled=[post.name]).running():
            yield post


class Post(Letters):
    """A channel that keeps what is sent through it."""

    name = "telegram-test"

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.parts: list[Any] = []
        self.notes: list[str] = []
        self.ended = asyncio.Event()

    async def start(self, handle: Any) -> None:
        self.handle = handle

    async def write(self, content: str, **fields: Any) -> None:
        """Send the gateway a message and wait for the end of its turn."""
        self.ended.clear()
        await self.post(content, **fields)
        await asyncio.wait_for(self.ended.wait(), 10)

    async def post(self, content: str, **fields: Any) -> None:
        """Send the gateway a message."""
        envelope = {"content": content, "channel": self.name, "chat_id": "ada", "sender_id": "ada"}
        await self.handle({**envelope, **fields})

    async def send(self, outbound: Any) -> bool:
        self.sent.append(outbound["content"])
        return True

    async def publish(self, inbound: Any, parts: Any) -> None:
        self.parts += parts

    async def notify(self, inbound: Any, note: Any) -> None:
        self.notes.append(note.text)

    async def end(self, inbound: Any, result: Any) -> None:
        self.ended.set()

    async def error(self, inbound: Any, message: str) -> None:
        self.ended.set()

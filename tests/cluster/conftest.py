"""A cluster in one process: gateways and workers, each with an app and connections of its own."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from hookline import Hookline
from hookline.models import ScriptedModel
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.settings import WorkerSettings
from hookline.serve.worker import Worker

from .. import postgres
from ..gateway.test_gateway import Mailbox, Post

QUICK = WorkerSettings(heartbeat=0.3, silence=2.0, poll=0.2, drain=5.0)


class Chest(Mailbox):
    """A channel that is a list, and tells of each message by its content."""

    def __init__(self):
        super().__init__()
        self.ends = {}
        self.shown = {}
        self.changed = asyncio.Condition()

    async def stream(self, inbound, event):
        if event.kind == "text":
            shown = self.shown.setdefault(inbound["message_id"], [])
            shown.append(event.data["delta"])
            await self._tell()

    async def send(self, outbound):
        await super().send(outbound)
        await self._tell()
        return True

    async def end(self, inbound, result):
        assert inbound["message_id"] not in self.ends, "ended twice"
        self.ends[inbound["message_id"]] = result
        self.log.append((inbound["message_id"], result.outcome))
        await self._tell()

    async def error(self, inbound, message):
        self.ends[inbound["message_id"]] = message
        await self._tell()

    async def _tell(self):
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition):
        async with self.changed, asyncio.timeout(60):
            await self.changed.wait_for(condition)

    async def answers(self, *names):
        await self.until(lambda: all(name in self.ends for name in names))
        return [self.ends[name] for name in names]


class Cluster:
    """Makes gateways and workers on one schema."""

    def __init__(self, folder, schema, stack, url=None):
        self.folder, self.schema, self._stack = folder, schema, stack
        self.url = url or postgres.url()
        self._count = 0

    def app(self, *replies, url=None, **overrides):
        self._count += 1
        home = self.folder / f"home{self._count}"
        workspace = self.folder / "work"
        workspace.mkdir(exist_ok=True)
        app = Hookline(
            home=home,
            workspace=workspace,
            overrides={
                "tape": {"url": url or self.url, "schema": self.schema, "home": "team"},
                "policy": {"default": "allow"},
                **overrides,
            },
        )
        app.load_hooks(packages=False)
        app.hook_files.wanted = False
        model = ScriptedModel([*replies]) if replies else ScriptedModel(["answered"] * 1000)
        app.models.add(model)
        app.model = model.name
        return app

    async def gateway(self, *, worker=False, app=None, box=None, **settings):
        app = app or self.app()
        box = box or Chest()
        app.hooks.add(Post(box))
        wanted = GatewaySettings.model_validate({"worker": worker, "drain": 5.0, **settings})
        gateway = Gateway(app, enabled=["mail"], settings=wanted)
        await self._stack.enter_async_context(gateway.running())
        box.gateway = gateway
        return box

    async def worker(self, *replies, app=None, settings=QUICK, **options):
        worker = Worker(app or self.app(*replies), settings, **options)
        await self._stack.enter_async_context(worker.app.running())
        await self._stack.enter_async_context(worker.running())
        return worker


@pytest.fixture
async def cluster(tmp_path):
    schema = postgres.new_schema()
    _, url = await postgres.restricted(schema, parts=True)  # as in production: it can only append
    async with AsyncExitStack() as stack:
        yield Cluster(tmp_path, schema, stack, url)
    postgres.drop_roles(schema)


def letter(text="hi", chat="ada", number=1, **fields):
    name = f"{chat}-{number}"
    sent = {"content": text, "channel": "mail", "chat_id": chat, "sender_id": chat}
    return {**sent, "message_id": name, **fields}

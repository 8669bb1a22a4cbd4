"""Triggers in the gateway: started with it, answered through its channels, guarded by themselves."""

import asyncio
import time
from contextlib import asynccontextmanager

import aiohttp
import httpx
import pytest
from fastapi import APIRouter
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from hookline import hookimpl
from hookline.ext.triggers import TriggerEvent
from hookline.ext.triggers.webhook import sign
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.server import create_app, serve

from .. import postgres
from ..gateway.mailbox import Letters

SECRET = "a-secret-of-some-length"


class Mailbox(Letters):
    """A channel that a plugin brings, and what was sent through it."""

    name = "mail"

    def __init__(self):
        self.sent = asyncio.Queue()

    async def send(self, outbound):
        self.sent.put_nowait((outbound["chat_id"], outbound["content"]))
        return True


class Asked(Mailbox):
    """A mailbox whose person answers yes."""

    def __init__(self):
        super().__init__()
        self.notes, self.questions = [], []

    async def notify(self, inbound, note):
        self.notes.append((inbound["chat_id"], note.text))

    async def ask(self, inbound, question):
        self.questions.append((inbound["chat_id"], question.text))
        return "yes"


class MailPlugin:
    def __init__(self):
        self.mailbox = Mailbox()

    @hookimpl
    def provide_channels(self, message_handler):
        return [self.mailbox]


@pytest.mark.parametrize("channels", [["web", "mail"], ["mail"]])
async def test_a_webhook_is_served_without_the_gateways_token_and_answered_in_a_channel(
    app, settings, scripted, channels
):
    settings(
        f'[triggers.orders]\ntype = "webhook"\nsecret = "{SECRET}"\n'
        'message = "Order {id}"\nchannel = "mail"\nchat = "ada"\n'
    )
    scripted("Thank you.")
    mail = MailPlugin()
    app.hooks.add(mail, name="mail")
    given = GatewaySettings(port=0, token="t" * 20, channels=channels)
    body = b'{"id": 17}'
    async with asyncio.timeout(30), served(Gateway(app, settings=given)) as client:
        async with client.post("/triggers/orders", data=body) as response:
            assert response.status == 401
        headers = sign(SECRET, int(time.time()), body)
        async with client.post("/triggers/orders", data=body, headers=headers) as response:
            assert response.status == 202
        assert await mail.mailbox.sent.get() == ("ada", "Thank you.")
        async with client.get(
            "/openapi.json", headers={"Authorization": f"Bearer {'t' * 20}"}
        ) as response:
            assert "/triggers/orders" in (await response.json())["paths"]


class OnlyRoutes:
    """A plugin that does nothing but serve routes, of every kind that there is."""

    @hookimpl
    def trigger_routes(self):
        async def answer(request):
            return PlainTextResponse(f"{request.method} {request.url.path}")

        router = APIRouter(prefix="/router")
        router.add_api_route("/ping", lambda: "pong")
        mount = Mount("/mount", routes=[Route("/ping", answer)])
        return [Route("/route", answer, methods=["GET", "POST"]), mount, router]


class OnlyStart:
    """A plugin that does nothing but emit an event when triggers start."""

    @hookimpl
    async def trigger_start(self, deps):
        await deps["emit"](TriggerEvent("only", message="It begins."))


class OnlyStop:
    def __init__(self):
        self.stopped = False

    @hookimpl
    def trigger_stop(self, deps):
        self.stopped = True


@asynccontextmanager
async def served(gateway):
    """A client of a gateway as `hookline gateway` serves it."""
    started = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(gateway, started=started.set_result))
    await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving  # why it did not start
    try:
        async with aiohttp.ClientSession(await started or None) as client:
            yield client
    finally:
        gateway.leave()
        await serving


async def test_a_plugin_with_only_trigger_start_is_started(app, scripted):
    model = scripted("Hello.")
    app.hooks.add(OnlyStart(), name="only")
    async with Gateway(app, enabled=["web"]).running() as gateway:
        await gateway.triggers.drained()
    assert [request.messages[-1]["content"] for request in model.requests] == ["It begins."]


async def test_a_plugin_with_only_trigger_stop_is_stopped(app):
    plugin = OnlyStop()
    app.hooks.add(plugin, name="only")
    async with Gateway(app, enabled=["web"]).running():
        assert not plugin.stopped
    assert plugin.stopped


async def test_without_triggers_nothing_of_them_starts(app):
    async with Gateway(app, enabled=["web"]).running() as gateway:
        assert gateway.triggers is None


PLUGIN_ROUTES = {"/route": "GET /route", "/mount/ping": "GET /mount/ping", "/router/ping": '"pong"'}


@pytest.mark.parametrize("channels", [["web", "openai"], ["mail"]])
async def test_a_plugin_with_only_trigger_routes_is_served_whatever_channels_there_are(app, channels):
    app.hooks.add(MailPlugin(), name="mail")
    app.hooks.add(OnlyRoutes(), name="routes")
    given = GatewaySettings(port=0, token="t" * 20, channels=channels)
    async with asyncio.timeout(30), served(Gateway(app, settings=given)) as client:
        for path, answer in PLUGIN_ROUTES.items():
            async with client.get(path) as response:
                assert (response.status, await response.text()) == (200, answer)
        async with client.get("/metrics") as response:
            assert response.status == 401  # what is not the plugin's needs a token as before


async def test_under_another_server_the_routes_of_triggers_are_mounted_when_the_gateway_starts(
    app, settings, scripted
):
    scripted("Thank you.")
    settings(f'[triggers.orders]\ntype = "webhook"\nsecret = "{SECRET}"\nmessage = "Order {{id}}"\n')
    app.hooks.add(OnlyRoutes(), name="routes")
    asgi = create_app(Gateway(app, settings=GatewaySettings(token="t" * 20)))
    before = len(asgi.router.routes)
    body = b'{"id": 17}'
    for _ in range(2):  # a server may run the lifespan again
        async with (
            asgi.router.lifespan_context(asgi),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(asgi, client=("127.0.0.1", 1)),
                base_url="http://localhost",
            ) as client,
        ):
            for path, answer in PLUGIN_ROUTES.items():
                assert (await client.get(path)).text == answer
            assert (await client.post("/route")).text == "POST /route"
            assert (await client.post("/triggers/orders", content=body)).status_code == 401
            headers = sign(SECRET, int(time.time()), body)
            sent = await client.post("/triggers/orders", content=body, headers=headers)
            assert sent.status_code in (202, 409)
            assert (await client.get("/api/sessions")).status_code == 401
        assert len(asgi.router.routes) == before


async def test_what_is_no_route_is_reported_and_the_gateway_serves_on(app, errors):
    class Wrong:
        @hookimpl
        def trigger_routes(self):
            return ["/not-a-route"]

    app.hooks.add(Wrong(), name="wrong")
    app.hooks.add(OnlyRoutes(), name="routes")
    given = GatewaySettings(port=0, token="t" * 20)
    async with (
        asyncio.timeout(30),
        served(Gateway(app, settings=given)) as client,
        client.get("/route") as response,
    ):
        assert response.status == 200
    [(stage, error)] = errors
    assert stage == "trigger"
    assert "/not-a-route" in str(error)


class Watcher:
    """A plugin that starts turns by itself, in each of the ways that there are."""

    @hookimpl
    def trigger_init(self, deps):
        self.emit, self.app = deps["emit"], deps["app"]

    async def by_event(self, session):
        receipt = await self.emit(TriggerEvent("files", message="a.txt changed", session=session))
        await receipt.settled()

    async def by_message(self, session):
        await self.app.process({"content": "a.txt changed", "session_id": session})


@pytest.fixture
def mail(app):
    plugin = MailPlugin()
    app.hooks.add(plugin, name="mail")
    return plugin.mailbox


@pytest.fixture
def watcher(app):
    plugin = Watcher()
    app.hooks.add(plugin, name="watcher")
    return plugin


STARTS = pytest.mark.parametrize("start", [Watcher.by_event, Watcher.by_message])


@STARTS
async def test_the_answer_of_a_turn_that_a_plugin_starts_goes_to_the_channel_of_the_session(
    app, scripted, mail, watcher, start
):
    scripted("Hello, Ada.", "I looked at a.txt.", "Again.")
    app.hooks.register("resolve_session", lambda message: message.get("session_id") or "inbox")
    async with asyncio.timeout(30), Gateway(app, enabled=["mail"]).running() as gateway:
        await gateway.handle({"content": "hi", "channel": "mail", "chat_id": "ada"})
        assert await mail.sent.get() == ("ada", "Hello, Ada.")
        await start(watcher, "inbox")
        await start(watcher, "inbox")  # its own turns do not change where the people are
    assert mail.sent.get_nowait() == ("ada", "I looked at a.txt.")
    assert mail.sent.get_nowait() == ("ada", "Again.")
    assert mail.sent.empty()


@pytest.mark.parametrize("session", ["mail:ada", "elsewhere"])
async def test_hooks_of_a_triggers_turn_reach_the_chat_that_it_answers_to(
    app, settings, scripted, session
):
    channel = "" if session == "mail:ada" else 'channel = "mail"\nchat = "ada"\n'
    settings(f'[triggers.x]\ntype = "queue"\nmessage = "go"\nsession = "{session}"\n{channel}')
    scripted("Done.")
    mail, answers = MailPlugin(), []
    mail.mailbox = Asked()
    app.hooks.add(mail, name="mail")

    async def talk(event, ctx):
        ctx.notify("x")
        answers.append(await ctx.ask("Proceed?", ["yes", "no"], default="no"))

    app.hooks.register("agent_end", talk)
    async with asyncio.timeout(30), Gateway(app, enabled=["mail"]).running() as gateway:
        receipt = await gateway.triggers.emit(TriggerEvent("x", {}))
        await receipt.settled()
    assert answers == ["yes"]
    assert mail.mailbox.questions == [("ada", "Proceed?")]
    assert mail.mailbox.notes == [("ada", "x")]


@STARTS
async def test_with_tapes_in_postgresql_the_answer_goes_there_too(
    app, settings, schema, scripted, mail, watcher, start
):
    settings(f'[tape]\nurl = "{postgres.url()}"\nschema = "{schema}"\n')
    scripted("Hello, Ada.", "I looked at a.txt.")
    async with asyncio.timeout(60), Gateway(app, enabled=["mail"]).running() as gateway:
        await gateway.handle({"content": "hi", "channel": "mail", "chat_id": "ada"})
        assert await mail.sent.get() == ("ada", "Hello, Ada.")
        await start(watcher, "mail:ada")
        assert await mail.sent.get() == ("ada", "I looked at a.txt.")


@STARTS
async def test_a_session_that_nobody_has_used_yet_is_found_by_its_name(
    app, scripted, mail, watcher, start
):
    scripted("I looked at a.txt.")
    async with Gateway(app, enabled=["mail"]).running():
        await start(watcher, "mail:bob#1")
    assert mail.sent.get_nowait() == ("bob", "I looked at a.txt.")


@STARTS
async def test_the_answer_in_a_session_without_a_channel_is_only_on_the_tape(
    app, scripted, mail, watcher, start
):
    scripted("I looked at a.txt.")
    async with Gateway(app, enabled=["mail"]).running():
        await start(watcher, "nightly")
    assert mail.sent.empty()


async def test_a_channel_in_the_settings_comes_before_that_of_the_session(
    app, settings, scripted, mail, watcher
):
    settings('[triggers.files]\ntype = "queue"\nchannel = "mail"\nchat = "ops"\n')
    scripted("I looked at a.txt.")
    async with Gateway(app, enabled=["mail"]).running():
        await watcher.by_event("mail:bob")
    assert mail.sent.get_nowait() == ("ops", "I looked at a.txt.")
    assert mail.sent.empty()


async def test_whoever_watches_a_session_on_the_page_sees_the_turn_that_a_plugin_starts(
    app, scripted, watcher
):
    scripted("Hello.", "I looked at a.txt.")
    later: list[asyncio.Task[None]] = []

    def look_later(event):  # from within a turn of the same session
        if event.messages[-1]["content"] == "hi":
            later.append(asyncio.create_task(watcher.by_message("web:ada")))

    app.hooks.register("context", look_later)
    given = GatewaySettings(port=0, token="t" * 20, channels=["web"])
    async with asyncio.timeout(30), served(Gateway(app, settings=given)) as client:
        headers = {"Authorization": f"Bearer {'t' * 20}"}
        async with client.ws_connect("/ws?session=web:ada", headers=headers) as socket:
            await socket.send_json({"type": "message", "text": "hi"})
            shown = ""
            while "I looked at a.txt." not in shown:
                shown += (await socket.receive_json()).get("delta", "")
            await asyncio.gather(*later)
    assert shown == "Hello.I looked at a.txt."

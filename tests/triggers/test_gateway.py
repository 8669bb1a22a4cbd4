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
from hookline.gateway import Channel, Gateway, GatewaySettings
from hookline.gateway.server import create_app, serve
from hookline.triggers import TriggerEvent
from hookline.triggers.webhook import sign

SECRET = "a-secret-of-some-length"


class Mailbox(Channel):
    """A channel that a plugin brings, and what was sent through it."""

    name = "mail"

    def __init__(self):
        self.sent = asyncio.Queue()

    async def send(self, outbound):
        self.sent.put_nowait((outbound["chat_id"], outbound["content"]))
        return True


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
                transport=httpx.ASGITransport(asgi, client=("127.0.0.1", 1)), base_url="http://localhost"
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
    async with asyncio.timeout(30), served(Gateway(app, settings=given)) as client:
        async with client.get("/route") as response:
            assert response.status == 200
    [(stage, error)] = errors
    assert stage == "trigger"
    assert "/not-a-route" in str(error)

"""Triggers in the gateway: started with it, answered through its channels, guarded by themselves."""

import asyncio
import time

import aiohttp
import pytest

from hookline import hookimpl
from hookline.gateway import Channel, Gateway, GatewaySettings
from hookline.gateway.server import serve
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
    gateway = Gateway(app, settings=given)
    started = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(gateway, started=started.set_result))
    await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving  # why it did not start
    address = await started
    body = b'{"id": 17}'
    async with asyncio.timeout(30), aiohttp.ClientSession(address) as client:
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
    gateway.leave()
    await serving

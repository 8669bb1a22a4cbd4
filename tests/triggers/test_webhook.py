"""Webhooks through a real server: what is signed, new and in time makes a turn."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest
import uvicorn
from fastapi import FastAPI

from hookline.config import ConfigError
from hookline.ext.triggers import Triggers
from hookline.ext.triggers.webhook import sign
from hookline.models.script import Fault, Turn

from .conftest import said

NEW, OLD = "a-secret-of-some-length", "the-secret-before-this"

SETTINGS = f"""
[triggers.orders]
type = "webhook"
secret = "{NEW}"
previous_secret = "{OLD}"
message = "Order {{order.id}} came."
max_body = 2000
"""

ORDER = json.dumps({"order": {"id": 17}}).encode()


@pytest.fixture
def post(serving):
    """A server with the app's triggers, and a function that posts to it."""

    @asynccontextmanager
    async def serve():
        async with serving() as triggers:
            web = FastAPI()
            web.router.routes.extend(triggers.routes())
            server = uvicorn.Server(uvicorn.Config(web, port=0, log_level="warning", ws="none"))
            task = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:

                async def post(body=ORDER, headers=None, path="/triggers/orders"):
                    given = sign(NEW, int(time.time()), body) if headers is None else headers
                    async with client.post(path, data=body, headers=given) as response:
                        return response.status, await response.json()

                post.triggers, post.web = triggers, web
                yield post
            server.should_exit = True
            await task

    return serve


@pytest.fixture
def model(settings, scripted):
    settings(SETTINGS)
    return scripted("Thank you.", repeat=True)


async def test_a_signed_request_is_accepted_and_makes_a_turn(model, post):
    async with post() as send:
        status, answer = await send()
        await send.triggers.drained()
        record = await send.triggers.ledger.find("orders", answer["id"])
    assert (status, answer["status"]) == (202, "accepted")
    assert record.state == "done"
    assert said(model) == ["Order 17 came."]


async def test_the_answer_comes_back_where_it_is_waited_for(settings, scripted, post):
    settings(SETTINGS + "wait = true\n")
    scripted("Thank you.", Turn(error=Fault("broken")))
    async with post() as send:
        status, answer = await send(headers=sign(NEW, int(time.time()), ORDER, "order-17"))
        assert (status, answer) == (
            200,
            {"id": "order-17", "status": "done", "outcome": "answered", "answer": "Thank you.",
             "reason": None},
        )  # fmt: skip
        status, answer = await send(headers=sign(NEW, int(time.time()), ORDER, "order-18"))
        assert (status, answer["status"], answer["error"]) == (500, "dead", "the turn failed")


async def test_two_secrets_are_accepted_while_one_takes_the_others_place(model, post):
    now = int(time.time())
    async with post() as send:
        assert (await send(headers=sign(NEW, now, ORDER, "a")))[0] == 202
        assert (await send(headers=sign(OLD, now, ORDER, "b")))[0] == 202
        assert (await send(headers=sign("a-third-secret-nobody-knows", now, ORDER, "c")))[0] == 401


def headers_of(**changed):
    return {**sign(NEW, int(time.time()), ORDER), **changed}


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (lambda: headers_of(**{"X-Hookline-Signature": "sha256=" + "0" * 64}), "signature is wrong"),
        (lambda: headers_of(**{"X-Hookline-Signature": "md5=00"}), "must be sha256="),
        (lambda: {"X-Hookline-Timestamp": str(int(time.time()))}, "must be sha256="),
        (dict, "X-Hookline-Timestamp"),
        (lambda: headers_of(**{"X-Hookline-Timestamp": "soon"}), "X-Hookline-Timestamp"),
        (lambda: headers_of(**{"X-Hookline-Timestamp": str(int(time.time()) + 1)}), "signature"),
        (lambda: headers_of(**{"X-Hookline-Id": "not-signed"}), "signature is wrong"),
        (lambda: sign(NEW, int(time.time()) - 400, ORDER), "more than 300 seconds off"),
        (lambda: sign(NEW, int(time.time()) + 400, ORDER), "more than 300 seconds off"),
        (lambda: sign(NEW, int(time.time()), ORDER + b" "), "signature is wrong"),
    ],
)
async def test_what_is_not_signed_or_not_in_time_is_refused(model, post, headers, says):
    async with post() as send:
        status, answer = await send(headers=headers())
        assert await send.triggers.ledger.counts("orders") == {}
    assert status == 401
    assert says in answer["error"]
    assert model.requests == []


async def test_a_request_that_is_sent_again_is_refused(model, post):
    now = int(time.time())
    async with post() as send:
        plain, named = sign(NEW, now, ORDER), sign(NEW, now, ORDER, "order-17")
        assert [(await send(headers=h))[0] for h in (plain, plain, named, named)] == [
            202,
            409,
            202,
            409,
        ]
        later = sign(OLD, now + 1, ORDER, "order-17")  # the sender did not hear the first answer
        status, answer = await send(headers=later)
        assert (status, answer["id"]) == (409, "order-17")
        await send.triggers.drained()
    assert len(model.requests) == 2


async def test_replays_at_the_same_moment_make_one_turn(model, post):
    headers = sign(NEW, int(time.time()), ORDER)
    async with post() as send:
        answers = await asyncio.gather(*(send(headers=headers) for _ in range(10)))
        await send.triggers.drained()
    assert sorted(status for status, _ in answers) == [202, *[409] * 9]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "not JSON"),
        (b"\xff", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b"[" * 1500, 400, "not JSON"),
        (b"[1]", 400, "must be a JSON object"),
        (b"{}", 422, "no field 'order'"),
        (b'{"order": {}}', 422, "no field 'order.id'"),
        (b'{"order": {"id": "' + b"x" * 2000 + b'"}}', 413, "more than 2000 bytes"),
    ],
)
async def test_a_body_that_cannot_be_used_is_refused(model, post, body, status, says):
    async with post() as send:
        got, answer = await send(body)
        assert await send.triggers.ledger.counts("orders") == {}
    assert got == status
    assert says in answer["error"]


async def test_an_oversized_body_is_not_read_to_its_end(model, post):
    sent = 0

    async def endless():
        nonlocal sent
        while sent < 200_000_000:
            sent += 65536
            yield b"x" * 65536

    async with post() as send:
        try:
            status, _ = await send(endless(), headers={})
        except aiohttp.ClientError:  # the server has hung up
            status = 413
    assert status == 413
    assert sent < 200_000_000


async def test_a_malformed_id_is_refused(model, post):
    async with post() as send:
        status, answer = await send(headers=sign(NEW, int(time.time()), ORDER, "a.b"))
    assert status == 400
    assert "X-Hookline-Id" in answer["error"]


async def test_the_route_is_described(settings, scripted, post):
    scripted("Thank you.")
    settings(SETTINGS + 'path = "/in/orders"\n')
    async with post() as send:
        assert [route.path for route in send.triggers.routes()] == ["/in/orders"]
        operation = send.web.openapi()["paths"]["/in/orders"]["post"]
        status, _ = await send(path="/in/orders")
        assert status == 202
        await send.triggers.drained()
    documented = {"200", "202", "400", "401", "409", "413", "422", "500", "503"}
    assert set(operation["responses"]) == documented


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "triggers.a.secret"),
        ('secret = "short"', "triggers.a.secret: must have 16 characters or more"),
        (f'secret = "{NEW}"\npath = "no"', "triggers.a.path: must be a path"),
        ('secret = "${NO_SUCH_VARIABLE}"', "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_a_wrong_section_is_refused_and_shows_no_secret(app, settings, text, says):
    settings(f'[triggers.a]\ntype = "webhook"\n{text}\n')
    with pytest.raises(ConfigError) as refused:
        Triggers(app)
    assert says in str(refused.value)
    assert "short" not in str(refused.value)
    assert "short" not in str(app.config.shown())

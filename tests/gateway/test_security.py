"""Who may come in, how often, with how much; and what bad input is told."""

import asyncio
import json

import pytest
import websockets

from hookline.errors import ConfigError, GatewayError, TooManyRequests
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.limits import Limiter
from hookline.serve.server import create_app

from .conftest import TOKEN, bearer, frames_until

ADA = "the-token-of-ada-lovelace"


async def status(at, method, path, **options):
    async with at.http.request(method, f"{at.url}{path}", **options) as response:
        return response.status, await response.text(), response.headers


def test_it_does_not_open_itself_to_the_network_without_a_token(app):
    with pytest.raises(ConfigError, match="set a token"):
        create_app(Gateway(app, settings=GatewaySettings(host="0.0.0.0")))
    create_app(Gateway(app, settings=GatewaySettings(host="0.0.0.0", token=TOKEN)))
    create_app(Gateway(app, settings=GatewaySettings(host="0.0.0.0", users={"ada": ADA})))


async def test_a_token_is_needed_for_everything_but_health_and_the_page(served, scripted):
    scripted("hi", repeat=True)
    async with served(headers={}, users={"ada": ADA}) as at:
        for path in ("api/sessions", "v1/models", "metrics", "openapi.json", "nothing"):
            code, _, headers = await status(at, "GET", path)
            assert (path, code, headers["www-authenticate"]) == (path, 401, "Bearer")
            wrong = await status(at, "GET", path, headers={"authorization": "Bearer wrong"})
            assert wrong[0] == 401
        assert (await status(at, "GET", "health"))[0] == 200
        assert (await status(at, "GET", "ready"))[0] == 200
        for path in ("", "favicon.ico"):
            assert (await status(at, "GET", path))[0] == 200
        assert (await status(at, "GET", "api/sessions", headers=bearer()))[0] == 200
        assert (await status(at, "GET", "api/sessions", headers=bearer(ADA)))[0] == 200


async def test_a_websocket_brings_its_token_as_protocol_or_header(served, scripted, app):
    scripted("hi", repeat=True)
    users = []
    app.hooks.register("message:receive", lambda event: users.append(event.user_id))
    async with served(users={"ada": ADA}) as at:
        ways = [{"subprotocols": ["bearer", ADA]}, {"additional_headers": bearer(ADA)}]
        for way in ways:
            async with at.ws(**way) as socket:
                await socket.send('{"type": "message", "text": "hi"}')
                await frames_until(socket, "end")
        for way in ({}, {"query": f"&token={ADA}"}, {"subprotocols": ["bearer", "no"]}):
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with at.ws(token="", **way):
                    pass
            assert refused.value.response.status_code == 401
    assert users == ["ada"] * 2


async def test_a_page_of_another_site_gets_nowhere(served, scripted):
    scripted("hi")
    async with served() as at:
        evil = {"origin": "https://evil.example"}
        assert (await status(at, "GET", "api/sessions", headers=evil))[0] == 403
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with at.ws(origin="https://evil.example"):
                pass
        assert refused.value.response.status_code == 403
        rebound = {"host": "evil.example"}
        assert (await status(at, "GET", "api/sessions", headers=rebound))[0] == 421
        own = {"origin": at.url.rstrip("/")}
        code, _, headers = await status(at, "GET", "api/sessions", headers=own)
        assert code == 200
        assert "access-control-allow-origin" not in headers


async def test_an_origin_that_was_allowed_may_call(served, scripted):
    scripted("hi")
    site = "https://garden.example"
    async with served(cors=[site]) as at:
        code, _, headers = await status(at, "GET", "api/sessions", headers={"origin": site})
        assert (code, headers["access-control-allow-origin"]) == (200, site)
        ask = {"origin": site, "access-control-request-method": "POST"}
        assert (await status(at, "OPTIONS", "api/sessions/a/messages", headers=ask))[0] == 200


async def test_every_answer_has_the_headers_that_keep_a_browser_safe(served, scripted):
    scripted("hi")
    async with served() as at:
        for path in ("health", "api/sessions", "nothing"):
            _, _, headers = await status(at, "GET", path)
            assert headers["content-security-policy"].startswith("default-src 'self';")
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"


async def test_a_user_who_asks_too_often_is_told_when_to_come_back(served, scripted):
    scripted("hi", repeat=True)
    async with served(requests_per_minute=1, burst=2) as at, at.ws() as socket:
        await socket.send('{"type": "message", "text": "1"}')
        await frames_until(socket, "end")
        assert (await at.say("2"))["status"] == 200
        code, text, headers = await status(at, "GET", "api/sessions")
        assert (code, "too many requests" in text) == (429, True)
        assert 1 <= int(headers["retry-after"]) <= 60
        await socket.send('{"type": "message", "id": "x", "text": "3"}')
        refused = (await frames_until(socket, "error"))[-1]
        assert refused["id"] == "x"
        assert "too many requests" in refused["message"]
        assert (await status(at, "GET", "health"))[0] == 200


def test_a_limit_fills_up_again_with_time_and_for_each_user_alone():
    now = [0.0]
    limiter = Limiter(60, 2, clock=lambda: now[0])
    limiter.check("ada")
    limiter.check("ada")
    with pytest.raises(TooManyRequests):
        limiter.check("ada")
    limiter.check("bob")
    now[0] = 1.0
    limiter.check("ada")


async def test_a_body_that_is_too_large_is_refused_by_its_length_and_by_what_comes(served, scripted):
    scripted("hi")
    big = json.dumps({"text": "x" * 20_000}).encode()
    json_type = {"content-type": "application/json"}

    async def in_pieces():
        for start in range(0, len(big), 1000):
            yield big[start : start + 1000]

    async with served(max_body=10_000) as at:
        for body in (big, in_pieces()):
            code, text, _ = await status(
                at, "POST", "api/sessions/a/messages", data=body, headers=json_type
            )
            assert code == 413, text
            assert "10,000 bytes" in text
        async with at.ws() as socket:
            await socket.send(big.decode())
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await frames_until(socket, "end")
        assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{not json", "JSON"),
        (b"[]", "dict"),
        (b'"text"', "dict"),
        (b"{}", "empty"),
        (b'{"text": 5}', "string"),
        (b'{"text": "  "}', "empty"),
        (b'{"text": "a", "colour": "red"}', "colour"),
        (b'{"parts": [{"type": "smell"}]}', "audio"),
        (b'{"parts": [{"type": "audio", "data": "%%%"}]}', "base 64"),
        (b'{"parts": [{"type": "audio", "data": ""}]}', "empty"),
        (b'{"text": "\xff"}', "body"),
    ],
)
async def test_a_message_that_makes_no_sense_is_refused_and_nothing_is_recorded(
    served, scripted, body, said
):
    scripted("never")
    headers = {"content-type": "application/json"}
    async with served() as at:
        code, text, _ = await status(
            at, "POST", "api/sessions/fresh/messages", data=body, headers=headers
        )
        assert code in (400, 422)
        assert said in text
        assert (await status(at, "GET", "api/sessions/fresh"))[0] == 404


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ("{not json", "JSON"),
        ("[]", "object"),
        ('{"type": "dance"}', "message"),
        ('{"text": "no type"}', "type"),
        ('{"type": "message", "text": 7}', "string"),
        ('{"type": "answer", "id": "x", "answer": 7}', "string"),
        ('{"type": "message", "text": "\\ud800"}', "escape"),
    ],
)
async def test_a_frame_that_makes_no_sense_is_told_and_the_connection_stays(
    served, scripted, frame, said
):
    scripted("still here")
    async with served() as at, at.ws() as socket:
        await socket.send(frame)
        error = (await frames_until(socket, "error"))[-1]
        assert said in error["message"]
        await socket.send('{"type": "message", "text": "hello?"}')
        assert (await frames_until(socket, "end"))[-1]["text"] == "still here"


async def test_a_session_with_an_impossible_name_is_refused(served, scripted):
    scripted("hi")
    async with served() as at:
        assert (await status(at, "GET", "api/sessions/unknown"))[0] == 404
        assert (await status(at, "GET", "api/sessions/%00"))[0] == 422
        assert (await status(at, "GET", f"api/sessions/{'x' * 300}"))[0] == 422
        async with at.ws("%00") as socket:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd.code == 4400


async def test_an_id_that_is_still_being_answered_is_refused(served, scripted, app):
    scripted("one")
    refused = asyncio.Event()

    async def wait(event):
        await refused.wait()

    app.hooks.register("message:receive", wait)
    async with served() as at, at.ws() as socket:
        await socket.send('{"type": "message", "id": "m", "text": "1"}')
        await socket.send('{"type": "message", "id": "m", "text": "2"}')
        error = (await frames_until(socket, "error"))[-1]
        refused.set()
        end = (await frames_until(socket, "end"))[-1]
    assert "still being answered" in error["message"]
    assert (end["id"], end["text"]) == ("m", "one")


async def test_metrics_count_messages_and_requests(served, scripted):
    scripted("hi", repeat=True)
    async with served() as at:
        await at.say("one")
        _, text, headers = await status(at, "GET", "metrics")
    assert headers["content-type"].startswith("text/plain")
    assert 'hookline_messages_total{channel="web",outcome="answered"} 1.0' in text
    assert 'hookline_http_requests_total{method="POST",status="200"} 1.0' in text
    assert "hookline_messages_in_flight 0.0" in text


async def test_it_is_ready_only_while_messages_are_taken(served, scripted):
    scripted("hi", repeat=True)
    async with served() as at:
        code, text, _ = await status(at, "GET", "ready")
        assert code == 200
        assert json.loads(text) == {"status": "ready"}  # to anyone, without details
        await at.gateway.drain()
        assert (await status(at, "GET", "ready"))[0] == 503
        assert (await status(at, "GET", "health"))[0] == 200
        assert (await at.say("too late"))["status"] == 503


async def test_back_pressure_makes_further_messages_wait(served, scripted, app):
    scripted("hi", repeat=True)
    gate = asyncio.Event()
    accepted = []

    async def wait(event):
        await gate.wait()

    app.hooks.register("message:receive", wait)
    async with served(in_flight=2) as at:

        async def handle(number):
            await at.gateway.handle({"content": "x", "channel": "web", "chat_id": f"c{number}"})
            accepted.append(number)

        tasks = [asyncio.create_task(handle(i)) for i in range(4)]
        await asyncio.wait(tasks[:2])
        assert accepted == [0, 1]
        gate.set()
        await asyncio.gather(*tasks)
    assert accepted == [0, 1, 2, 3]


async def test_the_address_being_taken_is_told_in_a_line(served, scripted):
    scripted("hi")
    async with served() as at:
        port = int(at.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(GatewayError, match=f"cannot listen on 127.0.0.1 port {port}"):
            async with served(port=port):
                pass

"""What a connection may cost: wrong tokens, half-sent requests, large heads, many frames."""

import asyncio
import json
import socket
from contextlib import suppress

import pytest
import pytest_asyncio
import websockets

from hookline.errors import TooManyRequests
from hookline.serve.limits import MOST_KEYS, Limiter

from ..tables import each_row
from .gateways import ADA, BOB, OWNER, TOKENS, bearer, house, read_answer

shared = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    async with house(tmp_path_factory.mktemp("limits")) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty(tmp_path_factory):
    """A gateway that waits for nobody."""
    limits = {"header_seconds": 0.2, "body_seconds": 0.2}
    async with house(tmp_path_factory.mktemp("hasty"), **limits) as found:
        yield found


def wrong(number):
    return bearer(f"wrong-token-number-{number:08}")


# --- wrong tokens ------------------------------------------------------------------------------------


async def test_an_address_that_guesses_is_slowed_down_and_others_are_not(tmp_path):
    async with house(tmp_path, wrong_tokens=5) as served:
        found = [(await served.ask("GET", "/api/sessions", wrong(n))).status for n in range(9)]
        assert found == [401] * 5 + [429] * 4
        refused = await served.ask("GET", "/api/sessions", wrong(9))
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert (await served.ask("GET", "/health")).status == 200
        assert (await served.ask("GET", "/")).status == 200  # the page can say why
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", served.port, local_addr=("127.0.0.2", 0)
        )
        writer.write(
            b"GET /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n\r\n"
        )
        assert (await read_answer(reader)).status == 401
        writer.close()


@pytest.mark.parametrize("user", TOKENS)
@pytest.mark.parametrize("way", ["header", "websocket", "websocket of a browser", "same connection"])
async def test_no_number_of_wrong_tokens_locks_out_who_has_a_right_one(tmp_path, way, user):
    token = TOKENS[user]
    async with house(tmp_path, wrong_tokens=1) as served:
        for n in range(20):
            await served.ask("GET", "/api/sessions", wrong(n))
        if way == "header":
            assert (await served.ask("GET", "/api/sessions", bearer(token))).status == 200
        elif way == "same connection":
            reader, writer = await served.connect()
            for sent, status in ((token, 200), ("x" * 20, 429)):
                line = "GET /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                writer.write(f"{line}Authorization: Bearer {sent}\r\n\r\n".encode())
                assert (await read_answer(reader)).status == status
            assert await reader.read() == b""  # each further guess takes a new connection
            writer.close()
        else:
            browser = {"subprotocols": ["bearer", token]} if way.endswith("browser") else {}
            async with served.ws("web:x", "" if browser else token, **browser) as socket:
                assert json.loads(await socket.recv())["type"] == "session"


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Client-Ip"])
async def test_an_address_that_a_header_claims_does_not_count(tmp_path, header):
    async with house(tmp_path, wrong_tokens=3) as served:
        found = [
            (await served.ask("GET", "/api/sessions", {**wrong(n), header: f"10.0.0.{n}"})).status
            for n in range(6)
        ]
    assert found == [401] * 3 + [429] * 3


async def test_behind_a_trusted_proxy_each_client_counts_for_itself(tmp_path):
    async with house(tmp_path, wrong_tokens=3, proxies=["127.0.0.1"]) as served:
        for n in range(6):
            await served.ask("GET", "/api/sessions", {**wrong(n), "X-Forwarded-For": "10.0.0.1"})
        blocked = {**wrong(7), "X-Forwarded-For": "10.0.0.1"}
        other = {**wrong(7), "X-Forwarded-For": "10.0.0.2"}
        assert (await served.ask("GET", "/api/sessions", blocked)).status == 429
        assert (await served.ask("GET", "/api/sessions", other)).status == 401


async def test_websockets_with_wrong_tokens_count_as_well(tmp_path):
    async with house(tmp_path, wrong_tokens=3) as served:
        found = []
        for n in range(5):
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with served.ws("a", subprotocols=["bearer", f"wrong-token-number-{n}"]):
                    pass
            found.append(refused.value.response.status_code)
    assert found == [401] * 3 + [429] * 2


def test_a_limiter_forgets_and_stays_small():
    now = [0.0]
    limiter = Limiter(60, 2, clock=lambda: now[0])
    for number in range(3 * MOST_KEYS):
        limiter.check(str(number))
    assert len(limiter._left) <= MOST_KEYS
    now[0] = 1000.0
    limiter.check("again")
    limiter.check("again")
    with pytest.raises(TooManyRequests):
        limiter.check("again")


# --- heads and bodies --------------------------------------------------------------------------------

HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LARGE = {
    "one large header": HEAD + b"X: " + b"a" * 40_000 + b"\r\n\r\n",
    "one header without end": HEAD + b"X: " + b"a" * 200_000,
    "a large name": HEAD + b"a" * 40_000 + b": 1\r\n\r\n",
    "many headers": HEAD + b"".join(b"x%d: 1\r\n" % n for n in range(200)) + b"\r\n",
    "many small headers without end": HEAD + b"x: 1\r\n" * 20_000,
    "a large address": b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "an address without end": b"GET /" + b"a" * 200_000,
    "a large query": b"GET /health?" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a large cookie": HEAD + b"Cookie: " + b"a=b; " * 8_000 + b"\r\n\r\n",
    "a large token": HEAD + b"Authorization: Bearer " + b"a" * 40_000 + b"\r\n\r\n",
}


@each_row("head", LARGE.values(), ids=LARGE)
@shared
async def test_a_head_that_is_too_large_is_refused_while_it_comes(served, head):
    assert (await served.raw(head)).status in (431, 0)
    assert (await served.ask("GET", "/health")).status == 200


TRAILING = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n{}\r\n1\r\n{{\r\n0{}"


@each_row("path", ["/api/sessions/a/messages", "/health", "/v1/chat/completions"])
@each_row("authorization", ["", f"Authorization: Bearer {ADA}\r\n"])
@each_row("end", ["\r\nX-Trailer: ", "\r\nX-", ";extension="])
@shared
async def test_a_trailer_without_end_is_not_gathered(served, path, authorization, end):
    def send():
        """How much is taken before the gateway hangs up."""
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as client:
            client.sendall(TRAILING.format(path, authorization, end).encode())
            sent = 0
            with suppress(ConnectionError):
                while sent < 8_000_000:
                    sent += client.send(b"a" * 16_384)
        return sent

    assert await asyncio.to_thread(send) < 8_000_000


@pytest.mark.parametrize("query", ["a" * 9_000, "a=1&" * 3_000, "%41" * 3_000])
@shared
async def test_a_query_that_is_too_long_is_refused(served, query):
    assert (await served.ask("GET", f"/api/sessions?{query}", bearer(OWNER))).status == 414


BODY = (
    f"POST /api/sessions/a/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {OWNER}\r\n"
    "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
).encode()
CHUNKED = BODY.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked") + b'3\r\n{"t\r\n'
HALVES = {
    "nothing": b"",
    "one byte": b"G",
    "half a line": b"GET /hea",
    "a line": b"GET /health HTTP/1.1\r\n",
    "half a header": HEAD + b"X: a",
    "all but the end": HEAD + b"X: a\r\n",
    "half the end": HEAD + b"\r",
    "a head without its body": BODY,
    "half a body": BODY + b'{"text": "',
    "a chunk": CHUNKED,
}


@each_row("half", HALVES.values(), ids=HALVES)
@shared
async def test_half_a_request_is_not_waited_for(hasty, half):
    assert (await hasty.raw(half)).status in (408, 0)


@pytest.mark.parametrize("what", ["head", "body"])
async def test_a_trickle_is_no_request(tmp_path, what):
    async with house(tmp_path, header_seconds=0.3, body_seconds=0.3) as served:
        reader, writer = await served.connect()
        writer.write(HEAD + b"X: " if what == "head" else BODY)

        async def trickle():
            while True:
                writer.write(b"a")
                await asyncio.sleep(0.02)

        trickling = asyncio.create_task(trickle())
        answer = await read_answer(reader)
        trickling.cancel()
        writer.close()
    assert answer.status in (408, 0)


async def test_a_second_request_on_a_connection_has_the_same_limits(tmp_path):
    async with house(tmp_path, header_seconds=0.3) as served:
        reader, writer = await served.connect()
        writer.write(HEAD + b"\r\n")
        assert (await read_answer(reader)).status == 200
        writer.write(HEAD)
        assert (await read_answer(reader)).status in (408, 0)
        writer.close()


async def test_strangers_have_so_many_connections_and_those_who_are_known_count_no_more(tmp_path):
    async with house(tmp_path, connections=4) as served:
        sockets = [await served.ws("a", OWNER) for _ in range(6)]  # each is known once it is open
        for each in sockets:
            await each.send('{"type": "ping"}')
            await each.recv()
        held = [await served.connect() for _ in range(4)]
        await asyncio.sleep(0)
        refused = await served.raw(HEAD + b"\r\n")
        assert refused.status in (503, 0)
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(10):
            while (await served.ask("GET", "/health")).status != 200:
                await asyncio.sleep(0.02)
        for each in sockets:
            await each.close()


# --- frames, parts, depth -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        '{"type": "ping"}',
        "{nonsense",
        "[]",
        '{"type": "cancel"}',
        '{"type": "answer", "id": "x", "answer": "approve"}',
    ],
)
async def test_a_connection_that_sends_too_many_frames_is_closed(tmp_path, sent):
    async with house(tmp_path, frames_per_minute=20) as served, served.ws("a", ADA) as socket:
        with suppress(websockets.ConnectionClosed):
            for _ in range(40):
                await socket.send(sent)
        with suppress(websockets.ConnectionClosed):
            async with asyncio.timeout(60):
                while True:  # the close comes behind what was answered before
                    await socket.recv()
        assert socket.close_code == 4429


def frame(first: int, payload: bytes = b"") -> bytes:
    """A frame as a client sends it, masked by zeros."""
    return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload


FLOODS = {
    "fragments of a byte": frame(0x01, b"a") + frame(0x00, b"a") * 100_000,
    "empty fragments": frame(0x02) + frame(0x00) * 100_000,
    "fragments between pings": frame(0x01, b"a") + (frame(0x89) + frame(0x00, b"a")) * 50_000,
    "pings": frame(0x89, b"x") * 100_000,
    "pongs": frame(0x8A) * 100_000,
    "empty messages": frame(0x81) * 100_000,
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_a_flood_of_tiny_frames_is_cut_off_before_it_is_parsed(tmp_path, flood):
    async with house(tmp_path, frames_per_minute=100) as served:
        async with served.ws("a", ADA, max_queue=None) as socket:
            socket.transport.write(flood)
            with suppress(websockets.ConnectionClosed):
                async with asyncio.timeout(60):
                    while True:
                        await socket.recv()
            assert socket.close_code in (4429, 1006)  # 1006: reset, with most of the flood unread
        started = asyncio.get_running_loop().time()
        assert (await served.ask("GET", "/health")).status == 200
        assert asyncio.get_running_loop().time() - started < 5


async def test_a_long_message_in_a_few_fragments_is_read(tmp_path):
    async with house(tmp_path) as served, served.ws("a", ADA) as socket:
        text = json.dumps({"type": "message", "text": "x" * 200_000})
        await socket.send(text[at : at + 5_000] for at in range(0, len(text), 5_000))
        async with asyncio.timeout(60):
            while json.loads(await socket.recv())["type"] != "accepted":
                pass


DEEP = {
    "lists": lambda n: "[" * n + "]" * n,
    "objects": lambda n: '{"a":' * n + "1" + "}" * n,
    "open lists": lambda n: "[" * n,
    "mixed": lambda n: '[{"a":' * (n // 2) + "1" + "}]" * (n // 2),
}


@each_row("depth", [300, 990, 1_000, 100_000])
@each_row("shape", DEEP)
@each_row("where", ["message", "completion", "approval", "frame"])
@shared
async def test_deep_json_is_refused_and_the_gateway_goes_on(served, where, shape, depth):
    deep = DEEP[shape](depth)
    if where == "frame":
        async with served.ws("a", ADA) as socket:
            await socket.send(f'{{"type": "message", "text": {deep}}}')
            while json.loads(await socket.recv())["type"] != "error":
                pass
    else:
        path, body = {
            "message": ("/api/sessions/a/messages", f'{{"text": {deep}}}'),
            "completion": ("/v1/chat/completions", f'{{"model": "hookline", "messages": {deep}}}'),
            "approval": ("/api/approvals/x", f'{{"answer": {deep}}}'),
        }[where]
        assert (await served.ask("POST", path, bearer(ADA), body.encode())).status in (400, 422)
    assert (await served.ask("GET", "/api/sessions", bearer(ADA))).json() == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/sessions/a/messages", {"parts": [{"type": "text", "text": "a"}] * 21}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}] * 10_001}),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 101}]},
        ),
    ],
)
@shared
async def test_too_many_parts_are_refused(served, path, body):
    given = {"model": "hookline", **body} if "v1" in path else body
    assert (await served.ask("POST", path, bearer(BOB), given)).status == 422


async def test_the_inspector_has_a_limit_of_its_own(tmp_path):
    async with house(tmp_path, requests_per_minute=6, burst=2) as served:
        found = [
            (await served.ask("GET", "/inspect/api/about", bearer(OWNER))).status for _ in range(12)
        ]
        assert found[:8] == [200] * 8
        assert 429 in found[8:]
        assert (await served.ask("GET", "/api/sessions", bearer(OWNER))).status == 200

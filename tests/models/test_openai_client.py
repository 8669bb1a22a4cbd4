"""The client against a server that does everything wrong, on loopback."""

import asyncio
import gzip
import json
import socket
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hookline.models import (
    BadSetting,
    ContextOverflow,
    ModelError,
    ModelFailed,
    ModelRequest,
    Models,
    ModelUnavailable,
    UnknownModel,
)

from .ask import events, one, text_of, user
from .hostile import DONE, ENDING, STREAM, Exchange, asking, event, hostile, says

KEY = "sk-very-secret-0123456789"


def hello() -> ModelRequest:
    return ModelRequest(messages=user("hello"), session_id="s")


async def failure(answer, kind: type[ModelError] = ModelFailed, **settings):
    """The error that an answer becomes: one line, and no key in it."""
    async with asking(answer, **settings) as (model, server):
        with pytest.raises(kind) as caught:
            await events(model, hello())
    text = str(caught.value)
    assert "\n" not in text
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in repr(error) + str(error)
        error = error.__cause__ or error.__context__
    assert "openai-compatible" in text
    if kind is not UnknownModel:
        assert server.url in text
    return caught.value


async def test_an_answer_is_streamed_with_its_reasoning_calls_and_counts():
    async def answer(exchange: Exchange) -> None:
        call = {"index": 0, "id": "c1", "function": {"name": "fs_read", "arguments": "{}"}}
        await exchange.chunked(
            event({"role": "assistant", "content": ""}),
            event({"reasoning_content": "Hm."}),
            says("Hel"),
            says("lo"),
            event({"tool_calls": [call]}),
            event(reason="tool_calls"),
            'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}\n\n',
            DONE,
        )

    prices = {"m": {"input": 1.0, "output": 2.0}}
    async with asking(answer, api_key=KEY, headers={"X-Extra": "1"}, prices=prices) as (model, server):
        request = hello()
        request.tools = [{"name": "fs.read", "description": "", "parameters": {"type": "object"}}]
        found = await events(model, request)
        assert KEY not in repr(model)
    assert [each.kind for each in found] == ["reasoning", "text", "text", "tool_call", "usage", "final"]
    assert text_of(found) == "Hello"
    assert one(found, "tool_call") == {"id": "c1", "name": "fs.read", "arguments": "{}"}
    assert one(found, "usage") == {"input_tokens": 7, "output_tokens": 3, "cost": 13e-6}
    assert one(found, "final") == {"finish_reason": "tool_calls"}
    [exchange] = server.exchanges
    assert exchange.headers[""] == "POST /v1/chat/completions HTTP/1.1"
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert exchange.headers["x-extra"] == "1"
    assert exchange.body["model"] == "m"


async def test_connections_are_used_again_by_all_models_of_an_endpoint():
    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(says("hi"), ENDING)

    async with hostile(answer) as server:
        models = Models(settings={"openai-compatible": {"base_url": server.url}})
        for name in "aab":
            assert text_of(await events(models.get(f"openai-compatible:{name}"), hello())) == "hi"
        assert [each.connection for each in server.exchanges] == [1, 1, 1]
        server.gone.clear()
        await models.get("openai-compatible:a").close()
        await events(models.get("openai-compatible:b"), hello())
        assert server.connections == 1, "another model still used it"
        await models.close()
        await asyncio.wait_for(server.gone.wait(), 30)
        assert text_of(await events(models.get("openai-compatible:b"), hello())) == "hi"
        assert server.connections == 2
        await models.close()


async def test_requests_at_once_do_not_wait_for_each_other():
    ready = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        if exchange.number == 9:
            ready.set()
        await ready.wait()
        await exchange.chunked(says(str(exchange.number)), ENDING)

    async with asking(answer) as (model, server):
        found = await asyncio.gather(*(events(model, hello()) for _ in range(10)))
        assert server.connections == 10
    assert sorted(map(text_of, found)) == list("0123456789")


def test_a_model_works_in_one_loop_after_another():
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(says("hi") + ENDING)

    models = Models()

    async def ask() -> str:
        async with hostile(answer) as server:
            return text_of(await events(models.get(f"openai-compatible:{server.url}#m"), hello()))

    assert [asyncio.run(ask()) for _ in range(3)] == ["hi"] * 3
    asyncio.run(models.close())


async def test_a_slow_answer_comes_piece_by_piece():
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        for byte in (says("a") + says("b")).encode():
            await exchange.send(bytes([byte]))
            await asyncio.sleep(0.001)
        await exchange.send(ENDING)

    async with asking(answer) as (model, _):
        assert text_of(await events(model, hello())) == "ab"


async def test_a_piece_is_given_before_the_next_one_exists():
    go = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(says("first"))
        await go.wait()
        await exchange.send(says("second") + ENDING)

    async with asking(answer) as (model, _), aclosing(model.stream(hello())) as stream:
        first = await asyncio.wait_for(anext(stream), 30)
        assert first.data == {"delta": "first"}
        go.set()
        assert text_of([each async for each in stream]) == "second"


async def test_silence_ends_with_the_timeout():
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(says("one"))
        await asyncio.sleep(30)

    error = await failure(answer, timeout=0.2)
    assert error.transient
    assert "said nothing for 0.2 s" in str(error)


async def test_a_closed_stream_closes_its_connection():
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        while True:
            await exchange.send(says("on and on "))
            await asyncio.sleep(0.01)

    async with asking(answer) as (model, server):
        async with aclosing(model.stream(hello())) as stream:
            await anext(stream)
        await asyncio.wait_for(server.gone.wait(), 30)


async def test_a_connection_held_open_after_the_end_does_not_hold_the_answer():
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(says("hi") + ENDING)
        await asyncio.sleep(30)

    async with asking(answer) as (model, _):
        begun = time.monotonic()
        assert text_of(await events(model, hello())) == "hi"
        assert time.monotonic() - begun < 20


@pytest.mark.parametrize("how", ["end", "chunked", "length", "reset"])
async def test_a_stream_that_is_cut_is_never_a_whole_answer(how):
    async def answer(exchange: Exchange) -> None:
        if how == "chunked":
            await exchange.send(f"HTTP/1.1 200 OK\r\n{STREAM}Transfer-Encoding: chunked\r\n\r\n")
            await exchange.chunk(says("half an ans"))
        elif how == "length":
            await exchange.head(headers=f"{STREAM}Content-Length: 5000\r\n")
            await exchange.send(says("half an ans"))
        else:
            await exchange.head()
            await exchange.send(says("half an ans"))
        if how == "reset":
            await asyncio.sleep(0.05)
            linger = b"\1\0\0\0\0\0\0\0"
            exchange.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )

    error = await failure(answer)
    assert error.transient
    assert "cut off" in str(error) or "closed the connection" in str(error)


async def test_a_server_that_hangs_up_is_worth_another_try():
    async def answer(exchange: Exchange) -> None:
        pass

    assert (await failure(answer)).transient


@pytest.mark.parametrize(
    ("ending", "whole"),
    [
        (event(reason="length"), "length"),
        (event(reason="stop") + "data: [DONE]", "stop"),
        (DONE, "stop"),
    ],
)
async def test_an_end_that_is_said_in_either_way_is_an_end(ending, whole):
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(says("hi") + ending)

    async with asking(answer) as (model, _):
        assert one(await events(model, hello()), "final") == {"finish_reason": whole}


@pytest.mark.parametrize(
    ("stream", "what"),
    [
        ("data: {not json}\n\n", "an event that is no JSON"),
        ("data: [1, 2]\n\n", "an event that is no object"),
        (b"data: \xff\xfe\n\n", "an event that is no JSON"),
        ("data: " + "[" * 100_000 + "\n\n", "an event that is no JSON"),
        ('data: {"choices": [{"delta": {"content": 5}}]}\n\n', "a chunk of another form"),
    ],
)
async def test_malformed_events_are_refused(stream, what):
    async def answer(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(stream)
        await exchange.send(ENDING)

    error = await failure(answer)
    assert not error.transient
    assert what in str(error)


async def test_an_endless_line_is_refused_in_bounded_memory():
    sent = 0

    async def answer(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.head()
        await exchange.send("data: ")
        while sent < 500_000_000:
            await exchange.send(b"x" * 100_000)
            sent += 100_000

    error = await failure(answer)
    assert "an event of more than" in str(error)
    assert sent < 50_000_000


async def test_a_huge_event_within_bounds_is_read():
    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(says("x" * 2_000_000), ENDING)

    async with asking(answer) as (model, _):
        assert len(text_of(await events(model, hello()))) == 2_000_000


async def test_half_a_surrogate_pair_does_not_get_in():
    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(says("\U0001f600 ok"), says("a\ud83db"), ENDING)

    async with asking(answer) as (model, _):
        text = text_of(await events(model, hello()))
    assert text.encode()
    assert text.startswith("\U0001f600 oka")


def refusing(status: str, message: str = "", headers: str = "", **more):
    body = json.dumps({"error": {"message": message, **more}}) if message else "<html>no</html>"

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(status, body, f"Content-Type: application/json\r\n{headers}")

    return answer


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_a_wrong_key_is_named_by_where_it_came_from(status, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    error = await failure(refusing(status, f"bad key {KEY}"), api_key_env="MY_KEY")
    assert not error.transient
    assert "key in MY_KEY; check it" in str(error)
    assert "bad key ***" in str(error)
    assert "had no key" in str(await failure(refusing(status, "who are you")))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Retry-After: 7\r\n", 7),
        ("Retry-After: 0.5\r\n", 0.5),
        ("retry-after-ms: 1500\r\nRetry-After: 9\r\n", 1.5),
        ("Retry-After: soon\r\n", None),
        ("Retry-After: inf\r\n", None),
        ("Retry-After: -3\r\n", 0),
        ("", None),
    ],
)
async def test_too_many_requests_says_when_to_try_again(header, seconds):
    error = await failure(refusing("429 Too Many Requests", "slow down", header))
    assert (error.transient, error.retry_after) == (True, seconds)


async def test_retry_after_may_be_a_date():
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    error = await failure(refusing("503 Busy", "busy", f"Retry-After: {moment}\r\n"))
    assert error.transient
    assert 50 < error.retry_after <= 60


async def test_an_empty_account_is_not_worth_another_try():
    error = await failure(
        refusing("429 No", "You exceeded your current quota", code="insufficient_quota")
    )
    assert not error.transient


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
async def test_server_errors_are_worth_another_try(status):
    error = await failure(refusing(f"{status} Bad", "it broke"))
    assert error.transient
    assert f"({status}): it broke" in str(error)


@pytest.mark.parametrize("status", [400, 422, 501, 302])
async def test_other_refusals_are_not(status):
    error = await failure(refusing(f"{status} No"))
    assert not error.transient
    assert "html" not in str(error)


async def test_an_unknown_model_is_named():
    error = await failure(refusing("404 Not Found", "The model `m` does not exist"), UnknownModel)
    assert "unknown model 'openai-compatible:m'" in str(error)
    assert "check base_url" in str(await failure(refusing("404 Not Found")))


@pytest.mark.parametrize(
    "error",
    [
        {
            "message": "This model's maximum context length is 8192 tokens. However, your messages "
            "resulted in 9001 tokens.",
            "code": "context_length_exceeded",
        },
        {
            "message": "the request exceeds the available context size",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9001,
            "n_ctx": 8192,
        },
    ],
)
@pytest.mark.parametrize("inside", [False, True])
async def test_a_conversation_that_is_too_long_is_told_as_such(error, inside):
    async def answer(exchange: Exchange) -> None:
        if inside:
            await exchange.chunked(f"data: {json.dumps({'error': error})}\n\n")
        else:
            await exchange.reply("400 Bad Request", json.dumps({"error": error}))

    found = await failure(answer, ContextOverflow)
    assert (found.needed, found.window) == (9001, 8192)


async def test_an_error_in_the_stream_is_raised():
    async def answer(exchange: Exchange) -> None:
        error = {"code": 502, "message": f"the upstream broke {KEY}"}
        await exchange.chunked(says("Well"), f"data: {json.dumps({'error': error})}\n\n", DONE)

    error = await failure(answer, api_key=KEY)
    assert error.transient
    assert "the upstream broke ***" in str(error)


@pytest.mark.parametrize("kind", ["text/html", "application/json", "image/png"])
async def test_another_content_type_is_refused(kind):
    async def answer(exchange: Exchange) -> None:
        await exchange.reply("200 OK", '{"ok": true}', f"Content-Type: {kind}\r\n")

    assert f"answered with {kind} instead of a stream" in str(await failure(answer))


async def test_an_error_with_the_status_200_is_raised():
    async def answer(exchange: Exchange) -> None:
        body = json.dumps({"error": {"code": 429, "message": "later"}})
        await exchange.reply("200 OK", body, "Content-Type: application/json\r\n")

    assert (await failure(answer)).transient


async def test_a_compressed_stream_is_read():
    data = gzip.compress((says("zip") + ENDING).encode())

    async def answer(exchange: Exchange) -> None:
        headers = f"{STREAM}Content-Encoding: gzip\r\n"
        await exchange.chunked(data[:10], data[10:], headers=headers)

    async with asking(answer) as (model, server):
        assert text_of(await events(model, hello())) == "zip"
        assert server.exchanges[0].headers["accept-encoding"] == "identity"


async def test_a_broken_compression_is_refused():
    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(b"no gzip at all", headers=f"{STREAM}Content-Encoding: gzip\r\n")

    await failure(answer)


async def test_a_compressed_bomb_is_refused_in_bounded_memory():
    bomb = gzip.compress(b"data: " + b"x" * 100_000_000)

    async def answer(exchange: Exchange) -> None:
        headers = f"{STREAM}Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n"
        await exchange.head(headers=headers)
        await exchange.send(bomb)

    assert "an event of more than" in str(await failure(answer))


async def test_an_old_server_is_understood():
    async def answer(exchange: Exchange) -> None:
        await exchange.head(version="1.0")
        await exchange.send(says("old") + ENDING)

    async with asking(answer) as (model, server):
        for _ in range(2):
            assert text_of(await events(model, hello())) == "old"
        assert server.connections == 2


async def test_what_is_no_http_is_refused():
    async def answer(exchange: Exchange) -> None:
        await exchange.send("220 smtp ready\r\n\r\n")

    assert "does not speak HTTP" in str(await failure(answer, api_key=KEY))


async def test_nobody_there_is_unavailable():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    models = Models(settings={"ollama": {"base_url": url}})
    with pytest.raises(
        ModelUnavailable, match=r"ollama at .* cannot be reached .*is the server running"
    ):
        await events(models.get("ollama:m"), hello())
    await models.close()


async def test_an_unknown_host_is_unavailable(monkeypatch):
    def unresolved(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # Asking a real resolver would leave the machine.
    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    models = Models()
    with pytest.raises(ModelUnavailable, match="cannot be resolved"):
        await events(models.get("openai-compatible:http://nowhere.invalid/v1#m"), hello())
    await models.close()


async def test_a_missing_key_says_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelUnavailable, match="openai needs a key: set OPENAI_API_KEY"):
        await events(Models().get("openai:m"), hello())
    monkeypatch.setenv("OPENAI_API_KEY", "two\nlines-of-secret")
    with pytest.raises(BadSetting, match="characters that no key has") as refused:
        await events(Models().get("openai:m"), hello())
    assert "secret" not in str(refused.value)


async def test_a_request_that_is_no_json_is_refused():
    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(ENDING)

    async with asking(answer) as (model, _):
        request = hello()
        request.options["what"] = object()
        with pytest.raises(BadSetting, match="cannot be written as JSON"):
            await events(model, request)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("openai", "name a model: openai:MODEL"),
        ("openai:", "name a model: openai:MODEL"),
        (
            "openai-compatible:http://x/v1",
            "name a model: openai-compatible:http://localhost:8080/v1#MODEL",
        ),
        ("any:mistral", "name a provider and a model: any:PROVIDER/MODEL"),
    ],
)
def test_a_name_without_a_model_gets_a_hint(name, hint):
    with pytest.raises(UnknownModel, match=hint):
        Models().get(name)


def test_a_name_with_its_own_address_needs_one():
    with pytest.raises(BadSetting, match="openai-compatible needs a base URL"):
        Models().get("openai-compatible:m")
    with pytest.raises(BadSetting, match="the base URL of openai-compatible is invalid"):
        Models().get("openai-compatible:ftp://x#m")

"""OpenAI's own client through the proxy, against a server that is as strict as the API."""

import asyncio
import json
from pathlib import Path
from threading import Event
from typing import Any

import aiohttp
import openai
import pytest

from hookline.policy.answers import ApprovalAnswer
from hookline.policy.approvals import Approvals

from ..openai_server import Refused, events, whole
from .proxied import TOKEN, TOOLS, Proxied, proxied

Patch = pytest.MonkeyPatch


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def client_of(proxy: Proxied, **more: Any) -> openai.AsyncOpenAI:
    given = {"base_url": f"{proxy.url}/v1", "api_key": TOKEN, "max_retries": 0, **more}
    client = openai.AsyncOpenAI(**given)
    proxy.clients.append(client)
    return client


async def ask(client: openai.AsyncOpenAI, messages: list[Any], stream: bool) -> Any:
    """The message of an answer, in the form in which clients send it back."""
    given: dict[str, Any] = {"model": "gpt-5", "messages": messages, "tools": TOOLS}
    if stream:
        async with client.chat.completions.stream(**given) as answer:
            async for _ in answer:
                pass
            message = (await answer.get_final_completion()).choices[0].message
    else:
        message = (await client.chat.completions.create(**given)).choices[0].message
    found: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
    return found


def commands(message: Any) -> list[str]:
    return [
        json.loads(call["function"]["arguments"])["command"] for call in message.get("tool_calls", ())
    ]


def results(message: Any, *texts: str) -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in zip(message["tool_calls"], texts, strict=True)
    ]


async def post(proxy: Proxied, body: Any, **headers: str) -> tuple[int, bytes]:
    """The status and the bytes of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Authorization": f"Bearer {TOKEN}", **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxy.url}/v1/chat/completions", data=data, headers=sent) as response,
    ):
        return response.status, await response.read()


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@both
async def test_what_no_hook_changes_is_passed_on_byte_by_byte(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    answer: Any = [("shell", {"command": "ls"}), ("shell", {"command": "pwd"})]
    async with proxied(tmp_path, monkeypatch, [answer, "Done. Ünïcode"]) as proxy:
        body: dict[str, Any] = {
            "temperature": 0.5,
            "model": "gpt-5",
            "messages": [user("hello")],
            "stream": stream,
        }
        write = events if stream else whole
        if not stream:
            del body["stream"]
        assert await post(proxy, {**body, "tools": TOOLS}) == (200, write(answer, "gpt-5"))
        assert await post(proxy, body) == (200, write("Done. Ünïcode", "gpt-5"))
        assert proxy.server.requests == [{**body, "tools": TOOLS}, body]


@both
async def test_a_conversation_is_one_session_with_its_turns_and_tool_calls(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    calls = [("shell", {"command": "ls"}), ("shell", {"command": "pwd"})]
    async with proxied(tmp_path, monkeypatch, [calls, "Two files.", "Bye."]) as proxy:
        client = client_of(proxy)
        messages = [{"role": "system", "content": "Be brief."}, user("What is here?")]
        first = await ask(client, messages, stream)
        assert commands(first) == ["ls", "pwd"]
        messages += [first, *results(first, "a b", "/work")]
        messages += [await ask(client, messages, stream), user("Thanks.")]
        messages += [await ask(client, messages, stream)]
        assert [each["messages"] for each in proxy.server.requests][-1] == messages[:-1]
        [session] = await proxy.sessions()
        kept = await proxy.entries(session)
    turns = [payload["status"] for kind, payload in kept if kind == "turn"]
    assert turns == ["started", "completed"] * 2
    assert [p["arguments"]["command"] for kind, p in kept if kind == "tool_call"] == ["ls", "pwd"]
    assert [p["content"] for kind, p in kept if kind == "tool_result"] == ["a b", "/work"]


@both
async def test_the_client_never_sees_a_denied_call_and_the_model_gets_the_reason(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    script = [("shell", {"command": "sudo ls"}), "I may not do that."]
    async with proxied(tmp_path, monkeypatch, script) as proxy:
        status, sent = await post(
            proxy, {"model": "gpt-5", "messages": [user("go")], "tools": TOOLS, "stream": stream}
        )
        assert status == 200
        assert b"sudo" not in sent
        assert b"tool_calls" not in sent
        assert b"I may no" in sent
        told = proxy.server.requests[1]["messages"]
        assert [each["role"] for each in told] == ["user", "assistant", "tool"]
        assert "not as root" in told[-1]["content"]


@both
async def test_of_parallel_calls_only_the_denied_one_is_hidden_and_its_reason_follows(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    script = [[("shell", {"command": "ls"}), ("shell", {"command": "sudo ls"})], "Done.", "Bye."]
    async with proxied(tmp_path, monkeypatch, script) as proxy:
        client = client_of(proxy)
        messages = [user("go")]
        first = await ask(client, messages, stream)
        assert commands(first) == ["ls"]
        messages += [first, *results(first, "a b")]
        messages += [await ask(client, messages, stream), user("more")]
        await ask(client, messages, stream)
        for request in proxy.server.requests[1:]:
            told = request["messages"]
            assert commands(told[1]) == ["ls", "sudo ls"]
            assert {each["tool_call_id"]: each["content"] for each in told[2:4]}["call_0"] == "a b"
            assert any("not as root" in each["content"] for each in told[2:4])


@both
async def test_denied_calls_end_in_a_text_after_the_last_round(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    script = [("shell", {"command": "sudo ls"})]
    async with proxied(tmp_path, monkeypatch, script, rounds=3) as proxy:
        answer = await ask(client_of(proxy), [user("go")], stream)
        assert "not as root" in answer["content"]
        assert "tool_calls" not in answer
        assert len(proxy.server.requests) == 3


@both
@pytest.mark.parametrize("call", [{"command": "crash"}, "{", "[]"], ids=["crash", "no JSON", "a list"])
async def test_a_call_that_cannot_be_judged_is_denied(
    tmp_path: Path, monkeypatch: Patch, stream: bool, call: Any
):
    async with proxied(tmp_path, monkeypatch, [("shell", call), "ok"]) as proxy:
        answer = await ask(client_of(proxy), [user("go")], stream)
        assert answer == {"role": "assistant", "content": "ok"}


@both
async def test_the_client_gets_the_rewritten_call(tmp_path: Path, monkeypatch: Patch, stream: bool):
    async with proxied(tmp_path, monkeypatch, [("shell", {"command": "rewrite"}), "ok"]) as proxy:
        client = client_of(proxy)
        first = await ask(client, [user("go")], stream)
        assert commands(first) == ["echo changed"]
        await ask(client, [user("go"), first, *results(first, "changed")], stream)
        [session] = await proxy.sessions()
        kept = await proxy.entries(session)
    assert [p["arguments"]["command"] for kind, p in kept if kind == "tool_call"] == ["echo changed"]


@both
async def test_a_redacted_result_stays_redacted_in_every_later_request(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    script = [("shell", {"command": "cat"}), "one", "two"]
    async with proxied(tmp_path, monkeypatch, script) as proxy:
        client = client_of(proxy)
        messages = [user("go")]
        first = await ask(client, messages, stream)
        messages += [first, *results(first, "call PHONE")]
        messages += [await ask(client, messages, stream), user("again")]
        await ask(client, messages, stream)
        for request in proxy.server.requests[1:]:
            assert request["messages"][2]["content"] == "call [phone]"


@both
async def test_results_of_a_conversation_that_began_elsewhere_are_redacted(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    async with proxied(tmp_path, monkeypatch, ["ok"]) as proxy:
        call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
        messages = [user("go"), {"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": "c1", "content": "PHONE"}]
        await ask(client_of(proxy), messages, stream)
        assert proxy.server.requests[0]["messages"][2]["content"] == "[phone]"


@both
async def test_a_blocked_prompt_never_reaches_the_model(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    async with proxied(tmp_path, monkeypatch, ["ok"]) as proxy:
        client = client_of(proxy)
        messages = [user("the forbidden thing")]
        answer = await ask(client, messages, stream)
        assert "not that" in answer["content"]
        await ask(client, [*messages, answer, user("hello")], stream)
        assert [each["messages"] for each in proxy.server.requests] == [[user("hello")]]


@both
async def test_a_rewritten_prompt_stays_rewritten(tmp_path: Path, monkeypatch: Patch, stream: bool):
    async with proxied(tmp_path, monkeypatch, ["ok"]) as proxy:
        client = client_of(proxy)
        messages = [user("my password")]
        messages += [await ask(client, messages, stream), user("and?")]
        await ask(client, messages, stream)
        assert [each["messages"][0] for each in proxy.server.requests] == [user("my ****")] * 2


@both
async def test_handlers_around_the_model_change_what_is_sent_and_what_comes_back(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    guard = """
def request(event):
    if "stop" in event.messages[-1]["content"]:
        return event.deny("no more calls")
    return event.replace(messages=[{**m, "content": m["content"].upper()} for m in event.messages])

def answer(event):
    return event.replace(content=event.content.replace("SECRET", "***"))

def output(event):
    return event.replace(content=event.content + " (checked)")

hooks = [("model_call", request), ("model_result", answer), ("output", output)]
"""
    async with proxied(tmp_path, monkeypatch, ["a SECRET"], guard=guard) as proxy:
        client = client_of(proxy)
        answer = await ask(client, [user("hello")], stream)
        assert answer["content"] == "a *** (checked)"
        assert proxy.server.requests[0]["messages"] == [user("HELLO")]
        blocked = await ask(client, [user("stop")], stream)
        assert "no more calls" in blocked["content"]
        assert len(proxy.server.requests) == 1


@both
@pytest.mark.parametrize("approved", [True, False])
async def test_a_question_holds_the_request_open_until_a_person_answers(
    tmp_path: Path, monkeypatch: Patch, stream: bool, approved: bool
):
    script = [("shell", {"command": "ask"}), "Not run."]
    async with proxied(tmp_path, monkeypatch, script, keep_alive=0.02) as proxy:
        body = {"model": "gpt-5", "messages": [user("go")], "tools": TOOLS, "stream": stream}
        answering = asyncio.create_task(post(proxy, body))
        approvals = Approvals(proxy.home / "approvals.db")
        while not (waiting := await asyncio.to_thread(approvals.pending)):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # a few keep-alives
        assert not answering.done()
        approvals.answer(waiting[0].id, ApprovalAnswer(approved), by="me")
        approvals.close()
        status, sent = await answering
        assert status == 200
        assert (b'"ask' in sent or b'ask\\"' in sent) == approved
        assert (b": keep-alive\n\n" in sent) if stream else json.loads(sent) and sent.startswith(b"\n")


async def test_a_question_that_no_one_answers_is_a_no(tmp_path: Path, monkeypatch: Patch):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[policy.approvals]\nseconds = 0.1\n")
    async with proxied(tmp_path, monkeypatch, [("shell", {"command": "ask"}), "Not run."]) as proxy:
        assert (await ask(client_of(proxy), [user("go")], True))["content"] == "Not run."


async def test_text_is_passed_on_as_it_comes_and_calls_are_held(tmp_path: Path, monkeypatch: Patch):
    seen = Event()
    chunks = events("Let me see.", "gpt-5").split(b"\n\n")[:2]
    rest = events(("shell", {"command": "ls"}), "gpt-5")

    def slow() -> Any:
        yield b"\n\n".join(chunks) + b"\n\n"
        assert seen.wait(10), "the text came only with the rest"
        yield rest

    async with proxied(tmp_path, monkeypatch, [slow()]) as proxy:
        answer = await client_of(proxy).chat.completions.create(
            model="gpt-5", messages=[user("go")], tools=TOOLS, stream=True
        )
        found: list[Any] = []
        async for chunk in answer:
            if chunk.choices:
                found.append(chunk.choices[0].delta)
            seen.set()
        assert found[0].content == "Let me s"
        assert [each.tool_calls[0].function.name for each in found if each.tool_calls] == ["shell"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        ({"messages": [user("x")]}, "model"),
        ({"model": "gpt-5"}, "messages"),
        ({"model": "gpt-5", "messages": []}, "messages"),
        ({"model": "gpt-5", "messages": ["x"]}, "messages[0]"),
        ({"model": "gpt-5", "messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"model": "gpt-5", "messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"model": "gpt-5", "messages": [user("x")], "n": 2}, "n must be 1"),
        ({"model": "gpt-5", "messages": [user("x")], "functions": []}, "functions"),
        ({"model": "gpt-5", "messages": [user("x")], "stream": "yes"}, "stream"),
        ({"model": "gpt-5", "messages": [user("x")], "tools": [{"type": "custom"}]}, "tools[0]"),
        (
            {
                "model": "gpt-5",
                "messages": [user("x"), {"role": "tool", "tool_call_id": "c9", "content": "y"}],
            },
            "c9",
        ),
    ],
)
async def test_a_malformed_request_gets_the_error_of_the_format(
    tmp_path: Path, monkeypatch: Patch, body: Any, named: str
):
    async with proxied(tmp_path, monkeypatch, ["ok"], guard="") as proxy:
        status, sent = await post(proxy, body)
        error = json.loads(sent)["error"]
        assert (status, error["type"]) == (400, "invalid_request_error")
        assert named in error["message"]
        assert proxy.server.requests == []


async def test_only_the_token_lets_in_and_the_provider_gets_its_own_key(
    tmp_path: Path, monkeypatch: Patch
):
    async with proxied(tmp_path, monkeypatch, ["ok"], guard="") as proxy:
        for key in ("wrong", proxy.server.key):
            with pytest.raises(openai.AuthenticationError):
                await ask(client_of(proxy, api_key=key), [user("hello")], False)
        assert proxy.server.requests == []
        assert (await ask(client_of(proxy), [user("hello")], False))["content"] == "ok"
        models = [each.id async for each in client_of(proxy).models.list()]
        assert models == ["gpt-5", "gpt-5-mini"]
        with pytest.raises(openai.NotFoundError):
            await client_of(proxy).models.retrieve("no-such")
        with pytest.raises(openai.NotFoundError, match="does not serve"):
            await client_of(proxy).embeddings.create(model="x", input="y")


async def test_the_key_of_the_client_goes_to_the_provider_if_so_configured(
    tmp_path: Path, monkeypatch: Patch
):
    async with proxied(tmp_path, monkeypatch, ["ok"], guard="", forward_keys=True) as proxy:
        own = proxy.server.key
        monkeypatch.setenv("OPENAI_API_KEY", "unused-key")
        client = client_of(proxy, api_key=own, default_headers={"X-Hookline-Token": TOKEN})
        assert (await ask(client, [user("hello")], False))["content"] == "ok"
        with pytest.raises(openai.AuthenticationError):
            await ask(client_of(proxy, api_key=own), [user("hello")], False)


@both
async def test_an_error_of_the_provider_reaches_the_client_and_a_retry_goes_on_in_the_same_turn(
    tmp_path: Path, monkeypatch: Patch, stream: bool
):
    body = json.dumps({"error": {"message": "slow down", "type": "rate_limit", "code": "busy"}})
    refused = Refused(429, body.encode(), {"Retry-After": "7"})
    script = [("shell", {"command": "ls"}), refused, "Done."]
    async with proxied(tmp_path, monkeypatch, script) as proxy:
        client = client_of(proxy)
        messages = [user("go")]
        first = await ask(client, messages, stream)
        messages += [first, *results(first, "a b")]
        with pytest.raises(openai.RateLimitError, match="slow down") as caught:
            await ask(client, messages, stream)
        assert caught.value.response.headers["retry-after"] == "7"
        assert (await ask(client, messages, stream))["content"] == "Done."
        [session] = await proxy.sessions()
        kept = await proxy.entries(session)
    assert [p["status"] for kind, p in kept if kind == "turn"] == ["started", "completed"]
    assert [p["content"] for kind, p in kept if kind == "tool_result"] == ["a b"]


async def test_a_provider_that_fails_mid_stream_is_an_error_and_no_call_gets_through(
    tmp_path: Path, monkeypatch: Patch
):
    text = b"\n\n".join(events("Hello there.", "gpt-5").split(b"\n\n")[:1]) + b"\n\n"
    call = b"\n\n".join(events(("shell", {"command": "ls"}), "gpt-5").split(b"\n\n")[:1]) + b"\n\n"
    error = b'data: {"error": {"message": "overloaded"}}\n\n'
    async with proxied(
        tmp_path, monkeypatch, [text, call, text + error, text + b"data: {\n\n"]
    ) as proxy:
        for _ in range(4):
            status, sent = await post(
                proxy, {"model": "gpt-5", "messages": [user("go")], "tools": TOOLS, "stream": True}
            )
            assert b"tool_calls" not in sent
            assert b"[DONE]" not in sent
            last = json.loads(sent.strip().split(b"data: ")[-1]) if status == 200 else json.loads(sent)
            assert last["error"]["type"] == "server_error"


async def test_calls_that_cannot_be_read_do_not_reach_the_client(tmp_path: Path, monkeypatch: Patch):
    def with_message(message: dict[str, Any]) -> bytes:
        body = json.loads(whole("x", "gpt-5"))
        body["choices"][0]["message"] = {"role": "assistant", "content": None, **message}
        return json.dumps(body).encode()

    call = {"name": "shell", "arguments": "{}"}
    custom = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "rm"}}
    two = json.loads(whole("x", "gpt-5"))
    two["choices"] *= 2
    script = [with_message({"function_call": call}), with_message({"tool_calls": [custom]})]
    async with proxied(tmp_path, monkeypatch, [*script, json.dumps(two).encode()]) as proxy:
        for _ in range(3):
            status, sent = await post(proxy, {"model": "gpt-5", "messages": [user("go")]})
            assert status == 502
            assert "the provider sent" in json.loads(sent)["error"]["message"]


async def test_a_client_that_drops_cancels_its_turn_and_may_come_back(
    tmp_path: Path, monkeypatch: Patch
):
    begun, gone = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def endless() -> Any:
        yield events("Hello there.", "gpt-5").split(b"\n\n")[0] + b"\n\n"
        loop.call_soon_threadsafe(begun.set)
        gone.wait(10)

    async with proxied(tmp_path, monkeypatch, [endless(), "Again."]) as proxy:
        asking = asyncio.create_task(ask(client_of(proxy), [user("go")], True))
        await begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
        [session] = await proxy.sessions()
        while "cancelled" not in str([p for kind, p in await proxy.entries(session) if kind == "turn"]):
            await asyncio.sleep(0.01)
        gone.set()
        assert (await ask(client_of(proxy), [user("go")], True))["content"] == "Again."
        assert await proxy.sessions() == [session]


async def test_two_clients_in_one_conversation_get_two_sessions(tmp_path: Path, monkeypatch: Patch):
    second = Event()

    def slow() -> Any:
        assert second.wait(10)
        yield events("first", "gpt-5")

    def answer(body: Any) -> Any:
        return slow() if len(proxy.server.requests) == 2 else "other"

    async with proxied(tmp_path, monkeypatch, ["hi", answer]) as proxy:
        client = client_of(proxy)
        messages = [user("hello")]
        messages += [await ask(client, messages, True), user("go on")]
        asking = asyncio.create_task(ask(client, messages, True))
        while len(proxy.server.requests) < 2:
            await asyncio.sleep(0.01)
        assert (await ask(client, messages, True))["content"] == "other"
        second.set()
        assert (await asking)["content"] == "first"
        assert len(await proxy.sessions()) == 2


async def test_equal_call_ids_of_two_conversations_are_told_apart(tmp_path: Path, monkeypatch: Patch):
    async with proxied(tmp_path, monkeypatch, [("shell", {"command": "ls"})] * 2 + ["ok"]) as proxy:
        client = client_of(proxy)
        asked = [[user("one")], [user("two")]]
        firsts = [await ask(client, messages, False) for messages in asked]
        for messages, first in zip(asked, firsts, strict=True):
            messages += [first, *results(first, f"result of {messages[0]['content']}")]
        await asyncio.gather(*(ask(client, messages, False) for messages in asked))
        kept = [str(await proxy.entries(session)) for session in await proxy.sessions()]
        for text in kept:
            assert ("result of one" in text) != ("result of two" in text)
            assert ("'one'" in text) == ("result of one" in text)

"""The official OpenAI client talks to the agent."""

import openai
import pytest

from hookline.events import AudioPart, ImagePart, MessageSendResult, TextPart
from hookline.models.script import Call, Fault, Turn

from .conftest import TOKEN


def client(at, **options):
    return openai.AsyncOpenAI(
        base_url=f"{at.url}v1", api_key=options.pop("api_key", TOKEN), max_retries=0, **options
    )


async def test_it_lists_the_agent_and_completes_a_chat(served, scripted):
    scripted(Turn("Hello.", usage={"input_tokens": 5, "output_tokens": 2}))
    async with served() as at, client(at) as ai:
        models = [model.id async for model in ai.models.list()]
        answer = await ai.chat.completions.create(
            model="hookline", messages=[{"role": "user", "content": "hi"}]
        )
    assert models == ["hookline", "scripted"]
    assert answer.choices[0].message.content == "Hello."
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (5, 7)


async def test_it_streams_text_and_hides_the_agents_own_tool_calls(served, scripted):
    scripted(
        Turn("Looking. ", tool_calls=[Call("list_files", {"path": "."})]),
        Turn("Nothing there.", chunk=4, usage={"input_tokens": 5, "output_tokens": 2}),
    )
    async with served() as at, client(at) as ai:
        stream = await ai.chat.completions.create(
            model="hookline",
            messages=[{"role": "user", "content": "what is here?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    said = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert said[0].role == "assistant"
    assert "".join(delta.content or "" for delta in said) == "Looking. Nothing there."
    assert not any(delta.tool_calls for delta in said)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens == 2


@pytest.mark.parametrize("how", ["user", "header"])
async def test_a_named_session_is_remembered_and_only_the_last_message_counts(served, scripted, how):
    model = scripted("one", "two")
    named = (
        {"user": "ada"} if how == "user" else {"extra_headers": {"x-hookline-session": "openai:ada"}}
    )
    async with served() as at, client(at) as ai:
        first = [{"role": "user", "content": "first"}]
        await ai.chat.completions.create(model="hookline", messages=first, **named)
        later = [*first, {"role": "assistant", "content": "one"}, {"role": "user", "content": "second"}]
        await ai.chat.completions.create(model="hookline", messages=later, **named)
        async with at.http.get(f"{at.url}api/sessions/openai:ada") as response:
            page = await response.json()
    assert [item["text"] for item in page["messages"]] == ["first", "one", "second", "two"]
    assert len(model.requests) == 2


async def test_without_a_session_the_whole_conversation_counts(served, scripted):
    model = scripted("blue", "red")
    conversation = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "my favourite colour is blue"},
        {"role": "assistant", "content": "noted"},
        {"role": "user", "content": [{"type": "text", "text": "which one?"}]},
    ]
    async with served() as at, client(at) as ai:
        await ai.chat.completions.create(model="hookline", messages=conversation)
        await ai.chat.completions.create(model="hookline", messages=conversation[-1:])
    said = [m["content"] for m in model.requests[0].messages if m["role"] != "system"]
    assert said == ["Instructions:\nBe brief.", "my favourite colour is blue", "noted", "which one?"]
    assert [m["content"] for m in model.requests[1].messages if m["role"] == "user"] == ["which one?"]


async def test_errors_are_those_that_the_client_knows(served, scripted):
    scripted(Turn(error=Fault("broken")), Turn(error=Fault("broken")))
    hello = [{"role": "user", "content": "hi"}]
    async with served() as at:
        async with client(at, api_key="wrong") as ai:
            with pytest.raises(openai.AuthenticationError):
                await ai.chat.completions.create(model="hookline", messages=hello)
        async with client(at) as ai:
            with pytest.raises(openai.NotFoundError, match="no model 'gpt-5'"):
                await ai.chat.completions.create(model="gpt-5", messages=hello)
            with pytest.raises(openai.InternalServerError, match="broken"):
                await ai.chat.completions.create(model="hookline", messages=hello)
            with pytest.raises(openai.UnprocessableEntityError, match="at least 1 item"):
                await ai.chat.completions.create(model="hookline", messages=[])
            oops = [{"role": "user", "content": [{"type": "image_url", "image_url": "oops"}]}]
            with pytest.raises(openai.UnprocessableEntityError, match="malformed"):
                await ai.chat.completions.create(model="hookline", messages=oops)
            stream = await ai.chat.completions.create(model="hookline", messages=hello, stream=True)
            with pytest.raises(openai.APIError, match="broken"):
                [chunk async for chunk in stream]


async def test_nobody_is_asked_for_approval_there(served, scripted, app):
    from hookline.events import ToolCallEventResult

    scripted(Turn(tool_calls=[Call("shell", {"command": "true"})]), "I may not.")
    app.hooks.register("tool_call", lambda event: ToolCallEventResult(ask=True))
    async with served() as at, client(at) as ai:
        answer = await ai.chat.completions.create(
            model="hookline", messages=[{"role": "user", "content": "go"}]
        )
    assert answer.choices[0].message.content == "I may not."


@pytest.mark.parametrize("stream", [False, True])
async def test_parts_that_message_send_adds_reach_the_client(served, scripted, app, stream):
    parts = [
        TextPart("P.S. It rains."),
        ImagePart(url="https://pictures.example/rain.png"),
        ImagePart(b"png", "image/png"),
        AudioPart(b"sound", "audio/wav"),
    ]
    app.hooks.register("message:send", lambda: MessageSendResult(parts=parts))
    scripted("Hello.")
    asked = {"model": "hookline", "messages": [{"role": "user", "content": "hi"}]}
    async with served() as at, client(at) as ai:
        answer = await ai.chat.completions.create(**asked, stream=stream)
        if stream:
            said = [chunk.choices[0].delta async for chunk in answer]
            content = "".join(delta.content or "" for delta in said)
            (audio,) = [delta.audio.data for delta in said if getattr(delta, "audio", None)]
        else:
            content = answer.choices[0].message.content
            audio = answer.choices[0].message.audio.data
    assert content.split("\n\n") == [
        "Hello.",
        "P.S. It rains.",
        "![image](https://pictures.example/rain.png)",
        "![image](data:image/png;base64,cG5n)",
    ]
    assert audio == "c291bmQ="

"""HTTP, Server-Sent Events and WebSocket: messages in, frames out."""

import asyncio
import base64
import json

import pytest
import websockets

from hookline.events import MessageReceiveResult, MessageSendResult, ToolCallEventResult
from hookline.models.script import Call, Fault, Turn
from hookline.policy.approvals import Approvals
from hookline.types import AudioPart, ImagePart, TextPart

from .conftest import frames_until


async def test_an_answer_is_returned_whole_with_its_outcome_and_usage(served, scripted):
    scripted(Turn("Hello.", usage={"input_tokens": 3, "output_tokens": 2}))
    async with served() as at:
        answer = await at.say("hi", id="m1")
    assert answer.pop("usage") == {"input_tokens": 3, "output_tokens": 2}
    assert answer == {
        "status": 200,
        "type": "end",
        "id": "m1",
        "outcome": "answered",
        "text": "Hello.",
        "reason": None,
        "session_id": "web:test",
        "parts": [],
    }


async def test_an_answer_is_streamed_as_events_in_order(served, scripted):
    scripted(
        Turn("Let me see.", reasoning="hm", chunk=4, tool_calls=[Call("list_files", {"path": "."})]),
        Turn("Empty.", chunk=3),
    )
    async with served() as at:
        frames = await at.events("what is here?", id="m1")
    kinds = [frame["type"] for frame in frames]
    assert kinds[:2] == ["session", "accepted"]
    assert kinds.index("reasoning") < kinds.index("text") < kinds.index("tool_call")
    assert kinds.index("tool_call") < kinds.index("tool_result")
    assert kinds[-1] == "end"
    assert kinds.count("end") == 1
    said = "".join(frame["delta"] for frame in frames if frame["type"] == "text")
    assert said == "Let me see.Empty."
    assert frames[-1]["text"] == "Empty."
    assert {frame["id"] for frame in frames[1:]} == {"m1"}


async def test_a_websocket_carries_a_conversation(served, scripted):
    scripted(Turn("One.", chunk=2), Turn("Two.", chunk=2))
    async with served() as at, at.ws("web:talk") as socket:
        await socket.send('{"type": "message", "id": "a", "text": "1"}')
        first = await frames_until(socket, "end")
        await socket.send('{"type": "ping"}')
        assert json.loads(await socket.recv()) == {"type": "pong"}
        await socket.send('{"type": "message", "id": "b", "text": "2"}')
        second = await frames_until(socket, "end")
        async with at.http.get(f"{at.url}api/sessions/web:talk") as response:
            page = await response.json()
    assert first[0]["type"] == "session"
    assert first[0]["session_id"] == "web:talk"
    assert first[1] == {"type": "accepted", "id": "a"}
    assert (first[-1]["id"], first[-1]["text"]) == ("a", "One.")
    assert (second[-1]["id"], second[-1]["text"]) == ("b", "Two.")
    said = [(item["role"], item["text"]) for item in page["messages"]]
    assert said == [("user", "1"), ("assistant", "One."), ("user", "2"), ("assistant", "Two.")]


async def test_parts_reach_the_hooks_and_parts_of_hooks_come_before_the_end(served, scripted, app):
    scripted("Yes.", "Yes.")
    heard = []

    def receive(event):
        heard.append(event.parts)
        return MessageReceiveResult(action="transform", parts=[TextPart("spoken")])

    def speak(event):
        return MessageSendResult(parts=[AudioPart(b"mp3", "audio/mp3")])

    picture = base64.b64encode(b"GIF8").decode()
    app.hooks.register("message:receive", receive)
    app.hooks.register("message:send", speak)
    part = {"type": "image", "mime_type": "image/gif", "data": picture}
    async with served() as at:
        frames = await at.events("look", parts=[part])
        whole = await at.say("again")
    assert heard[0] == [TextPart("look"), ImagePart(b"GIF8", "image/gif")]
    assert [frame["type"] for frame in frames][-2:] == ["part", "end"]
    assert frames[-2]["part"] == {"type": "audio", "mime_type": "audio/mp3", "data": "bXAz"}
    assert len(whole["parts"]) == 1


async def test_a_rejected_message_gets_the_reason_back(served, scripted, app):
    scripted("never")
    no = MessageReceiveResult(action="reject", reason="not on Sundays")
    app.hooks.register("message:receive", lambda event: no)
    async with served() as at:
        answer = await at.say("hi")
        frames = await at.events("hi")
    assert (answer["outcome"], answer["reason"]) == ("rejected", "not on Sundays")
    assert [frame["type"] for frame in frames] == ["session", "accepted", "end"]


async def test_a_failed_turn_is_told_to_the_sender_and_to_gateway_error(served, scripted, app):
    scripted(Turn(error=Fault("the model is broken")), Turn(error=Fault("still")))
    failures = []
    app.hooks.register("gateway:error", failures.append)
    async with served() as at:
        answer = await at.say("hi")
        frames = await at.events("hi")
    assert answer["status"] == 500
    assert "the model is broken" in answer["detail"]
    assert frames[-1]["type"] == "error"
    assert [event.channel_id for event in failures] == ["web", "web"]


async def test_of_a_store_that_fails_a_sender_learns_no_more_than_that(served, scripted, app):
    scripted("Hello.")
    failures = []
    app.hooks.register("gateway:error", failures.append)
    async with served() as at:
        store = app.store()
        pages = await store.using("read", lambda db: db.execute("PRAGMA page_count").fetchone()[0])
        await store.using("limit", lambda db: db.execute(f"PRAGMA max_page_count = {pages}"))
        async with at.ws() as socket:
            await socket.send(json.dumps({"type": "message", "text": "x" * 200_000}))
            said = (await frames_until(socket, "error"))[-1]
    assert said["message"] == "messages cannot be kept at the moment; try again later"
    assert "tape.db" in str(failures[0].error)


@pytest.mark.parametrize("answer", ["approve", "reject"])
async def test_an_approval_is_asked_and_answered_in_the_websocket(served, scripted, app, answer):
    scripted(Turn(tool_calls=[Call("shell", {"command": "echo hi"})]), "Done.")
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="run it?"))
    noticed = []
    app.hooks.register("notification", noticed.append)
    async with served() as at, at.ws() as socket:
        await socket.send('{"type": "message", "id": "a", "text": "go"}')
        asked = await frames_until(socket, "approval")
        assert asked[-1]["tool"] == "shell"
        assert asked[-1]["arguments"] == {"command": "echo hi"}
        assert "run it?" in asked[-1]["question"]
        said = {"type": "answer", "answer": answer}
        said |= {name: asked[-1][name] for name in ("id", "hash")}
        await socket.send(json.dumps(said))
        rest = await frames_until(socket, "end")
        await socket.send(json.dumps(said))
        late = await frames_until(socket, "error")
    result = next(frame for frame in rest if frame["type"] == "tool_result")
    assert result["is_error"] is (answer == "reject")
    assert noticed[0].kind == "approval"
    assert late[-1]["message"] == "nobody asks this now"


async def test_an_approval_for_the_session_is_asked_once_and_can_be_answered_over_http(
    served, scripted, app
):
    call = Turn(tool_calls=[Call("shell", {"command": "echo hi"})])
    scripted(call, call, "Done.")
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True))
    async with served() as at:
        saying = asyncio.create_task(at.say("go"))
        while not at.gateway.approvals.pending:
            await asyncio.sleep(0.001)
        async with at.http.get(f"{at.url}api/approvals") as response:
            (question,) = await response.json()
        at_it = f"{at.url}api/approvals/{question['id']}"
        async with at.http.post(
            at_it, json={"answer": "session", "hash": question["hash"]}
        ) as response:
            assert response.status == 200
        assert (await saying)["text"] == "Done."
        async with at.http.post(
            at_it, json={"answer": "approve", "hash": question["hash"]}
        ) as response:
            assert response.status == 404


async def test_a_question_is_shown_again_to_one_who_comes_back(served, scripted, app):
    scripted(Turn(tool_calls=[Call("shell", {"command": "true"})]), "Done.")
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True))
    async with served() as at:
        async with at.ws() as socket:
            await socket.send('{"type": "message", "id": "a", "text": "go"}')
            await frames_until(socket, "approval")
        async with at.ws() as socket:
            asked = await frames_until(socket, "approval")
            said = {"type": "answer", "answer": "approve"}
            said |= {name: asked[-1][name] for name in ("id", "hash")}
            await socket.send(json.dumps(said))
            rest = await frames_until(socket, "end")
    assert (rest[-1]["id"], rest[-1]["text"]) == ("a", "Done.")


async def test_cancel_stops_the_turn_fires_its_event_and_ends_the_answer(served, scripted, app):
    scripted(Turn("slowly " * 500, chunk=1, delay=0.01))
    cancels = []
    app.hooks.register("message:cancel", cancels.append)
    async with served() as at, at.ws() as socket:
        await socket.send('{"type": "message", "id": "a", "text": "go"}')
        await frames_until(socket, "text")
        await socket.send('{"type": "cancel"}')
        rest = await frames_until(socket, "end")
        async with at.http.post(f"{at.url}api/sessions/web:test/cancel") as response:
            assert await response.json() == {"cancelled": False}
        async with at.http.post(f"{at.url}api/sessions/nobody/cancel") as response:
            assert response.status == 404
    assert rest[-1]["outcome"] == "cancelled"
    assert [(event.channel_id, event.chat_id) for event in cancels] == [("web", "web:test")]


async def test_ten_messages_at_once_in_one_session_each_get_one_outcome_in_order(served, scripted):
    scripted(*(Turn(f"answer {i}", chunk=3) for i in range(10)))
    async with served() as at, at.ws() as socket:
        for i in range(10):
            await socket.send(json.dumps({"type": "message", "id": f"m{i}", "text": f"q{i}"}))
        frames = []
        while sum(frame["type"] == "end" for frame in frames) < 10:
            frames.append(json.loads(await socket.recv()))
    ends = [(frame["id"], frame["text"]) for frame in frames if frame["type"] == "end"]
    assert ends == [(f"m{i}", f"answer {i}") for i in range(10)]
    texts: dict[str, str] = {}
    for frame in frames:
        if frame["type"] == "text":
            texts[frame["id"]] = texts.get(frame["id"], "") + frame["delta"]
    assert texts == {f"m{i}": f"answer {i}" for i in range(10)}


async def test_a_client_that_vanishes_mid_stream_leaves_a_whole_turn_on_record(served, scripted, app):
    scripted(Turn("a long answer " * 20, chunk=4, delay=0.001))
    done = asyncio.Event()
    app.hooks.register("settled", lambda event: done.set())
    async with served() as at:
        url = f"{at.url}api/sessions/gone/messages"
        headers = {"accept": "text/event-stream"}
        async with at.http.post(url, json={"text": "hi"}, headers=headers) as response:
            await response.content.readuntil(b"event: text")
            response.close()
        await done.wait()
        async with at.http.get(f"{at.url}api/sessions/gone") as response:
            said = (await response.json())["messages"]
    assert [item["text"] for item in said] == ["hi", "a long answer " * 20]


async def test_a_slow_reader_is_disconnected_and_told_and_the_answer_is_on_record(
    served, scripted, app
):
    words, done = "x" * 10_000, asyncio.Event()
    app.hooks.register("settled", lambda event: done.set())
    scripted(Turn(words * 2_000, chunk=10_000))
    async with served(backlog=100_000) as at:
        async with at.ws(max_queue=1) as socket:
            await socket.send('{"type": "message", "id": "a", "text": "go"}')
            await done.wait()
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await frames_until(socket, "end")
        assert closed.value.rcvd.code == 4408
        async with at.http.get(f"{at.url}api/sessions/web:test") as response:
            said = (await response.json())["messages"]
    assert len(said[-1]["text"]) == 20_000_000


async def test_a_half_open_socket_is_noticed_by_its_missing_pongs(served, scripted):
    scripted("hi")
    async with served(ping=0.05) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(at.url.split(":")[2][:-1]))
        writer.write(
            b"GET /ws?session=dead HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Version: 13\r\n\r\n"
        )
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()  # the server gives up on one that never answers
        writer.close()
        gauge = at.gateway.metrics.registry
        while gauge.get_sample_value("hookline_websockets"):
            await asyncio.sleep(0.01)


async def test_a_message_renderered_by_a_plugin_is_shown_beside_the_answer(served, scripted, app):
    scripted("plain")
    app.hooks.register(
        "render_outbound",
        lambda message: [{"content": "rendered", "channel": "web", "chat_id": "web:test"}],
    )
    async with served() as at:
        answer = await at.say("hi")
    assert answer["parts"] == [{"type": "text", "text": "rendered"}]


async def test_a_message_sent_to_a_chat_reaches_those_who_watch_it(served, scripted):
    scripted("hi")
    async with served() as at, at.ws("web:garden") as socket:
        await frames_until(socket, "session")
        news = {"content": "it rains", "channel": "web", "chat_id": "web:garden"}
        assert await at.gateway.deliver(news)
        assert not await at.gateway.deliver({**news, "chat_id": "web:nobody"})
        frames = await frames_until(socket, "end")
    assert frames[-1]["text"] == "it rains"


async def test_quick_messages_become_one_when_debounced(served, scripted):
    model = scripted("both", repeat=True)
    async with served(debounce=0.2) as at, at.ws() as socket:
        await socket.send('{"type": "message", "id": "a", "text": "one"}')
        await socket.send('{"type": "message", "id": "b", "text": "two"}')
        first = await frames_until(socket, "end")
        second = await frames_until(socket, "end")
    assert (first[-1]["id"], first[-1]["outcome"]) == ("a", "steered")
    assert (second[-1]["id"], second[-1]["text"]) == ("b", "both")
    assert model.requests[-1].messages[-1]["content"] == "one\ntwo"


async def test_an_answer_from_another_process_ends_the_wait_and_every_tab_is_told(
    served, scripted, app
):
    scripted(Turn(tool_calls=[Call("shell", {"command": "echo hi"})]), "Done.")
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True))
    elsewhere = Approvals(app.home / "approvals.db")
    async with served() as at, at.ws() as one, at.ws() as other:
        await one.send('{"type": "message", "id": "a", "text": "go"}')
        asked = (await frames_until(one, "approval"))[-1]
        (question,) = elsewhere.pending()
        assert question.id == asked["id"]
        elsewhere.answer(question.id, "session", by="ada")
        done = [(await frames_until(socket, "answered"))[-1] for socket in (one, other)]
        rest = await frames_until(one, "end")
    assert done == [{"type": "answered", "id": asked["id"], "answer": "session"}] * 2
    assert rest[-1]["text"] == "Done."


async def test_a_grant_for_the_session_outlasts_the_gateway_and_covers_no_other_session(
    served, scripted, app
):
    call = Turn(tool_calls=[Call("shell", {"command": "echo hi"})])
    scripted(call, "One.", call, "Two.", call, "Three.")
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True))
    async with served() as at, at.ws("web:a") as socket:
        await socket.send('{"type": "message", "id": "m", "text": "go"}')
        asked = (await frames_until(socket, "approval"))[-1]
        said = {"type": "answer", "answer": "session"}
        said |= {name: asked[name] for name in ("id", "hash")}
        await socket.send(json.dumps(said))
        assert (await frames_until(socket, "end"))[-1]["text"] == "One."
    async with served(drain=0) as at:  # nobody answers the last question
        assert (await at.say("go", "web:a"))["text"] == "Two."
        async with at.ws("web:ab") as socket:
            await socket.send('{"type": "message", "id": "m", "text": "go"}')
            assert (await frames_until(socket, "approval"))[-1]["tool"] == "shell"

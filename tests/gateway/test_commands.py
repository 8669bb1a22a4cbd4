"""Slash commands in channels: what they do, who is asked, and what they never get around."""

import asyncio
import json

import pytest

from hookline.events import InputEventResult, MessageReceiveResult
from hookline.hooks import hookimpl
from hookline.models.script import Turn
from hookline.policy import Policy
from hookline.runtime.user_commands import SlashCommand
from hookline.serve import Gateway, GatewaySettings
from hookline.tools import tool
from hookline.tools.registry import Registry

from .test_gateway import Mailbox, Post, letter


class Library:
    @hookimpl
    def register_commands(self):
        async def late(app, arguments):
            return f"{arguments} is late"

        def broken(text):
            raise RuntimeError("no shelf")

        return [SlashCommand("late", "Whether a book is late.", late, operator=False), broken]


@tool(side_effects="write", registry=Registry())
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@pytest.fixture
def library(app, scripted):
    app.hooks.add(Library())
    app.tools.add(shout)
    scripted("An answer.", "Another answer.")
    return app


async def test_a_plugins_command_is_answered_like_a_message_and_makes_no_turn(library, served):
    seen = []
    library.hooks.register("agent_start", lambda event: seen.append("turn"))
    async with served() as web:
        frames = await web.events("/late Emma", id="m1")
        whole = await web.say("/late Persuasion")
        said = await web.say("hello")
    assert [frame["type"] for frame in frames] == ["session", "accepted", "text", "end"]
    assert frames[2] == {"type": "text", "id": "m1", "delta": "Emma is late"}
    assert (frames[3]["outcome"], frames[3]["text"]) == ("handled", "Emma is late")
    assert (whole["status"], whole["text"], whole["parts"]) == (200, "Persuasion is late", [])
    assert (said["text"], seen) == ("An answer.", ["turn"])


async def test_a_channel_that_only_sends_gets_the_answer_too(library):
    box = Mailbox()
    library.hooks.add(Post(box))
    async with Gateway(library, enabled=["mail"]).running():
        await box.handle(letter("/late Emma"))
        await box.ended.wait()
    sent = ["stream Emma is late", "send Emma is late", "end handled"]
    assert box.log == ["start", *sent, "stop"]


async def test_help_and_the_api_list_commands_and_tools(library, served):
    async with served() as web:
        text = (await web.say("/help"))["text"]
        async with web.http.get(f"{web.url}api/commands") as response:
            listed = {each["name"]: each["help"] for each in await response.json()}
    for name in ("help", "new", "compact", "model", "think", "cancel", "late", "shout"):
        assert f"/{name}: {listed[name]}" in text


async def test_an_unknown_command_and_bad_arguments_are_answered_with_what_is_wrong(library, served):
    async with served() as web:
        unknown = await web.say("/lte Emma")
        path = await web.say("/etc/hosts is a file")
        arguments = await web.say("/shout {text: x}")
        level = await web.say("/think enormously")
    assert unknown["text"].startswith("no command /lte; did you mean 'late'")
    assert unknown["text"].endswith("/help lists them")
    assert (path["outcome"], path["text"]) == ("answered", "An answer.")
    assert "not valid JSON" in arguments["text"]
    assert "enormously" in level["text"]
    assert {unknown["status"], arguments["status"], level["status"]} == {200}


async def test_a_command_that_breaks_is_a_failure_of_its_message_alone(library, served):
    errors = []
    library.hooks.register("gateway:error", errors.append)
    async with served() as web:
        broken = await web.say("/broken x")
        after = await web.say("hello")
    assert (broken["status"], "no shelf" in broken["detail"]) == (500, True)
    assert [str(event.error) for event in errors] == ["no shelf"]
    assert after["text"] == "An answer."


async def test_a_tool_is_asked_for_through_the_channel_and_its_gates_see_a_command(library, served):
    library.given_policy = Policy()
    seen = []
    library.hooks.register(
        "authorize_action", lambda action: seen.append([action[k] for k in ("source", "channel")])
    )
    async with served() as web, web.ws() as socket:
        await socket.recv()
        for answer, said in (("approve", "HI"), ("reject", None)):
            await socket.send(json.dumps({"type": "message", "id": answer, "text": "/shout hi"}))
            while (frame := json.loads(await socket.recv()))["type"] != "end":
                if frame["type"] == "approval":
                    assert (frame["tool"], frame["arguments"]) == ("shout", {"text": "hi"})
                    reply = {"type": "answer", "answer": answer}
                    reply |= {name: frame[name] for name in ("id", "hash")}
                    await socket.send(json.dumps(reply))
            assert frame["outcome"] == "handled"
            assert (frame["text"] == "HI") is (said is not None)
    assert seen == [["command", "web"]] * 2


async def test_nobody_is_asked_where_nobody_can_be_and_the_call_is_denied(library, served):
    library.given_policy = Policy()
    body = {"model": "hookline", "messages": [{"role": "user", "content": "/shout hi"}]}
    async with (
        served() as web,
        web.http.post(f"{web.url}v1/chat/completions", json=body) as response,
    ):
        said = (await response.json())["choices"][0]["message"]["content"]
    assert "HI" not in said
    assert said


async def test_message_receive_and_input_and_admission_have_their_say_first(library, served):
    ran = []
    library.hooks.register("message:receive", lambda event: (
        MessageReceiveResult(action="reject", reason="closed") if "Emma" in event.text else None
    ))  # fmt: skip
    library.hooks.register("input", lambda event: (
        InputEventResult(action="handled") if event.text == "/weather" else
        InputEventResult(action="transform", text="hello") if event.text == "/hello" else None
    ))  # fmt: skip
    library.hooks.register("admit_message", lambda message: (
        "drop" if message["content"] == "/late Dracula" else None
    ))  # fmt: skip
    library.hooks.register("tool_execution_start", ran.append)
    async with served() as web:
        said = [
            await web.say(text)
            for text in ("/late Emma", "/weather", "/late Dracula", "/hello", "/shout Emma")
        ]
    outcomes = [each["outcome"] for each in said]
    assert outcomes == ["rejected", "handled", "dropped", "answered", "rejected"]
    assert [each["text"] for each in said] == ["", "", "", "An answer.", ""]
    assert not ran


async def test_cancel_stops_the_running_turn_and_does_not_wait_for_it(app, scripted, served):
    scripted(Turn("never", wait=600))
    begun, cancelled = asyncio.Event(), []
    app.hooks.register("agent_start", lambda event: begun.set())
    app.hooks.register("message:cancel", lambda event: cancelled.append(event.chat_id))
    async with served() as web:
        turn = asyncio.create_task(web.say("go"))
        await begun.wait()
        stopped = await web.say("/cancel")
        assert (await turn)["outcome"] == "cancelled"
        idle = await web.say("/cancel")
    assert (stopped["text"], idle["text"]) == ("stopped", "nothing is running")
    assert cancelled == ["web:test"]


async def test_new_puts_what_was_said_out_of_sight_and_model_and_think_are_the_sessions(
    app, scripted, served
):
    model = scripted("one", "two", "three")
    async with served() as web:
        await web.say("first")
        assert "new beginning" in (await web.say("/new"))["text"]
        await web.say("second")
        shown = (await web.say("/model"))["text"]
        await web.say("/think high")
        assert (await web.say("/think"))["text"] == "thinking: high"
        other = (await web.say("/think", session="web:other"))["text"]
    asked = [message["content"] for message in model.requests[-1].messages if message["role"] == "user"]
    assert asked == ["second"]
    assert shown.startswith(f"the model is {app.model}")
    assert "high" not in other


async def test_compact_while_a_turn_runs_is_refused_in_words(app, scripted, served):
    scripted(Turn("never", wait=600))
    begun = asyncio.Event()
    app.hooks.register("agent_start", lambda event: begun.set())
    async with served() as web:
        turn = asyncio.create_task(web.say("go"))
        await begun.wait()
        refused = (await web.say("/compact"))["text"]
        await web.say("/cancel")
        await turn
    assert "in the middle of a turn" in refused


async def test_a_command_is_not_taken_together_with_what_was_said_before_it(library):
    box = Mailbox()
    library.hooks.add(Post(box))
    settings = GatewaySettings(debounce=600)
    async with Gateway(library, enabled=["mail"], settings=settings).running():
        await box.handle(letter("hello"))
        await box.handle(letter("/late Emma"))
    assert "send Emma is late" in box.log
    assert "send An answer." in box.log


async def test_a_command_that_was_cut_off_is_on_record_and_not_carried_out_again(library, served):
    async with served() as web:
        await web.say("/late Emma")
        entries = await library.store().entries("web:test", kinds={"inbound"})
    noted = [(entry.payload["outcome"], entry.payload["reason"]) for entry in entries]
    assert noted == [("handled", "/late")]

"""`ctx.notify` and `ctx.ask` reach the channel that a message came by."""

import asyncio
import os
import threading

import pytest

from hookline.channel import Channel, Question
from hookline.events import SessionBeforeSwitchResult
from hookline.models.script import Call, Turn
from hookline.policy import Policy
from hookline.policy.approvals import Approvals
from hookline.testing import RecordingChannel
from hookline.tools import tool

from .. import forks
from ..tables import each_row

OF_A_TURN = (
    "message:receive", "session_before_start", "session_start", "input", "before_agent_start",
    "model_call", "model_result", "tool_call", "tool_result", "agent_end", "output", "message:send",
    "save_point", "settled", "session_shutdown",
)  # fmt: skip
"""Events of a turn with a tool call, from the message to the end of the session."""


def talks(name):
    async def handler(event, ctx):
        ctx.notify(f"note of {name}")
        said.append((name, await ctx.ask("Proceed?", ["yes", "no"], default="no")))

    said = handler.said = []
    return handler


@pytest.fixture
def calls(app, scripted):
    """A turn with a tool call."""

    def look() -> str:
        return "nothing"

    app.tools.add(tool(registry=None, side_effects="none")(look))
    scripted(Turn("Let me see.", tool_calls=[Call("look", {})]), "Done.", repeat=True)


@pytest.mark.parametrize("name", OF_A_TURN)
async def test_a_handler_of_any_event_of_a_turn_reaches_the_person(app, calls, name):
    channel, handler = RecordingChannel("yes"), talks(name)
    app.hooks.register(name, handler)
    async with app.running(channel):
        await app.process({"content": "hi"}, channel)
    assert handler.said[0] == (name, "yes")
    assert channel.notes[0] == f"note of {name}"
    assert channel.questions[0].text == "Proceed?"
    assert channel.questions[0].choices == ("yes", "no")


async def test_each_message_has_the_channel_that_it_came_by(app, scripted):
    scripted("Hello.", repeat=True)
    app.hooks.register("agent_end", lambda event, ctx: ctx.notify(ctx.session_id))
    channels = {f"chat:{number}": RecordingChannel() for number in range(20)}
    async with app.running(), asyncio.TaskGroup() as group:
        for session_id, channel in channels.items():
            group.create_task(app.process({"content": "hi", "session_id": session_id}, channel))
    assert {name: channel.notes for name, channel in channels.items()} == {n: [n] for n in channels}


async def test_a_subagent_passes_notes_and_questions_up(app, scripted):
    scripted(
        Turn("Counted.", match="count"),
        Turn(match="go", tool_calls=[Call("delegate", {"tasks": ["count"]})]),
        "Done.",
    )
    handler, channel = talks("agent_end"), RecordingChannel("yes", "no")
    app.hooks.register("agent_end", handler)
    async with app.running():
        await app.process({"content": "go"}, channel)
    assert handler.said == [("agent_end", "yes"), ("agent_end", "no")]
    asked = [question.session_id for question in channel.questions]
    assert asked[0].startswith("default:default/")
    assert asked[1] == "default:default"


async def test_a_turn_that_a_plugin_starts_goes_to_the_channel_of_the_app(app, scripted):
    scripted("News.")
    app.hooks.register("agent_end", lambda event, ctx: ctx.notify("x"))
    channel = RecordingChannel()
    async with app.running(channel):
        await app.process({"content": "a file changed"})
    assert channel.notes == ["x"]
    assert [message["content"] for message in channel.sent] == ["News."]


async def test_a_note_arrives_from_a_thread(app, scripted):
    scripted("Hello.")
    here = threading.get_ident()
    where = []

    class Where(Channel):
        def notify(self, note):
            where.append((note.text, threading.get_ident() == here))

    def handler(event, ctx):
        asyncio.get_running_loop()
        thread = threading.Thread(target=ctx.notify, args=["from a thread"])
        thread.start()
        thread.join()

    app.hooks.register("agent_end", handler)
    async with app.running():
        await app.process({"content": "hi"}, Where())
    assert where == [("from a thread", True)]


@pytest.mark.parametrize("kind", ["raises", "raises later"])
async def test_a_channel_that_cannot_show_a_note_does_not_fail_the_hook(app, scripted, caplog, kind):
    scripted("Hello.")

    class Broken(Channel):
        def notify(self, note):
            if kind == "raises":
                raise OSError("gone")
            return self.later()

        async def later(self):
            raise OSError("gone")

    app.hooks.register("agent_end", lambda event, ctx: ctx.notify("x"))
    async with app.running():
        result = await app.process({"content": "hi"}, Broken())
        await asyncio.sleep(0)
    assert result.model_output == "Hello."
    assert "gone" in caplog.text


class Silent(RecordingChannel):
    """Shows questions to people who never answer."""

    async def ask(self, question):
        self.questions.append(question)
        await asyncio.Event().wait()


class Failing(RecordingChannel):
    """Loses the connection while it asks."""

    async def ask(self, question):
        raise ConnectionError("closed")


@pytest.mark.parametrize("channel", [Channel(), RecordingChannel(None), Silent(), Failing()])
@pytest.mark.parametrize("default", ["no", None])
async def test_without_an_answer_the_default_counts(app, scripted, channel, default):
    scripted("Hello.")
    answers = []

    async def handler(event, ctx):
        answers.append(await ctx.ask("Proceed?", ["yes", "no"], default=default, timeout=0.05))

    app.hooks.register("agent_end", handler)
    async with app.running():
        await app.process({"content": "hi"}, channel)
        assert app.approvals.pending() == [], "nobody waits for it any more"
    assert answers == [default]


async def test_a_default_must_be_one_of_the_choices(app):
    with pytest.raises(ValueError, match="'maybe' is not among the choices"):
        await app.context("s").ask("Proceed?", ["yes", "no"], default="maybe")


@each_row(
    ("typed", "choices", "default", "answer"),
    [
        ("yes", ("yes", "no"), None, "yes"),
        (" YES ", ("yes", "no"), None, "yes"),
        ("y", ("yes", "no"), None, "yes"),
        ("", ("yes", "no"), "no", "no"),
        ("", ("yes", "no"), None, None),
        ("maybe", ("yes", "no"), "no", None),
        ("n", ("now", "never"), None, None),
        ("now", ("now", "nowhere"), None, "now"),
        ("in Paris", (), None, "in Paris"),
        ("", (), "here", "here"),
    ],
)
def test_what_a_person_types_is_read_as_one_of_the_choices(typed, choices, default, answer):
    assert Question("Where?", choices, default).read(typed) == answer


async def test_another_process_can_answer_a_question(app, scripted):
    scripted("Hello.")
    answers, channel = [], Silent()

    async def handler(event, ctx):
        answers.append(await ctx.ask("Proceed?", ["yes", "no"], default="no"))

    app.hooks.register("agent_end", handler)
    async with app.running(), asyncio.TaskGroup() as group:
        group.create_task(app.process({"content": "hi"}, channel))
        while not channel.questions:
            await asyncio.sleep(0.001)
        [waiting] = app.approvals.pending("default:default")
        with pytest.raises(Exception, match=r"'perhaps' is no answer .*\[yes/no, default no\]"):
            app.approvals.answer(waiting.id, "perhaps", by="ada")
        app.approvals.answer(waiting.id, "YES", by="ada")
    assert answers == ["yes"]


TURN = """
import asyncio, sys
from pathlib import Path
from hookline.runtime.app import Hookline
from hookline.channel import Channel
from hookline.events import ToolCallEventResult
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn

class Person(Channel):
    async def ask(self, question):
        print("asked", flush=True)
        if sys.argv[2] == "first":
            await asyncio.Event().wait()

async def proceed(event, ctx):
    answer = await ctx.ask("Proceed?", ["yes", "no"], default="no")
    print(answer, flush=True)
    return ToolCallEventResult(block=answer != "yes")

async def main():
    home = Path(sys.argv[1])
    app = Hookline(home=home, workspace=home)
    app.load_hooks(packages=False)
    turns = [Turn(tool_calls=[Call("todo", {})])] if sys.argv[2] == "first" else ["Done."]
    app.models.add(ScriptedModel(turns))
    app.model = "scripted"
    app.hooks.register("tool_call", proceed)
    async with app.running(Person()):
        if sys.argv[2] == "first":
            await app.process({"content": "hi"})
        else:
            print((await app.resume("default:default")).model_output)

asyncio.run(main())
"""


def test_a_question_that_is_answered_while_the_process_is_down_is_not_asked_again(tmp_path):
    read, write = os.pipe()
    with os.fdopen(read) as said:
        process = forks.fork(TURN, tmp_path, "first", files=(0, write, 2))
        os.close(write)
        assert said.readline() == "asked\n"
        process.kill()
        process.wait(60)
    approvals = Approvals(tmp_path / "approvals.db")
    [waiting] = approvals.pending("default:default")
    approvals.answer(waiting.id, "yes", by="ada")
    done = forks.run(TURN, tmp_path, "second")
    assert done.stdout.splitlines() == ["yes", "Done."], done.stderr
    assert approvals.answered(waiting.id) is None, "the hook has the answer; it is not kept"


async def test_an_approval_is_asked_with_the_whole_call(app, scripted):
    def delete(path: str) -> str:
        return f"deleted {path}"

    app.given_policy = Policy(default="auto")
    app.tools.add(tool(registry=None, side_effects="external")(delete))
    scripted(Turn(tool_calls=[Call("delete", {"path": "a" * 5000})]), "Done.")
    channel = RecordingChannel("no, keep it")
    async with app.running():
        await app.process({"content": "hi"}, channel)
        entries = await app.store().entries("default:default")
    [question] = channel.questions
    assert question.is_approval
    assert question.call == f'delete {{"path": "{"a" * 5000}"}}'
    assert question.default == "reject"
    assert "the person says: keep it" in str(entries)


async def test_a_handler_that_is_told_of_a_question_cannot_ask_another(app, scripted):
    scripted("Hello.")
    told, channel = [], RecordingChannel("yes")

    async def bell(event, ctx):
        ctx.notify("ding")
        told.append((event.kind, event.text, await ctx.ask("Heard it?", default="no")))

    app.hooks.register("notification", bell)
    app.hooks.register("agent_end", talks("agent_end"))
    async with app.running():
        await app.process({"content": "hi"}, channel)
    assert told == [("question", "Proceed?", "no")]
    assert sorted(channel.notes) == ["ding", "note of agent_end"]


async def test_leaving_a_session_asks_at_the_channel_of_the_app(app, scripted):
    scripted("Hello.")

    async def handler(event, ctx):
        if await ctx.ask("Leave without saving?", ["yes", "no"]) == "no":
            return SessionBeforeSwitchResult(cancel=True)
        return None

    app.hooks.register("session_before_switch", handler)
    async with app.running(RecordingChannel("no", "yes")):
        await app.process({"content": "hi", "session_id": "a"})
        with pytest.raises(Exception, match="leaving the session was blocked"):
            await app.sessions.new("a")
        await app.sessions.new("a")

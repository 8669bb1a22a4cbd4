"""Whatever a hook stops, the person sees why: in the chat, in `run`, and through the gateway."""

import asyncio
import subprocess
import sys
from dataclasses import fields
from typing import get_args

import pytest

from hookline.agent.compactor import Compacting
from hookline.agent.run import Limits
from hookline.events import BeforeAgentStartEventResult, SessionBeforeCompactResult, UserBashResult
from hookline.hooks import hookimpl
from hookline.hookspecs import Hooks
from hookline.models.script import Call, Turn
from hookline.runtime.user_tools import run_shell
from hookline.serve import Gateway, GatewayChannel
from hookline.testing import RecordingChannel

from .. import commandline
from ..tables import each_row

GATES = [name for name in Hooks().catalog if Hooks()[name].spec.reducer.name == "gate"]


@each_row("name", GATES)
def test_the_result_of_every_gate_has_a_reason(name):
    kinds = Hooks()[name].spec.result
    for kind in get_args(kinds) or (kinds,):
        if kind is not type(None):
            assert "reason" in {field.name for field in fields(kind)}


VETOES = """
from hookline import events

def stop(kind, **how):
    result = getattr(events, kind)
    return lambda event: result(**how, reason=f"no {kind} today")

def once(event):
    if event.text == "stop me":
        return events.InputEventResult("block", reason="no InputEventResult today")

hooks = [
    ("session_before_switch", stop("SessionBeforeSwitchResult", cancel=True)),
    ("session_before_fork", stop("SessionBeforeForkResult", cancel=True)),
    ("session_before_tree", stop("SessionBeforeTreeResult", cancel=True)),
    ("session_before_compact", stop("SessionBeforeCompactResult", cancel=True)),
    ("user_bash", stop("UserBashResult", block=True)),
    ("input", once),
]
"""


@pytest.fixture
def home(tmp_path):
    """A home whose profile vetoes everything."""
    folder = tmp_path / "home" / "profiles" / "default" / "hooks"
    folder.mkdir(parents=True)
    (tmp_path / "script.py").write_text("turns = ['fine']\nrepeat = True\n")
    model = f'model = "scripted:{tmp_path / "script.py"}"\n'
    settings = f'{model}[compaction]\nkeep = 0\n[policy]\ndefault = "allow"\n'
    (tmp_path / "home" / "config.toml").write_text(settings)
    return tmp_path / "home"


@pytest.fixture
def hookline(home, tmp_path, monkeypatch, capsys):
    return commandline.here(home, tmp_path, monkeypatch, capsys)


def veto(home, text=VETOES):
    (home / "profiles" / "default" / "hooks" / "vetoes.py").write_text(text)


def test_the_chat_says_why(home, tmp_path):
    veto(home)
    done = subprocess.run(
        [sys.executable, "-m", "hookline", "chat"],
        input="hi\nthere\n/new\n/fork\n/tree\n/tree 1\n/compact\n!echo ran\nstop me\nstill here\n",
        capture_output=True,
        text=True,
        env=commandline.environment(home),
        cwd=tmp_path,
        check=True,
    )
    said = done.stdout + done.stderr
    assert done.stdout.count("fine") >= 3
    for kind in ("Switch", "Fork", "Tree", "Compact"):
        assert f"no SessionBefore{kind}Result today" in said
    assert "no UserBashResult today" in said
    assert "no InputEventResult today" in said
    assert "\nran" not in said


def test_run_says_why_a_session_is_not_opened(hookline, home):
    veto(
        home,
        "from hookline.events import SessionBeforeStartResult as R\n"
        "hooks = [('session_before_start', lambda event: R(block=True, reason='closed today'))]\n",
    )
    done = hookline("run", "hi")
    assert done.returncode != 0
    assert "closed today" in done.stderr


def test_run_says_why_a_message_is_not_answered(hookline, home):
    veto(home)
    assert "no InputEventResult today" in hookline("run", "stop me").stderr
    assert "no InputEventResult today" in hookline("run", "--json", "stop me").stdout


async def test_the_gateway_says_why(app, scripted):
    class Mailbox(GatewayChannel):
        name = "mail"

        def __init__(self):
            self.got = asyncio.Queue()

        async def send(self, outbound):
            self.got.put_nowait(outbound["content"])
            return True

    class Mail:
        @hookimpl
        def provide_channels(self, message_handler):
            return [box]

    scripted("fine", repeat=True)
    box = Mailbox()
    app.hooks.add(Mail(), name="mail")
    app.hooks.register(
        "session_before_compact", lambda e: SessionBeforeCompactResult(cancel=True, reason="not now")
    )
    app.limits = Limits(compacting=Compacting(keep=0))
    async with asyncio.timeout(30), Gateway(app, enabled=["mail"]).running() as gateway:
        for text in ("hi", "there", "/compact"):
            await gateway.handle({"content": text, "channel": "mail", "chat_id": "ada"})
            said = await box.got.get()
    assert "not now" in said


class TestThePersonsShell:
    async def run(self, app, command="echo real", **options):
        async with app.running():
            outcome = await run_shell(app, "s", command, **options)
            messages = await app.store().entries("s", kinds={"message"})
        return outcome, [entry.payload["message"]["content"] for entry in messages]

    async def test_a_hook_takes_a_command_over(self, app):
        app.hooks.register("user_bash", lambda event: UserBashResult(output=f"<{event.command}>"))
        app.tools.remove("shell")  # nothing of the kind runs
        outcome, told = await self.run(app)
        assert (outcome.content, outcome.is_error) == ("<echo real>", False)
        assert told == ["I ran `echo real` myself:\n\n<echo real>"]

    async def test_a_failure_and_a_command_that_the_agent_is_not_to_see(self, app):
        app.hooks.register("user_bash", lambda event: UserBashResult(output="", is_error=True))
        outcome, told = await self.run(app, exclude_from_context=True)
        assert (outcome.content, outcome.is_error) == ("", True)
        assert told == []

    async def test_a_hook_replaces_the_command_and_the_next_sees_it(self, app):
        seen = []
        app.hooks.register("user_bash", lambda event: UserBashResult(command="echo other"))
        app.hooks.register("user_bash", lambda event: seen.append(event.command))
        outcome, told = await self.run(app)
        assert "other" in outcome.content
        assert seen == ["echo other"]
        assert told[0].startswith("I ran `echo other` myself:")

    async def test_one_that_only_looks_changes_nothing(self, app):
        app.hooks.register("user_bash", lambda event: None)
        outcome, _ = await self.run(app)
        assert "real" in outcome.content


class TestHiddenTools:
    @pytest.fixture
    def hide(self, app):
        """Hide a tool in turns whose prompt says `secret`."""

        def without_shell(event):
            if "secret" not in event.prompt:
                return None
            return BeforeAgentStartEventResult(tools=[n for n in event.tools if n != "shell"])

        app.hooks.register("before_agent_start", without_shell)

    @pytest.mark.usefixtures("hide")
    async def test_a_hook_hides_a_tool_for_one_turn(self, app, scripted):
        model = scripted("one", "two", "three")
        async with app.running():
            for text in ("hi", "secret", "hi"):
                await app.process({"content": text, "session_id": "s"})
        offered = ["shell" in {tool["name"] for tool in r.tools} for r in model.requests]
        assert offered == [True, False, True]
        assert all("read_file" in {t["name"] for t in r.tools} for r in model.requests)

    @pytest.mark.usefixtures("hide")
    async def test_a_hidden_tool_cannot_be_called_either(self, app, scripted):
        call = Turn(tool_calls=[Call("shell", {"command": "touch made"})])
        model = scripted(call, "oh")
        async with app.running():
            await app.process({"content": "secret"})
        assert "shell is not among the tools of main" in model.requests[1].messages[-1]["content"]
        assert not (app.workspace / "made").exists()

    @pytest.mark.usefixtures("hide")
    async def test_a_subagent_of_that_turn_has_no_more(self, app, scripted):
        model = scripted(
            Turn(tool_calls=[Call("delegate", {"tasks": ["look"]})], match="^secret"),
            Turn("looked", match="look$"),
            Turn("done", match="^secret"),
        )
        async with app.running():
            await app.process({"content": "secret"})
        assert len(model.requests) == 3
        assert all("shell" not in {t["name"] for t in r.tools} for r in model.requests)

    async def test_each_handler_sees_what_is_left_and_none_can_add(self, app, scripted):
        seen = []

        def only_two(event):
            return BeforeAgentStartEventResult(tools=["read_file", "list_files", "made_up"])

        def one_less(event):
            seen.append(event.tools)
            return BeforeAgentStartEventResult(tools=["read_file", "shell"])

        app.hooks.register("before_agent_start", only_two)
        app.hooks.register("before_agent_start", one_less)
        app.tools.remove("shell")
        model = scripted("ok")
        async with app.running():
            await app.process({"content": "hi"})
        assert seen == [["read_file", "list_files", "made_up"]]
        assert [tool["name"] for tool in model.requests[0].tools] == ["read_file"]

    @pytest.mark.usefixtures("hide")
    async def test_a_turn_that_is_resumed_does_not_get_it_back(self, app, scripted):
        model = scripted(Turn(tool_calls=[Call("list_files", {})]), "one", "two")
        reached, never = asyncio.Event(), asyncio.Event()

        async def hang(event):
            if len(model.requests) == 1:
                reached.set()
                await never.wait()

        off = app.hooks.register("turn_end", hang)
        async with app.running():
            turn = asyncio.create_task(app.process({"content": "secret", "session_id": "s"}))
            await reached.wait()
            await app.park("s")
            await turn
            off()
            await app.resume("s", RecordingChannel())
        assert len(model.requests) == 2
        assert all("shell" not in {t["name"] for t in r.tools} for r in model.requests)

"""With redaction on, no path writes a secret into any file of the home, journals included."""

import json
from collections.abc import Awaitable, Callable

import pytest

from hookline.app import Hookline
from hookline.catalog.identity import Identity
from hookline.catalog.parts import TextPart
from hookline.cli.chat.history import ChatHistory
from hookline.events import ToolCallEventResult
from hookline.inbox import SQLiteInbox
from hookline.models import Call, ModelFailed, ScriptedModel, Turn
from hookline.person import call_tool, run_shell
from hookline.policy.approvals import Approvals
from hookline.tape import import_
from hookline.tools import tool
from hookline.tools.registry import Registry

USER = Identity(channel="terminal")
SECRET = "ghp_" + "a1B2" * 9
QUIET = "hunter2-but-longer"
"""A secret that only its name gives away."""
CONFIG = """
[redaction]
enabled = true
[audit]
enabled = true
payloads = true
[trace]
level = "full"
[policy]
default = "allow"
"""


@pytest.fixture
def app(tmp_path):
    home, workspace = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    workspace.mkdir()
    (home / "config.toml").write_text(CONFIG)
    app = Hookline(home=home, workspace=workspace)
    app.load_hooks(packages=False)
    return app


def scripted(app: Hookline, *turns) -> None:
    model = ScriptedModel(list(turns))
    app.models.add(model)
    app.model = model.name


def adds(app: Hookline, function) -> None:
    app.tools.add(tool(side_effects="read", registry=Registry())(function))


async def say(app: Hookline, text: str = "go", **more) -> None:
    await app.process({"content": text, "session_id": "s", "sender_id": "ada", **more})


async def message(app):
    scripted(app, "Hello.")
    await say(app, f"my token is {SECRET} and password: {QUIET}")


async def answer(app):
    scripted(app, f"It is {SECRET}.")
    await say(app)


async def answer_in_pieces(app):
    scripted(app, Turn(f"Look: {SECRET} there", chunk=16))
    await say(app)
    scripted(app, Turn(reasoning=f"I have {SECRET}", text="Done.", chunk=16))
    await say(app)


async def tool_result(app):
    def tell() -> str:
        """Tell."""
        return f"API_KEY={QUIET}\n{SECRET}"

    adds(app, tell)
    scripted(app, Turn(tool_calls=[Call("tell", {})]), "Done.")
    await say(app)


async def tool_result_in_parts(app):
    def tell() -> list:
        """Tell."""
        return [TextPart("one"), TextPart(SECRET)]

    adds(app, tell)
    scripted(app, Turn(tool_calls=[Call("tell", {})]), "Done.")
    await say(app)


async def tool_error(app):
    def tell() -> str:
        """Tell."""
        raise RuntimeError(f"cannot log in with {SECRET}")

    adds(app, tell)
    scripted(app, Turn(tool_calls=[Call("tell", {})]), "Done.")
    await say(app)


async def arguments(app):
    def tell(password: str, note: str) -> str:
        """Tell.

        password: A password.
        note: A note.
        """
        return "ok"

    adds(app, tell)
    scripted(app, Turn(tool_calls=[Call("tell", {"password": QUIET, "note": SECRET})]), "Done.")
    await say(app)


async def wrong_arguments(app):
    def tell(n: int) -> str:
        """Tell.

        n: A number.
        """
        return "ok"

    adds(app, tell)
    scripted(app, Turn(tool_calls=[Call("tell", {"n": SECRET, "token": QUIET})]), "Done.")
    await say(app)


async def unknown_tool(app):
    scripted(app, Turn(tool_calls=[Call("nothing", {"note": SECRET})]), "Done.")
    await say(app)


async def denied_call(app):
    def tell(note: str) -> str:
        """Tell.

        note: A note.
        """
        return note

    adds(app, tell)
    app.hooks.register(
        "tool_call", lambda event: ToolCallEventResult(block=True, reason=f"no {SECRET} here")
    )
    scripted(app, Turn(tool_calls=[Call("tell", {"note": "x"})]), "Done.")
    await say(app)


async def long_output(app):
    def tell() -> str:
        """Tell."""
        return "line\n" * 20_000 + f"{SECRET}\n" + "line\n" * 20_000

    adds(app, tell)
    scripted(app, Turn(tool_calls=[Call("tell", {})]), "Done.")
    await say(app)


async def long_shell_output(app):
    script = f"for i in $(seq 9000); do echo line $i; done; echo {SECRET}; seq 9000"
    scripted(app, Turn(tool_calls=[Call("shell", {"command": script})]), "Done.")
    await say(app)


async def users_shell_command(app):
    scripted(app, "Hello.")
    await run_shell(
        app, "s", f"echo {SECRET}; echo password: {QUIET}", identity=Identity(channel="terminal")
    )
    await say(app)


async def users_excluded_shell_command(app):
    scripted(app, "Hello.")
    await run_shell(
        app, "s", f"echo {SECRET}", exclude_from_context=True, identity=Identity(channel="terminal")
    )


async def users_long_shell_command(app):
    scripted(app, "Hello.")
    await run_shell(
        app, "s", f"seq 20000; echo {SECRET}; seq 20000", identity=Identity(channel="terminal")
    )


async def users_tool_call(app):
    (app.workspace / ".env").write_text(f"DB_PASSWORD={QUIET}\nTOKEN={SECRET}\n")
    scripted(app, "Hello.")
    await call_tool(
        app, "s", "read_file", {"path": ".env"}, source="command", identity=Identity(channel="terminal")
    )


async def session_name(app):
    scripted(app, "Hello.")
    await say(app)
    tape = await app.tape("s")
    await tape.rename(SECRET)


async def label(app):
    scripted(app, "Hello.")
    await say(app)
    await app.sessions.label("s", SECRET)


async def handoff(app):
    scripted(app, "Hello.", f"Use {SECRET}.")
    await say(app)
    await app.sessions.handoff("s", "next", state={"token": QUIET, "note": SECRET})


async def compaction(app):
    scripted(app, "Hello " * 50, "Hello " * 50, f"Summary: {SECRET}", "Done.")
    await say(app)
    await say(app)
    await app.sessions.compact("s", f"keep {SECRET}")


async def summary_of_a_branch(app):
    scripted(app, "One.", "Two.", f"Summary: {SECRET}")
    await say(app)
    first = (await app.store().entries("s"))[1].id
    await say(app, "more")
    await app.sessions.navigate("s", first, summarise=True)


async def subagent(app):
    scripted(app, f"The key is {SECRET}.")
    await app.sessions.open("s")
    await app.subagents.run(f"find {SECRET}", parent="s")


async def failing_model(app):
    class Failing(ScriptedModel):
        async def stream(self, request):
            raise ModelFailed(f"401: bad key {SECRET}")
            yield

    model = Failing([])
    app.models.add(model)
    app.model = model.name
    with pytest.raises(Exception, match="401"):
        await say(app)


async def failing_plugin(app):
    def broken(event):
        raise RuntimeError(f"no {SECRET}")

    app.hooks.register("turn_end", broken)
    scripted(app, "Hello.")
    await say(app)


async def system_prompt(app):
    app.hooks.register("system_prompt", lambda **_: f"The token is {SECRET}.")
    scripted(app, "Hello.")
    await say(app)


async def state(app):
    tape = await app.tape("s")
    await tape.append("state", {"api_keys": [QUIET], "note": SECRET})


async def kind_of_a_plugin(app):
    tape = await app.tape("s")
    await tape.append("of-a-plugin", {"deep": {"er": [SECRET], "password": QUIET}}, meta={"x": SECRET})


async def sender(app):
    scripted(app, "Hello.")
    await say(app, "hi", subject=f"about {SECRET}", chat_id="c", channel="web")


async def imported_tape(app):
    lines = [
        json.dumps({"hookline_tape": 1, "sessions": {"t": 1}}),
        json.dumps(
            {
                "id": "1M7HC0VKS00088PRWADH", "session_id": "t", "parent_id": None, "kind": "note",
                "payload": {"text": SECRET}, "meta": {}, "time": 1.0,
            }
        ),
    ]  # fmt: skip
    await import_(app.store(), lines)


async def history(app):
    ChatHistory(app.home / "chat_history", app.safeguards.redactor.text).store_string(f"!echo {SECRET}")


async def inbox(app):
    box = SQLiteInbox(app.store())
    envelope = {"content": SECRET, "channel": "web", "chat_id": "1", "message_id": "m"}
    await box.accept(envelope, "me")
    await box.settle(envelope, "done")


async def approval(app):
    approvals: Approvals = app.safeguards.approvals
    for number, reply in enumerate(("yes", "no", None)):
        name = approvals.ask(
            {
                "tool": "tell", "arguments": {"note": SECRET, "password": QUIET}, "session_id": "s",
                "call_id": f"c{number}", "workspace": "/", "sessions": ["s"],
            }
        )  # fmt: skip
        if reply is None:
            approvals.close_question(name)
        else:
            approvals.answer(name, reply, by="ada")


Path = Callable[[Hookline], Awaitable[None]]
PATHS: list[Path] = [
    message,
    answer,
    answer_in_pieces,
    tool_result,
    tool_result_in_parts,
    tool_error,
    arguments,
    wrong_arguments,
    unknown_tool,
    denied_call,
    long_output,
    long_shell_output,
    users_shell_command,
    users_excluded_shell_command,
    users_long_shell_command,
    users_tool_call,
    session_name,
    label,
    handoff,
    compaction,
    summary_of_a_branch,
    subagent,
    failing_model,
    failing_plugin,
    system_prompt,
    state,
    kind_of_a_plugin,
    sender,
    imported_tape,
    history,
    inbox,
    approval,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
async def test_no_file_of_the_home_has_the_secret(app, path: Path):
    async with app.running():
        await path(app)
    held = {
        str(file.relative_to(app.home)): file.read_bytes()
        for file in app.home.rglob("*")
        if file.is_file() and file.name != "config.toml"
    }
    assert held
    for secret in (SECRET[:12], SECRET[-12:], QUIET):
        assert [name for name, data in held.items() if secret.encode() in data] == []

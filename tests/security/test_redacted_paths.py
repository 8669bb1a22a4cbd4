"""With redaction on, no path writes a secret into a file of the home, a database or a log."""

import asyncio
import gc
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.chat.history import ChatHistory
from hookline.events import ToolCallEventResult
from hookline.models import Call, ModelFailed, ScriptedModel, Turn
from hookline.policy.approvals import Approvals
from hookline.runtime.app import Hookline
from hookline.runtime.inbox import Inbox
from hookline.runtime.user_tools import call_tool, run_shell
from hookline.serve.logs import JsonLines
from hookline.tape import import_
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.types import Identity, TextPart

from .. import postgres
from ..commandline import here
from ..effort import EFFORT
from ..models.hostile import asking
from .gateways import ADA, House, bearer, frame, house

pytestmark = pytest.mark.slow

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


SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "tell", "description": "Tell SECRET.",
                             "inputSchema": {"type": "object", "properties": {}}}]}
    elif asked["method"] == "tools/call":
        print("about to tell SECRET", file=sys.stderr, flush=True)
        if MODE == "dies":
            print("not MCP: SECRET", flush=True)
            sys.exit("SECRET was wrong")
        if MODE == "fails":
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"],
                              "error": {"code": -1, "message": "SECRET is no key"}}), flush=True)
            continue
        resource = {"uri": "x://SECRET", "text": "SECRET"}
        result = {"content": [{"type": "text", "text": "key: SECRET"},
                              {"type": "resource", "resource": resource}],
                  "structuredContent": {"password": "QUIET", "deep": ["SECRET"]}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def server(mode: str) -> Callable[[Path], str]:
    """The settings of an MCP server that tells, fails or dies, for a test that has its own."""

    def config(folder: Path) -> str:
        script = folder / f"{mode}.py"
        text = SERVER.replace("SECRET", SECRET).replace("QUIET", QUIET).replace("MODE", repr(mode))
        script.write_text(text)
        program = f'command = "{sys.executable}"\nargs = ["{script}"]\nsandbox = "off"\n'
        return f'[mcp.servers.{mode}]\n{program}side_effects = "read"\n'

    return config


def needs(config: Callable[[Path], str]) -> Callable[[Any], Any]:
    """Mark a path with the settings that it needs."""

    def mark(path: Any) -> Any:
        path.config = config
        return path

    return mark


@pytest.fixture
def app(request, tmp_path):
    home, workspace = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    workspace.mkdir()
    path, store = (request.node.callspec.params[name] for name in ("path", "store"))
    config = CONFIG + getattr(path, "config", lambda _: "")(tmp_path)
    schema = postgres.new_schema()
    if store == "PostgreSQL":
        config += f'[tape]\nurl = "{postgres.url()}"\nschema = "{schema}"\n'
    (home / "config.toml").write_text(config)
    app = Hookline(home=home, workspace=workspace)
    app.load_hooks(packages=False)
    yield app
    if store == "PostgreSQL":
        postgres.drop(schema)


@pytest.fixture
def logged():
    """Everything that is logged, as text and as JSON, with tracebacks."""
    out, root = StringIO(), logging.getLogger()
    handlers = [logging.StreamHandler(out), logging.StreamHandler(out)]
    handlers[1].setFormatter(JsonLines())
    levels = {root: logging.DEBUG, logging.getLogger("websockets"): logging.WARNING}
    levels[logging.getLogger("uvicorn")] = logging.WARNING  # as the gateway has it
    before = {logger: logger.level for logger in levels}
    for logger, level in levels.items():
        logger.setLevel(level)
    for handler in handlers:
        root.addHandler(handler)
    yield out
    for handler in handlers:
        root.removeHandler(handler)
    for logger, level in before.items():
        logger.setLevel(level)


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
    box = Inbox(app.store())
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


async def through_mcp(app, server: str):
    await app.hooks.pm.get_plugin("mcp").ready()
    scripted(app, Turn(tool_calls=[Call(f"{server}.tell", {})]), "Done.")
    await say(app)


@needs(server("tells"))
async def mcp_result(app):
    await through_mcp(app, "tells")


@needs(server("fails"))
async def mcp_error(app):
    await through_mcp(app, "fails")


@needs(server("dies"))
async def mcp_last_words(app):
    await through_mcp(app, "dies")


def hook_command(folder: Path) -> str:
    return f"""
[[hooks.commands.PreToolUse]]
[[hooks.commands.PreToolUse.hooks]]
type = "command"
command = "cat >&2; echo {SECRET} is wrong >&2; exit 3"
[[hooks.commands.UserPromptSubmit]]
[[hooks.commands.UserPromptSubmit.hooks]]
type = "command"
command = "echo the token is {SECRET}"
"""


@needs(hook_command)
async def command_hooks(app):
    scripted(app, Turn(tool_calls=[Call("list_files", {})]), "Done.")
    await say(app)


async def logger(app):
    log = logging.getLogger("a.plugin")
    log.warning("cannot log in with %s", SECRET)
    log.error("password: %(password)s", {"password": QUIET})
    log.warning(f"x {SECRET} {'y' * 20_000} {SECRET}")
    try:
        raise RuntimeError(f"no {SECRET}")
    except RuntimeError:
        log.exception("failed")


async def forgotten_task(app):
    async def fail():
        raise RuntimeError(f"no {SECRET}")

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    del task
    gc.collect()  # now its error, which was never retrieved, is logged


async def background_job(app):
    scripted(app, Turn(tool_calls=[Call("shell_start", {"command": f"echo {SECRET}"})]), "Done.")
    await say(app)


async def provider_that_echoes_the_key(app):
    async def answer(exchange):
        text = f"Incorrect API key provided: {SECRET}. Your password: {QUIET}"
        await exchange.reply("401 No", json.dumps({"error": {"message": text}}))

    async with asking(answer, api_key=SECRET) as (model, _):
        app.models.add(model)
        app.model = model.name
        with pytest.raises(ModelFailed) as failed:
            await say(app)
        assert SECRET not in str(failed.value)


async def tool_name(app):
    scripted(app, Turn(tool_calls=[Call(SECRET, {})]), "Done.")
    await say(app)


async def live_tail(app):
    from hookline.observe.inspector.tail import Filter, Tail

    tail = Tail(app, asyncio.Event())
    shown = []

    async def watch():
        async for event in tail.events(Filter()):
            shown.append(event)  # noqa: PERF401  (each is needed at once)

    watching = asyncio.create_task(watch())
    while not shown:
        await asyncio.sleep(0)
    await message(app)
    while not any("turn_end" in event for event in shown):
        await asyncio.sleep(0.01)
    watching.cancel()
    assert SECRET not in "".join(shown)
    assert QUIET not in "".join(shown)


PATHS: list[Any] = [
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
    mcp_result,
    mcp_error,
    mcp_last_words,
    command_hooks,
    logger,
    forgotten_task,
    background_job,
    provider_that_echoes_the_key,
    tool_name,
    live_tail,
]
SHARED = PATHS if EFFORT > 1 else [
    message, tool_result, arguments, session_name, label, handoff, compaction, summary_of_a_branch,
    subagent, state, kind_of_a_plugin, sender, imported_tape, approval, live_tail,
]  # fmt: skip
"""Those that write rows of their own kind, which two stores do in two ways."""
CASES = [
    *(("SQLite", path) for path in PATHS),
    *(("PostgreSQL", path) for path in SHARED if path is not inbox),  # workers have a queue instead
]
Route = Callable[[Hookline], Awaitable[None]]


@pytest.mark.parametrize(
    ("store", "path"), CASES, ids=[f"{store}-{path.__name__}" for store, path in CASES]
)
async def test_no_file_row_or_log_line_has_the_secret(app, store, path: Route, logged, capsys):
    async with app.running():
        await path(app)
    check(app, logged.getvalue() + "".join(capsys.readouterr()))


def check(app: Hookline, said: str) -> None:
    """Look for the secrets everywhere that something is kept."""
    held = {
        str(file.relative_to(app.home)): file.read_bytes()
        for file in app.home.rglob("*")
        if file.is_file() and file.name != "config.toml"
    }
    schema = app.config.get("tape.schema")
    if schema is not None:
        tables = f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'"
        for (table,) in postgres.fetch(tables):
            rows = postgres.fetch(f'SELECT t::text FROM "{schema}"."{table}" AS t')
            held[f"table {table}"] = repr(rows).encode()
    assert held
    held["the log and the output"] = said.encode()
    for secret in (SECRET[:12], SECRET[-12:], QUIET):
        assert [name for name, data in held.items() if secret.encode() in data] == []


# --- the gateway --------------------------------------------------------------------------------


async def http_message(served: House):
    await served.say(ADA, "a", f"my token is {SECRET}, password: {QUIET}")


async def completion(served: House):
    said = [{"role": "user", "content": f"password: {QUIET} {SECRET}"}]
    body = {"model": "hookline", "messages": said}
    assert (await served.ask("POST", "/v1/chat/completions", bearer(ADA), body)).status == 200


async def broken_body(served: House):
    for body in (f'{{"text": "{SECRET}', f'{{"text": {{"password": "{QUIET}"}}}}', f"[{SECRET!r}]"):
        path = "/api/sessions/a/messages"
        refused = await served.ask("POST", path, bearer(ADA), body.encode())
        assert refused.status in (400, 422)
        assert SECRET not in refused.text


async def wrong_token(served: House):
    for headers in (bearer(SECRET), {"Cookie": f"token={SECRET}"}, {"X-Api-Key": SECRET}):
        assert (await served.ask("GET", "/api/sessions", headers)).status == 401
    assert (await served.ask("GET", f"/api/sessions?token={SECRET}")).status == 401


async def websocket_message(served: House):
    async with served.ws("a", ADA) as socket:
        await socket.send(json.dumps({"type": "message", "text": f"{SECRET} password: {QUIET}"}))
        await frame(socket, "end")


async def broken_frame(served: House):
    async with served.ws("a", ADA) as socket:
        for sent in (f'{{"type": "message", "text": "{SECRET}', f'{{"type": "{SECRET}"}}', SECRET):
            await socket.send(sent)
            assert SECRET not in json.dumps(await frame(socket, "error"))


async def failing_turn(served: House):
    class Failing(ScriptedModel):
        async def stream(self, request):
            raise ModelFailed(f"401: the provider does not know the key {SECRET}")
            yield

    model = Failing([])
    served.app.models.add(model)
    served.app.model = model.name
    answer = await served.say(ADA, "a")
    assert "does not know the key" in answer.text
    assert SECRET not in answer.text


async def waiting_message(served: House):
    """A message whose turn is cut off: the tape has it, redacted, and the inbox until it is done."""
    await served.say(ADA, "a", SECRET)
    await served.say(ADA, "a", f"again {SECRET}")


VISITS = [
    http_message, completion, broken_body, wrong_token, websocket_message, broken_frame, failing_turn,
    waiting_message,
]  # fmt: skip


@pytest.mark.parametrize("visit", VISITS, ids=lambda visit: visit.__name__)
async def test_nothing_that_comes_through_the_gateway_leaves_a_secret(tmp_path, visit, logged, capsys):
    async with house(tmp_path, config=CONFIG) as served:
        await visit(served)
    check(served.app, logged.getvalue() + "".join(capsys.readouterr()))


# --- the command line ---------------------------------------------------------------------------

FAILING = f"def fail(event):\n    raise RuntimeError('password: {QUIET} {SECRET}')\n"
BROKEN = {
    "load": f"raise RuntimeError('cannot log in with {SECRET}')\n",
    "turn": f"{FAILING}hooks = [('turn_end', fail)]\n",
    "gate": f"{FAILING}hooks = [('tool_call', fail)]\n",
}
FAILURES = {
    "a hook file that does not load": ("load", ["run", "hi"]),
    "a hook that fails": ("turn", ["run", "hi"]),
    "a gate that fails": ("gate", ["run", "hi"]),
    "an unknown model": ("", ["run", "hi", "--model", f"nobody:{SECRET}"]),
    "a script that is not there": ("", ["run", "hi", "--model", f"scripted:{SECRET}.toml"]),
    "a setting that cannot be": ("", ["--set", f"limits.steps={SECRET}", "run", "hi"]),
    "an unknown session": ("", ["tape", "show", SECRET]),
    "JSON": ("", ["run", "hi", "--json", "--model", f"nobody:{SECRET}"]),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_error_message_of_a_command_has_the_secret(failure, tmp_path, monkeypatch, capsys, caplog):
    hook, arguments = FAILURES[failure]
    home, workspace = tmp_path / "home", tmp_path / "work"
    workspace.mkdir()
    hooks = home / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    script = f"""
[[turns]]
[[turns.tool_calls]]
name = "read_file"
arguments = {{ path = "{SECRET}" }}
[[turns]]
text = "Done."
"""
    (home / "turns.toml").write_text(script)
    (home / "config.toml").write_text(f'model = "scripted:{home}/turns.toml"\n')
    if hook:
        (hooks / f"{hook}.py").write_text(BROKEN[hook])
    ended = here(home, workspace, monkeypatch, capsys)(*arguments)
    said = ended.stdout + ended.stderr + caplog.text
    assert said
    assert not hook or "RuntimeError" in said
    for secret in (SECRET, QUIET):
        assert secret not in said


def test_no_traceback_of_a_crash_has_the_secret(tmp_path, monkeypatch, capsys):
    def broken(*_, **__):
        raise ZeroDivisionError(f"password: {QUIET} {SECRET}")

    monkeypatch.setattr("hookline.runtime.app.Hookline.load_hooks", broken)
    ended = here(tmp_path, tmp_path, monkeypatch, capsys)("doctor")
    assert ended.returncode == 1
    assert "ZeroDivisionError" in ended.stderr
    assert SECRET not in ended.stderr
    assert QUIET not in ended.stderr

"""No way around a gate: a deny-all, in turn as each kind of gate, and every way to reach a tool.

Denied means not run: the tools count, and the counts stay at zero. Where nobody denies, each of these
ways does reach the tool, or the test would prove nothing.
"""

import ast
import asyncio
import json
import sqlite3
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest

import hookline
from hookline import Hookline
from hookline.events import ToolCallEventResult
from hookline.ext.triggers import TriggerEvent, Triggers
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.observe.replay import ReplayApp, replay
from hookline.policy import Policy
from hookline.runtime.user_tools import call_tool, run_shell
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.server import serve
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.tools.tool import Tool

HERE = "default:default"
SERVER = Path(__file__).parent.parent / "mcp" / "hostile.py"
RECORD = "record"
"""Where tools of other files and processes note that they ran, below the test's folder."""


@pytest.fixture
def runs(app):
    """How often each tool ran; `shell` is replaced by one that counts."""
    ran = []

    @tool(side_effects="none", registry=Registry(), name="act")
    def act(word: str = "") -> str:
        ran.append("act")
        return "acted"

    @tool(side_effects="none", registry=Registry(), name="shell")
    def shell(command: str) -> str:
        ran.append("shell")
        return "ran"

    app.tools.add(act)
    app.tools.add(shell, replace=True)
    return ran


# --- the gates ---


def nobody(app, tmp_path):
    """Nothing denies: what is asked for runs."""


def a_tool_call_handler(app, tmp_path):
    app.hooks.register("tool_call", lambda e: deny(e.tool_name), guard=True)


def deny(name):
    return None if name == "delegate" else ToolCallEventResult(block=True, reason="denied")


def authorize_action(app, tmp_path):
    app.hooks.register("authorize_action", lambda action: action["tool"] == "delegate")


def a_pack(app, tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "pack.toml").write_text('id = "nothing"\nversion = "1.0.0"\n')
    rule = 'forbid (principal, action, resource) unless { resource == Hookline::Tool::"delegate" };'
    (folder / "all.cedar").write_text(f'@id("nothing")\n@reason("the pack denies it")\n{rule}\n')
    app.runner.judge = Policy.load({"default": "allow", "packs": [str(folder)]}).judge


def the_floor(app, tmp_path):
    rules = {"tools": ["act", "shell", "filed", "far.*"]}
    app.runner.judge = Policy.load({"default": "allow", "floor": {"deny": rules}}).judge


GATES = [nobody, a_tool_call_handler, authorize_action, a_pack, the_floor]


# --- the ways to a tool ---


async def by_the_model(app, scripted, tmp_path, gate):
    scripted(Turn(tool_calls=[Call("act")]), "done")
    async with app.running():
        await app.process({"content": "go"})


async def in_a_parallel_batch(app, scripted, tmp_path, gate):
    scripted(Turn(tool_calls=[Call("act"), Call("act"), Call("shell", {"command": "x"})]), "done")
    async with app.running():
        await app.process({"content": "go"})


async def by_a_slash_command(app, scripted, tmp_path, gate):
    async with app.running():
        await call_tool(app, HERE, "act", {})


async def by_the_persons_shell(app, scripted, tmp_path, gate):
    async with app.running():
        await run_shell(app, HERE, "x")


async def by_a_subagent(app, scripted, tmp_path, gate):
    scripted(
        Turn(tool_calls=[Call("delegate", {"tasks": ["inner"]})], match="go"),
        Turn("done", match="go"),
        Turn(tool_calls=[Call("act")], match="inner"),
        Turn("done", match="inner"),
    )
    async with app.running():
        await app.process({"content": "go"})


async def by_a_subagents_subagent(app, scripted, tmp_path, gate):
    scripted(
        Turn(tool_calls=[Call("delegate", {"tasks": ["middle"]})], match="go"),
        Turn("done", match="go"),
        Turn(tool_calls=[Call("delegate", {"tasks": ["inner"]})], match="middle"),
        Turn("done", match="middle"),
        Turn(tool_calls=[Call("act")], match="inner"),
        Turn("done", match="inner"),
    )
    async with app.running():
        await app.process({"content": "go"})


async def in_a_resumed_turn(app, scripted, tmp_path, gate):
    """The process died between the model's call and its admission."""
    left = tmp_path / "left"
    left.mkdir()

    class Stop(Exception):
        pass

    def crash(event):
        with (
            closing(sqlite3.connect(app.home / "tape.db")) as now,
            closing(sqlite3.connect(left / "tape.db")) as then,
        ):
            now.backup(then)
        raise Stop

    before = Hookline(home=app.home, workspace=app.workspace, policy=Policy(default="deny"))
    before.load_hooks(packages=False)
    before.tools.add(app.tools.get("act"))
    before.hooks.register("tool_execution_start", crash)
    for each in (before, app):
        each.models.add(ScriptedModel([Turn(tool_calls=[Call("act")]), "done"]))
        each.model = "scripted"
    async with before.running():
        await before.process({"content": "go"})
    app.home = left
    async with app.running():
        assert await app.resume(HERE) is not None


async def by_a_repeated_call_next(app, scripted, tmp_path, gate):
    """A handler around the call makes it twice: the second is authorised like the first."""
    calls = []

    async def twice(call, call_next):
        calls.append(call.name)
        await call_next()
        return await call_next()

    app.hooks.register("around_tool_call", twice)
    await by_the_model(app, scripted, tmp_path, gate)


async def by_a_trigger(app, scripted, tmp_path, gate):
    settings(app, '[triggers.bell]\ntype = "queue"\nmessage = "go"\npoll = 0.01\n')
    scripted(Turn(tool_calls=[Call("act")]), "done")
    triggers = Triggers(app)
    async with app.running():
        await triggers.start()
        try:
            settled = await (await triggers.emit(TriggerEvent("bell", {}))).settled()
        finally:
            await triggers.stop()
    assert settled.state == "done"


async def by_an_mcp_servers_tool(app, scripted, tmp_path, gate):
    command = [json.dumps(str(part)) for part in (sys.executable, SERVER, tmp_path / RECORD)]
    # it notes calls beside the workspace
    args = f"command = {command[0]}\nargs = [{', '.join(command[1:])}]\nsandbox = 'off'"
    settings(app, f"[mcp.servers.far]\n{args}\n")
    scripted(Turn(tool_calls=[Call("far.fine")]), "done")
    async with app.running():
        await app.hooks.pm.get_plugin("mcp").ready()
        await app.process({"content": "go"})


async def by_a_hook_files_tool(app, scripted, tmp_path, gate):
    folder = app.home / "profiles" / "default" / "hooks"
    folder.mkdir(parents=True)
    (folder / "filed.py").write_text(
        "from pathlib import Path\nfrom hookline import tool\n"
        "@tool(side_effects='none', registry=None)\ndef filed() -> str:\n"
        f"    Path({str(tmp_path / RECORD)!r}).write_text('call filed')\n    return 'x'\n"
        "hooks = [('register_tools', lambda: [filed])]\n"
    )
    scripted(Turn(tool_calls=[Call("filed")]), "done")
    async with app.running():
        await app.process({"content": "go"})


async def over_http(app, scripted, tmp_path, gate):
    scripted(Turn(tool_calls=[Call("act")]), "done")
    async with (
        served(app) as http,
        http.post("api/sessions/web:a/messages", json={"text": "go"}) as got,
    ):
        assert (await got.json())["outcome"] == "answered"


async def over_the_completions_of_openai(app, scripted, tmp_path, gate):
    scripted(Turn(tool_calls=[Call("act")]), "done")
    body = {"model": "hookline", "messages": [{"role": "user", "content": "go"}]}
    async with served(app) as http, http.post("v1/chat/completions", json=body) as got:
        assert got.status == 200


async def over_a_websocket(app, scripted, tmp_path, gate):
    scripted(Turn(tool_calls=[Call("act")]), "done")
    async with served(app) as http, http.ws_connect("ws?session=web:a") as socket:
        await socket.send_json({"type": "message", "id": "m", "text": "go"})
        while (await socket.receive_json())["type"] != "end":
            pass


async def past_a_command_hook_that_allows(app, scripted, tmp_path, gate):
    allows = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    command = f"echo '{json.dumps({'hookSpecificOutput': allows})}'"
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    await by_the_model(app, scripted, tmp_path, gate)


async def past_an_interceptor_that_allows(app, scripted, tmp_path, gate):
    settings(app, '[agent_hooks]\ninterceptors = ["tests.interceptors.policies:allow"]\n')
    await by_the_model(app, scripted, tmp_path, gate)


async def past_a_person_who_approves(app, scripted, tmp_path, gate):
    """A yes to a question is no yes to what a gate denies."""
    app.hooks.register("tool_call", lambda event: ToolCallEventResult(ask=True, reason="really?"))
    app.hooks.register("resolve_approval", lambda request: "approve")
    await by_the_model(app, scripted, tmp_path, gate)


def settings(app, text):
    """Write the user's settings."""
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text(text)
    app.config.reload()


@asynccontextmanager
async def served(app):
    """The app's gateway on a loopback port, and a client of it."""
    gateway = Gateway(app, settings=GatewaySettings(port=0, token="t" * 20))
    started = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(gateway, started=started.set_result))
    await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    try:
        bearer = {"authorization": f"Bearer {'t' * 20}"}
        async with aiohttp.ClientSession(await started, headers=bearer) as http:
            yield http
    finally:
        gateway.leave()
        await serving


WAYS = [
    by_the_model, in_a_parallel_batch, by_a_slash_command, by_the_persons_shell, by_a_subagent,
    by_a_subagents_subagent, in_a_resumed_turn, by_a_repeated_call_next, by_a_trigger,
    by_an_mcp_servers_tool, by_a_hook_files_tool, over_http, over_the_completions_of_openai,
    over_a_websocket, past_a_command_hook_that_allows, past_an_interceptor_that_allows,
    past_a_person_who_approves,
]  # fmt: skip


def noted(tmp_path):
    """The calls that tools of other files and processes noted."""
    record = tmp_path / RECORD
    lines = record.read_text().splitlines() if record.exists() else []
    return [line for line in lines if line.startswith("call")]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
async def test_no_way_leads_around_a_gate(app, scripted, runs, tmp_path, gate, way):
    gate(app, tmp_path)
    await way(app, scripted, tmp_path, gate)
    assert bool(runs or noted(tmp_path)) == (gate is nobody)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
async def test_a_replay_is_gated_like_a_run_and_reaches_no_tool_at_all(
    app, scripted, runs, tmp_path, gate
):
    """What was recorded ran; by a replay nothing runs, whether somebody denies or not."""
    await by_the_model(app, scripted, tmp_path, nobody)
    assert runs == ["act"]
    made = []

    def by_a_replay() -> ReplayApp:
        again = ReplayApp.like(app)
        again.load_hooks(packages=False)
        again.user_home = tmp_path
        for name in ("act", "shell"):
            again.tools.add(app.tools.get(name), replace=True)
        place = tmp_path / f"replay{len(made)}"
        place.mkdir()
        gate(again, place)
        made.append(again)
        return again

    async with app.running():
        comparison = await replay(app.store(), HERE, by_a_replay)
    (call,) = comparison.pairs[0].replayed.calls.values()
    assert runs == ["act"]
    assert call.ran == (gate is nobody)
    assert comparison.same == (gate is nobody)


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "from a spec"])
async def test_a_rewrite_after_the_gates_has_nothing_to_hold_on_to(app, scripted, raw):
    """What was authorised is what runs, and what the tape says ran."""
    seen = []

    def act(words: list[str]) -> str:
        seen.append(list(words))
        return "acted"

    made = tool(side_effects="none", registry=Registry())(act)
    app.tools.add(Tool.from_spec(made.spec, act) if raw else made)

    def meddle(action):
        action["arguments"]["words"].append("more")
        return True

    async def around(call, call_next):
        call.arguments["words"].append("inside")
        call.arguments["words"] = ["other"]
        return await call_next()

    app.hooks.register("authorize_action", meddle)
    app.hooks.register("around_tool_call", around)
    scripted(Turn(tool_calls=[Call("act", {"words": ["one"]})]), "done")
    async with app.running():
        await app.process({"content": "go"})
        (kept,) = await app.store().entries(HERE, kinds=["tool_call"])
    assert seen == [["one"]]
    assert kept.payload["arguments"] == {"words": ["one"]}


# --- only the runner can reach a tool's function ---


def uses(name: str) -> list[str]:
    """Where an attribute of that name is read in the package."""
    root = Path(hookline.__file__).parent
    return [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in sorted(root.rglob("*.py"))
        if name in (source := path.read_text())  # to parse the rest takes a second
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr == name
    ]


def test_a_tools_function_is_invoked_in_one_place_and_that_is_the_runner():
    reached = [place for place in uses("_invoke") if not place.startswith("tools/tool.py")]
    assert {place.partition(":")[0] for place in reached} == {"tools/runner.py"}


def test_nothing_but_the_tool_and_its_description_reads_the_function():
    holders = {place.partition(":")[0] for place in uses("_function")}
    assert {path for path in holders if not path.startswith("hooks/")} <= {
        "tools/tool.py", "tools/rawschema.py", "tools/signature.py",
    }  # fmt: skip

"""Every kind of child runs in the app's sandbox, with its own environment, and ends with it."""

import asyncio
import json
import re
import sys
import time

import pytest

from hookline.events import ToolCallEvent
from hookline.ext.tools.jobs import close_jobs, find_job
from hookline.ext.tools.list_files import list_files
from hookline.ext.tools.search_files import search_files
from hookline.ext.tools.shell import shell
from hookline.runtime.app import Hookline
from hookline.tools.context import ToolContext
from hookline.tools.tool import Tool

PROBE = "cat {secret} 2>/dev/null; touch {outside} 2>/dev/null; env"


@pytest.fixture
def app(tmp_path, monkeypatch) -> Hookline:
    for name in ("work", "home", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "token").write_text("SECRET-TOKEN")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "SECRET-KEY")
    monkeypatch.setenv("AWS_PROFILE", "work")
    made = Hookline(home=tmp_path / "home", workspace=tmp_path / "work")
    if not made.sandbox.active:
        pytest.skip(made.sandbox.reason)
    return made


@pytest.fixture
def probe(app, tmp_path) -> str:
    """A command that reads Hookline's home, writes outside, and shows its environment."""
    return PROBE.format(secret=app.home / "token", outside=tmp_path / "elsewhere" / "file")


@pytest.fixture
def nothing_outside(tmp_path):
    yield
    assert list((tmp_path / "elsewhere").iterdir()) == []


pytestmark = pytest.mark.usefixtures("nothing_outside")


def context(app: Hookline) -> ToolContext:
    return ToolContext(session_id="s", workspace=app.workspace, app=app)


async def call(tool: Tool, where: ToolContext, **arguments) -> str:
    return await tool._invoke(tool.validate(arguments), where, print)


async def run_shell(app: Hookline, command: str, **more) -> str:
    return await call(shell, context(app), command=command, **more)


async def test_a_shell_command(app, probe):
    said = await run_shell(app, f"{probe}; touch inside")
    assert "SECRET" not in said
    assert "PATH=" in said
    assert (app.workspace / "inside").exists()


async def test_a_shell_command_that_the_sandbox_stops_says_so(app):
    said = await run_shell(app, "touch /usr/x")
    assert "[sandbox (workspace)" in said
    assert "[exit code 1]" in said


async def test_a_variable_that_the_user_allows_reaches_shell_commands(tmp_path, app):
    assert "AWS_PROFILE" not in await run_shell(app, "env")
    allowed = {"sandbox": {"environment": ["AWS_*"]}}
    more = Hookline(home=app.home, workspace=app.workspace, overrides=allowed)
    assert "AWS_PROFILE=work" in await run_shell(more, "env")


async def test_a_job(app, probe):
    name = re.search(r"job-\d+", await run_shell(app, probe, background=True))[0]
    job = find_job("s", name)
    try:
        await asyncio.to_thread(job.wait, time.monotonic() + 30)
        said = job.output.read(0, 100_000)[1].decode()
    finally:
        await asyncio.to_thread(close_jobs, "s")
    assert "PATH=" in said
    assert "SECRET" not in said


@pytest.mark.parametrize("own", [{}, {"sandbox": "workspace"}, {"sandbox": "read-only"}])
async def test_a_command_hook(app, probe, tmp_path, own):
    user = tmp_path / "user"
    (user / ".claude").mkdir(parents=True)
    script = tmp_path / "script.sh"
    script.write_text(f"({probe}) > {app.workspace}/said\nexit 0\n")
    hook = {"type": "command", "command": f"sh {script}", **own}
    settings = {"hooks": {"PreToolUse": [{"matcher": "", "hooks": [hook]}]}}
    (user / ".claude" / "settings.json").write_text(json.dumps(settings))
    if not own:
        (app.home / "config.toml").write_text('[sandbox]\ncommand_hooks = "workspace"\n')
    fresh = Hookline(home=app.home, workspace=app.workspace)
    fresh.load_hooks(packages=False)
    fresh.user_home = user
    async with fresh.running():
        verdict = await fresh.hooks["tool_call"].fire(
            ToolCallEvent("1", "shell", {"command": "x"}), fresh.context("s")
        )
    assert verdict.allowed
    if own == {"sandbox": "read-only"}:
        assert not (app.workspace / "said").exists()
        return
    said = (app.workspace / "said").read_text()
    assert "CLAUDE_PROJECT_DIR=" in said
    assert "PYTHONSAFEPATH=1" in said
    assert "SECRET" not in said


@pytest.mark.parametrize("place", [".claude/hooks/check.sh", ".claude/check.sh", "bin/check.sh"])
async def test_the_script_of_a_users_hook_is_found_and_nothing_beside_it(
    place, app, tmp_path, monkeypatch
):
    user = tmp_path / "user"
    monkeypatch.setenv("HOME", str(user))
    script = user / place
    script.parent.mkdir(parents=True, exist_ok=True)
    (user / ".claude").mkdir(exist_ok=True)
    (user / ".claude" / ".credentials.json").write_text("SECRET")
    script.write_text(f"cat {user}/.claude/.credentials.json; echo it ran >&2; exit 2\n")
    hook = {"type": "command", "command": "sh ~/" + place}
    settings = {"hooks": {"PreToolUse": [{"matcher": "", "hooks": [hook]}]}}
    (user / ".claude" / "settings.json").write_text(json.dumps(settings))
    fresh = Hookline(home=app.home, workspace=app.workspace)
    fresh.load_hooks(packages=False)
    fresh.user_home = user
    async with fresh.running():
        verdict = await fresh.hooks["tool_call"].fire(
            ToolCallEvent("1", "shell", {"command": "x"}), fresh.context("s")
        )
    assert not verdict.allowed
    assert "it ran" in str(verdict)
    assert "SECRET" not in str(verdict)


SERVER = """
import os, sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("probe")

@server.tool()
def look(secret: str, outside: str) -> str:
    said = [os.getcwd(), *sorted(os.environ), *os.environ.values(), *sys.path]
    for attempt in (lambda: open(secret).read(), lambda: open(outside, "w").close() or "WRITTEN"):
        try:
            said.append(attempt())
        except OSError as error:
            said.append(str(error))
    return "|".join(said)

server.run()
"""


@pytest.mark.parametrize(
    ("all_servers", "own", "target", "written"),
    [
        ('mcp = "workspace"', "", "elsewhere/x", False),
        ("", 'sandbox = "workspace"', "elsewhere/x", False),
        ("", 'sandbox = "workspace"', "work/x", True),
        ("", 'sandbox = "read-only"\nnetwork = []', "work/x", False),
        ('mcp = "read-only"', 'sandbox = "workspace"', "work/x", True),
    ],
)
async def test_a_server(app, tmp_path, all_servers, own, target, written):
    (app.workspace / "server.py").write_text(SERVER)
    (app.home / "config.toml").write_text(
        f'[policy]\ndefault = "allow"\n[sandbox]\n{all_servers}\n[mcp.servers.probe]\n{own}\n'
        f"command = {json.dumps(sys.executable)}\n"
        f"args = [{json.dumps(str(app.workspace / 'server.py'))}]\n"
        'env = { OWN = "for-this-server" }\n'
    )
    fresh = Hookline(home=app.home, workspace=app.workspace)
    fresh.load_hooks(packages=False)
    plugin = fresh.hooks.pm.get_plugin("mcp")
    async with fresh.running():
        await plugin.ready()
        connection = plugin.connections["probe"]
        assert connection.state == "connected", connection.reason
        arguments = {"secret": str(app.home / "token"), "outside": str(tmp_path / target)}
        said = str(await connection.call("look", arguments, print))
    assert "for-this-server" in said
    assert "SECRET" not in said
    assert ("WRITTEN" in said) == written


async def test_the_search_and_the_list(app):
    (app.workspace / "file.txt").write_text("needle\n")
    found = await call(search_files, context(app), pattern="needle")
    assert "file.txt:1: needle" in found
    assert await call(list_files, context(app)) == "file.txt"


async def test_a_search_outside_the_workspace_still_finds(app, tmp_path):
    place = tmp_path / "more"
    place.mkdir()
    (place / "file.txt").write_text("needle\n")
    reaching = ToolContext(session_id="s", workspace=app.workspace, app=app, allowed=(place,))
    assert "needle" in await call(search_files, reaching, pattern="needle", path=str(place))


async def test_outside_the_sandbox_the_environment_is_still_an_allow_list(app, tmp_path):
    said = await run_shell(app, f"env; touch {tmp_path}/free", outside_sandbox=True)
    assert "SECRET" not in said
    assert (tmp_path / "free").exists()


async def test_without_a_sandbox_the_environment_is_still_an_allow_list(app, tmp_path):
    off = {"sandbox": {"enabled": False}}
    said = await run_shell(Hookline(home=app.home, workspace=app.workspace, overrides=off), "env")
    assert "SECRET" not in said
    assert "PATH=" in said

"""What a trusted project brings: unclear commands run in the sandbox only."""

import json
import sys

import pytest

from hookline.events import ToolCallEvent
from hookline.plugins.project import project_items
from hookline.plugins.trust import Trust
from hookline.runtime.app import Hookline

UNCLEAR_HOOKS = [
    'sh -c "$(cat tool)"',
    "cat tool | sh",
    "eval `cat tool`",
    "find . -name tool -exec sh {} +",
    "env sh tool",
    "xargs -a names sh",
    "T=tool; sh $T",
    "make -f tool.mk",
]
PROBE = "sh -c 'cat {secret}; touch {outside}; env' > said 2>&1 || true\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("work", "home", "elsewhere", "user"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "token").write_text("SECRET-TOKEN")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "SECRET-KEY")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    probe = PROBE.format(secret=tmp_path / "home" / "token", outside=tmp_path / "elsewhere" / "x")
    work = tmp_path / "work"
    (work / "tool").write_text(probe)
    (work / "tool.mk").write_text("all:\n\t@sh tool\n")
    (work / "names").write_text("tool\n")
    return tmp_path


def trusted(place, work=None) -> None:
    work = work or place / "work"
    items = project_items(work)
    assert items
    Trust(place / "home").grant(items)


def user_settings(place, **sandbox) -> None:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in sandbox.items())
    (place / "home" / "config.toml").write_text(
        f'[policy]\ndefault = "allow"\n[sandbox]\nrequired = false\n{lines}'
    )


def settings_file(work, *hooks) -> None:
    (work / ".claude").mkdir(exist_ok=True)
    groups = [{"matcher": "", "hooks": [{"type": "command", **hook} for hook in hooks]}]
    (work / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": groups}}))


async def fired(place, work=None):
    app = Hookline(home=place / "home", workspace=work or place / "work")
    app.load_hooks(packages=False)
    async with app.running():
        event = ToolCallEvent("1", "shell", {"command": "x"})
        return await app.hooks["tool_call"].fire(event, app.context("s"))


def is_confined(place, said: str) -> None:
    assert "PATH=" in said
    assert "SECRET" not in said
    assert [*(place / "elsewhere").iterdir()] == []


def needs_sandbox(place) -> None:
    sandbox = Hookline(home=place / "home", workspace=place / "work").sandbox
    if not sandbox.active:
        pytest.skip(sandbox.reason)


@pytest.mark.parametrize("profile", ["open", "off"])
@pytest.mark.parametrize("line", UNCLEAR_HOOKS)
async def test_an_unclear_hook_runs_in_the_workspace_profile_also_if_hooks_may_do_more(
    line, profile, place
):
    needs_sandbox(place)
    user_settings(place, command_hooks=profile)
    settings_file(place / "work", {"command": line})
    trusted(place)
    await fired(place)
    is_confined(place, (place / "work" / "said").read_text())


@pytest.mark.parametrize("line", UNCLEAR_HOOKS)
async def test_without_a_sandbox_an_unclear_hook_does_not_run(line, place):
    user_settings(place, enabled=False)
    settings_file(place / "work", {"command": line})
    trusted(place)
    await fired(place)
    assert not (place / "work" / "said").exists()


@pytest.mark.parametrize("name", ["a: b", "a: hooks.PreToolUse[1].hooks[1]", "x ", "[1]: "])
async def test_the_name_of_the_folder_does_not_make_an_unclear_hook_clear(name, place):
    user_settings(place, enabled=False)
    work = place / name
    (place / "work").rename(work)
    settings_file(work, {"command": 'sh -c "$(cat tool)"'})
    trusted(place, work)
    await fired(place, work)
    assert not (work / "said").exists()


async def test_a_hook_whose_files_are_listed_runs_without_a_sandbox(place):
    user_settings(place, enabled=False)
    settings_file(place / "work", {"command": 'sh -c "$(cat tool)"', "files": ["tool"]})
    trusted(place)
    await fired(place)
    assert (place / "work" / "said").exists()


SERVER = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("probe")

@server.tool()
def look(secret: str, outside: str) -> str:
    said = [*sorted(os.environ), *os.environ.values()]
    for attempt in (lambda: open(secret).read(), lambda: open(outside, "w").close() or "WRITTEN"):
        try:
            said.append(attempt())
        except OSError as error:
            said.append(str(error))
    return "|".join(said)

server.run()
"""


def server_of(place, extra: str = "") -> None:
    (place / "work" / "server.py").write_text(SERVER)
    (place / "work" / ".hookline").mkdir()
    (place / "work" / ".hookline" / "config.toml").write_text(
        f"[mcp.servers.probe]\ncommand = {json.dumps(sys.executable)}\n"
        f'args = ["-c", "exec(open(\'server.py\').read())"]\n{extra}'
    )
    trusted(place)


@pytest.mark.parametrize("profile", ["open", "off"])
async def test_an_unclear_server_runs_in_the_workspace_profile(profile, place):
    needs_sandbox(place)
    user_settings(place, mcp=profile)
    server_of(place)
    app = Hookline(home=place / "home", workspace=place / "work")
    app.load_hooks(packages=False)
    plugin = app.hooks.pm.get_plugin("mcp")
    async with app.running():
        await plugin.ready()
        connection = plugin.connections["probe"]
        assert connection.state == "connected", connection.reason
        secret, outside = str(place / "home" / "token"), str(place / "elsewhere" / "x")
        said = str(await connection.call("look", {"secret": secret, "outside": outside}, print))
    assert "PATH" in said
    assert "SECRET" not in said
    assert "WRITTEN" not in said


async def test_without_a_sandbox_an_unclear_server_does_not_start(place):
    user_settings(place, enabled=False)
    server_of(place)
    app = Hookline(home=place / "home", workspace=place / "work")
    app.load_hooks(packages=False)
    plugin = app.hooks.pm.get_plugin("mcp")
    async with app.running():
        await plugin.ready()
        connection = plugin.connections["probe"]
        assert connection.state != "connected"
        assert "runs in the sandbox only, and none is active" in str(connection.reason)


@pytest.mark.parametrize(
    "more",
    [{"async": True}, {"sandbox": "read-only"}, {"network": []}, {"allowedEnvVars": ["X"]}, {}],
    ids=str,
)
@pytest.mark.parametrize("on_failure", ["deny", "allow"])
async def test_a_projects_hook_does_not_take_the_place_of_the_users_own(place, more, on_failure):
    """Both have the same command, and one command runs once; the user's guard must be the one."""
    guard = {"command": "echo denied by the guard >&2; exit 2"}
    settings_file(place / "user", guard)
    settings_file(place / "work", {**guard, **more, "on_failure": on_failure})
    trusted(place)
    verdict = await fired(place)
    assert verdict.denied
    assert "denied by the guard" in verdict.reason

"""Which servers there are: settings, trust, names, and what is left out."""

import sys
import tomllib
from pathlib import Path

import pytest

from hookline import tool
from hookline.ext.mcp import McpError, McpServer
from hookline.ext.mcp.settings import ServerSettings
from hookline.ext.mcp.tools import effects_of
from hookline.plugins.project import project_items
from hookline.tools.registry import Registry

from .conftest import brought, call, python, table


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "mcp.servers.x: needs either 'command' (a program) or 'url' (a service), and not both"),
        ({"command": "a", "url": "http://b"}, "and not both"),
        ({"comand": "a"}, "mcp.servers.x.comand: unknown key 'comand'; did you mean 'command'?"),
        ({"command": "a", "headers": {"b": "c"}}, "'headers' belong to a 'url'"),
        ({"url": "http://a", "args": ["b"]}, "'args', 'env' and 'cwd' belong to a 'command'"),
        ({"url": "file:///a"}, "mcp.servers.x.url"),
        ({"command": "a", "timeout": 0}, "mcp.servers.x.timeout: must be greater than 0"),
        ({"command": "a", "side_effects": "little"}, "mcp.servers.x.side_effects"),
        ({"command": "a", "tools": {"alow": []}}, "mcp.servers.x.tools.alow: unknown key"),
    ],
)
def test_wrong_settings_are_told_with_their_place(settings, told):
    with pytest.raises(McpError) as error:
        McpServer("x", settings).settings()
    assert told in str(error.value)


def test_a_name_that_could_be_no_namespace_is_refused():
    with pytest.raises(McpError, match="letters, digits"):
        McpServer("a b", {"command": "a"}).settings()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"command": "no-such-program"}, "there is no program 'no-such-program'; is it installed?"),
        (python("-c", "", cwd="nowhere"), "nowhere is not a folder"),
        ({"command": "a", "env": {"KEY": "${NO_SUCH_VARIABLE}"}}, "NO_SUCH_VARIABLE"),
        ({"comand": "a"}, "unknown key 'comand'"),
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot be reached at http://127.0.0.1:9/mcp"),
    ],
)
async def test_a_server_that_does_not_start_is_reported_and_the_rest_works(servers, settings, told):
    news = []
    servers.write(x=settings, fine=servers.hostile())
    app = servers.app()
    app.hooks.pm.get_plugin("mcp").tell = news.append
    async with servers.running(app):
        [failure] = app.failures
        assert (await call(app, "fine.fine")).content == "fine"
    assert str(failure).startswith("mcp.x: connecting failed: the MCP server 'x' ")
    assert told in str(failure)
    assert told in news[0]


async def test_a_program_gets_the_variables_it_is_given_and_not_all_there_are(servers, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "hidden")
    monkeypatch.setenv("MY_KEY", "given")
    code = (
        "import os; e = os.environ.get; raise SystemExit(repr((e('MY_SECRET'), e('KEY'), os.getcwd())))"
    )
    (servers.workspace / "sub").mkdir()
    async with servers.running(x=python("-c", code, env={"KEY": "${MY_KEY}"}, cwd="sub")) as app:
        [failure] = app.failures
    assert f"(None, 'given', {str(servers.workspace / 'sub')!r})" in str(failure)


async def test_without_servers_the_package_is_not_even_imported(servers):
    import subprocess

    code = (
        "import asyncio, sys, pathlib\nfrom hookline.runtime.app import Hookline\n"
        "async def main():\n"
        f"    app = Hookline(home=pathlib.Path({str(servers.home)!r}))\n"
        "    app.load_hooks(packages=False)\n"
        "    async with app.running():\n        app.tools.names()\n"
        "asyncio.run(main())\nassert 'mcp' not in sys.modules, 'imported'\n"
        "assert 'hookline.ext.mcp.connection' not in sys.modules, 'imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_a_disabled_server_is_left_alone(servers):
    async with servers.running(bad=servers.hostile(enabled=False)) as app:
        assert brought(app) == []
    assert servers.recorded("pid") == []


async def test_tools_are_chosen_and_named_as_the_settings_say(servers):
    chosen = servers.hostile(tools={"allow": ["f*", "die", "steps"], "deny": ["die"]}, prefix="")
    async with servers.running(bad=chosen) as app:
        assert brought(app) == ["fine", "steps"]
        assert (await call(app, "fine")).content == "fine"
        assert (await call(app, "die")).ran is False


async def test_a_server_takes_no_name_from_anybody(servers):
    @tool(name="fine", registry=Registry())
    def fine() -> str:
        return "mine"

    servers.write(bad=servers.hostile(prefix="", tools={"allow": ["fine", "steps"]}))
    app = servers.app()
    app.tools.add(fine)
    async with servers.running(app):
        assert (await call(app, "fine")).content == "mine"
        assert brought(app) == ["steps"]
        [problem] = app.hooks.pm.get_plugin("mcp").connections["bad"].problems
    assert "'fine' is left out: two tools are named 'fine'" in problem
    assert "fine" in app.tools


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        (None, "external"),
        ({}, "external"),
        ({"readOnlyHint": True}, "read"),
        ({"readOnlyHint": True, "openWorldHint": True}, "external"),
        ({"destructiveHint": False, "openWorldHint": False}, "write"),
        ({"destructiveHint": True, "openWorldHint": False}, "external"),
        ({"destructiveHint": False}, "external"),
    ],
)
def test_hints_say_what_a_tool_does_and_the_settings_know_better(hints, effect):
    from mcp.types import Tool

    listed = Tool.model_validate({"name": "a", "inputSchema": {"type": "object"}, "annotations": hints})
    assert effects_of(ServerSettings(command="x"), listed) == effect
    assert effects_of(ServerSettings(command="x", side_effects="write"), listed) == "write"
    by_name = ServerSettings(command="x", side_effects={"a": "none", "b": "read"})
    assert effects_of(by_name, listed) == "none"


class TestProject:
    """A project's servers do nothing until they are trusted."""

    async def test_they_run_once_they_are_trusted_and_not_when_they_change(self, servers):
        servers.write()
        path = servers.project(table("theirs", files=[], **servers.hostile()))
        app = servers.app()
        async with servers.running(app):
            assert brought(app) == []
            [server] = app.hooks.pm.get_plugin("mcp").servers()
            assert (server.trusted, server.enabled) == (False, False)
        [item] = app.hook_files.inert()
        assert item.runs[0].startswith("mcp.servers.theirs: ")
        assert servers.recorded("pid") == []

        app.trust.grant([item])
        async with servers.running() as app:
            assert (await call(app, "theirs.fine")).content == "fine"
        assert len(servers.recorded("pid")) == 1

        path.write_text(path.read_text() + "timeout = 5\n")
        async with servers.running() as app:
            assert brought(app) == []

    async def test_they_are_ignored_without_the_project(self, servers):
        servers.write()
        servers.project(table("theirs", **servers.hostile()))
        app = servers.app(project=False)
        assert app.hooks.pm.get_plugin("mcp").servers() == []

    async def test_they_cannot_change_a_server_of_the_user(self, servers):
        servers.write(mine=servers.hostile(tools={"allow": ["fine"]}))
        servers.project(table("mine", args=["-c", "open('evil', 'w')"]))
        async with servers.running() as app:
            assert brought(app) == ["mine.fine"]
        assert not (servers.workspace / "evil").exists()
        assert project_items(servers.workspace, app.config.own_values()) == []
        [line] = app.config.inert_lines()
        assert line.endswith("mcp.servers.mine.args is inert: your own settings configure this server")

    async def test_what_was_read_before_it_was_trusted_does_not_run(self, servers):
        servers.write()
        path = servers.project(table("theirs", **python("-c", "open('evil', 'w')")))
        app = servers.app()
        assert app.config.written_in_project("mcp")  # read now, and changed before it is trusted
        path.write_text(table("theirs", **servers.hostile()))
        app.trust.grant(project_items(servers.workspace))
        async with servers.running(app):
            assert brought(app) == []
        assert not (servers.workspace / "evil").exists()


def test_the_example_is_a_good_configuration(monkeypatch):
    monkeypatch.setenv("TICKETS_KEY", "k")
    example = Path(__file__).parents[2] / "examples" / "mcp.toml"
    found = tomllib.loads(example.read_text())["mcp"]["servers"]
    settings = {name: McpServer(name, table).settings() for name, table in found.items()}
    assert settings["tickets"].headers == {"Authorization": "Bearer k"}
    assert [settings["git"].tools.takes(name) for name in ("git_log", "git_reset")] == [True, False]

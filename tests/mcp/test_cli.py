"""`hookline mcp`, and what other commands make of servers."""

import json
import os

import pytest
from typer.testing import CliRunner

from hookline.hooks import HooklineError

from .. import forks
from .conftest import table


@pytest.fixture
def hookline(servers):
    """The commands in this process, which has the `mcp` package loaded already."""

    def run(*arguments):
        return CliRunner().invoke(servers.app().create_cli_app(), arguments)

    return run


def test_the_list_starts_nothing_and_shows_no_secret(servers, hookline):
    web = {"url": "http://ada:s3cret@127.0.0.1:9/", "headers": {"Authorization": "s3cret"}}
    servers.write(bad=servers.hostile(), web=web, off=servers.hostile(enabled=False))
    servers.project(table("theirs", command="uvx"))
    done = hookline("mcp", "list", "--json")
    assert done.exit_code == 0, done.stderr
    states = {server["name"]: server["state"] for server in json.loads(done.stdout)}
    assert states == {"bad": "enabled", "web": "enabled", "off": "disabled", "theirs": "not trusted"}
    plain = hookline("mcp", "list").stdout
    assert "theirs  not trusted  uvx  (project)" in plain
    assert "s3cret" not in done.stdout + plain
    assert servers.recorded("pid") == []


def test_tools_and_check_connect_and_tell_by_the_exit_code(servers, hookline):
    servers.write(bad=servers.hostile(tools={"allow": ["fine"]}), none={"command": "no-such-program"})
    one = hookline("mcp", "tools", "bad")
    assert (one.exit_code, one.stdout) == (0, "bad.fine  [external]  Does fine.\n")
    both = hookline("mcp", "check")
    assert both.exit_code == 1
    assert both.stdout.splitlines() == [
        "ok  bad: 1 tools (hostile 1.0)",
        "!!  none: cannot start: there is no program 'no-such-program'; is it installed?",
    ]
    unknown = hookline("mcp", "check", "bat")
    assert isinstance(unknown.exception, HooklineError)
    assert "no server is named 'bat'; did you mean 'bad'?" in str(unknown.exception)


def test_doctor_shows_the_servers_and_the_tape_needs_none(servers, hookline):
    servers.write(none={"command": "no-such-program"}, bad=servers.hostile(tools={"allow": ["fine"]}))
    done = hookline("doctor")
    assert done.exit_code == 1
    assert "!!  mcp       none: cannot start" in done.stdout
    assert "ok  mcp       bad: 1 tools (hostile 1.0)" in done.stdout
    started = len(servers.recorded("pid"))
    assert started == 1
    assert hookline("tape", "list").exit_code == 0
    assert len(servers.recorded("pid")) == started


def test_a_call_to_a_server_can_be_explained(servers, hookline):
    servers.write(bad=servers.hostile())
    done = hookline("policy", "explain", "bad.fine", "{}")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("allow  bad.fine {}")
    assert servers.recorded("call") == []


def test_a_piped_chat_says_which_server_failed(servers):
    servers.write(none={"command": "no-such-program"})
    script = servers.folder / "script.toml"
    script.write_text('[[turns]]\ntext = "One."\n[[turns]]\ntext = "Two."\n')
    env = {**os.environ, "HOOKLINE_HOME": str(servers.home), "NO_COLOR": "1", "COLUMNS": "200"}
    done = forks.run(
        forks.MAIN, "chat", "--model", f"scripted:{script}",
        stdin="hello\nagain\n", cwd=servers.workspace, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "there is no program 'no-such-program'" in done.stdout + done.stderr
    assert "Two." in done.stdout

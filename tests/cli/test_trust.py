# ruff: noqa: E501 -- tables
"""`hookline trust`, and what the other commands make of a project that is not trusted."""

import json
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hookline.hooks import HooklineError
from hookline.runtime.app import Hookline
from hookline.text.printable import visible

from .. import commandline, forks
from ..terminals import Child

HOOK = """
def begin(event):
    print("the hook ran")

hooks = [("agent_start", begin)]
"""


@pytest.fixture
def workspace(tmp_path) -> Path:
    folder = tmp_path / "work"
    (folder / ".hookline" / "hooks").mkdir(parents=True)
    (folder / ".hookline" / "hooks" / "a.py").write_text(HOOK)
    (folder / ".hookline" / "config.toml").write_text(
        '[mcp.servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n'
    )
    skill = folder / ".agents" / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review\ndescription: Review it.\n---\nRun it.")
    (skill / "run.sh").write_text("true")
    return folder


@pytest.fixture
def environ(tmp_path) -> dict[str, str]:
    user = {"HOME": str(tmp_path / "user"), "HOOKLINE_HOME": str(tmp_path / "home")}
    return {**os.environ, **user, "NO_COLOR": "1", "COLUMNS": "200"}


@pytest.fixture
def hookline(workspace, environ, tmp_path, monkeypatch, capsys):
    here = commandline.here(tmp_path / "home", workspace, monkeypatch, capsys)
    return partial(here, HOME=environ["HOME"], COLUMNS="200")


@pytest.fixture
def chat(workspace, environ, script):
    """A chat reads from a file descriptor, and has a process of its own."""

    def run(stdin):
        asked = ("chat", "--model", script)
        return forks.run(forks.MAIN, *asked, stdin=stdin, cwd=workspace, env=environ)

    return run


@pytest.fixture
def terminal(workspace, environ):
    """Starts a command on a terminal of 24 lines and 80 columns."""

    def start(*arguments):
        env = {**environ, "COLUMNS": "80", "LINES": "24", "TERM": "dumb"}
        return Child(forks.MAIN, *arguments, cwd=workspace, env=env, dimensions=(24, 80))

    return start


@pytest.fixture
def trust(workspace, tmp_path):
    """The command in this process, as often as a test likes; what `main` does with errors included."""

    def run(*arguments, stdin=""):
        app = Hookline(home=tmp_path / "home", workspace=workspace)
        app.load_hooks(packages=False)
        done = CliRunner().invoke(app.create_cli_app(), ["trust", *map(str, arguments)], input=stdin)
        refused = isinstance(done.exception, HooklineError)
        stderr = done.stderr + (str(done.exception) if refused else "")
        return subprocess.CompletedProcess([], 2 if refused else done.exit_code, done.stdout, stderr)

    return run


@pytest.fixture
def script(tmp_path) -> str:
    (tmp_path / "script.toml").write_text('[[turns]]\ntext = "Hello."\n')
    return f"scripted:{tmp_path / 'script.toml'}"


class TestTrust:
    def test_it_shows_what_would_run_and_trusts_with_yes(self, trust, workspace):
        full = trust("--full", "--yes").stdout
        assert full.count("  sha256 ") == 3
        assert "only in the sandbox: mcp.servers.time: uvx may run files" in full
        trust("--revoke")
        lines = trust().stdout.splitlines()
        assert "  hook file .hookline/hooks/a.py" in lines
        assert "  config    .hookline/config.toml" in lines
        assert "            mcp.servers.time: uvx mcp-server-time" in lines
        assert "  skill     .agents/skills/review" in lines
        assert "            run.sh" in lines
        done = trust("--yes")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "trusted: 3")
        assert "everything that would run is trusted" in trust().stdout

    def test_a_changed_file_is_shown_as_changed(self, trust, workspace):
        trust("--yes")
        (workspace / ".hookline" / "hooks" / "a.py").write_text(HOOK + "# more")
        done = trust("--yes")
        assert ".hookline/hooks/a.py (changed)" in done.stdout
        assert "trusted: 1" in done.stdout

    def test_where_nobody_can_be_asked_nothing_is_trusted(self, trust):
        done = trust(stdin="y\n")
        assert done.returncode == 2
        assert "there is no terminal to ask on; run `hookline trust --yes`" in done.stderr
        assert trust("--list").stdout == "nothing is trusted\n"

    @pytest.mark.parametrize(("answer", "said"), [("n", "nothing was trusted"), ("y", "trusted: 3")])
    def test_a_person_is_asked(self, terminal, answer, said):
        child = terminal("trust")
        child.expect_exact("Trust it? What is trusted runs with your rights. [y/N]")
        child.sendline(answer)
        child.expect_exact(said)
        child.close()
        assert child.exitstatus == 0

    def test_trust_is_listed_and_revoked(self, trust, workspace):
        trust("--yes")
        listed = trust("--list").stdout
        assert listed.startswith(f"project {workspace}\n")
        assert ".hookline/hooks/a.py" in listed
        assert "no longer trusted: 3" in trust("--revoke").stdout
        assert trust("--list").stdout == "nothing is trusted\n"
        again = trust("--revoke")
        assert (again.returncode, "nothing of" in again.stderr) == (2, True)

    def test_another_project_is_named_by_its_path(self, trust, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        assert "nothing here needs trust" in trust(other).stdout
        done = trust(tmp_path / "gone")
        assert (done.returncode, "is not a folder" in done.stderr) == (2, True)

    def test_names_cannot_play_tricks_on_the_terminal(self, trust, workspace):
        (workspace / ".hookline" / "hooks" / "\x1b[2Jx.py").write_text(HOOK)
        done = trust("--yes")
        assert "\x1b" not in done.stdout
        assert "\\u001b[2Jx.py" in done.stdout

    def test_a_link_out_of_the_project_is_told_and_not_trusted(self, trust, workspace, tmp_path):
        (tmp_path / "outside.py").write_text(HOOK)
        (workspace / ".hookline" / "hooks" / "b.py").symlink_to(tmp_path / "outside.py")
        done = trust("--yes")
        assert "left out" in done.stderr
        assert "leads out of the project" in done.stderr
        assert "b.py" not in done.stdout

    def test_a_broken_record_is_one_line_and_exit_code_2(self, hookline, tmp_path):
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "trust.json").write_text("{")
        done = hookline("trust", "--yes")
        assert done.returncode == 2
        assert "trust.json cannot be used: it is not JSON" in done.stderr
        assert "Traceback" not in done.stderr


def servers(workspace, *lines, **more):
    tables = [f"[mcp.servers.s{at}]\ncommand = {json.dumps(line)}\n" for at, line in enumerate(lines)]
    (workspace / ".hookline" / "config.toml").write_text("\n".join(tables))


CUT = {
    "many commands": [f"program-{number}" for number in range(40)],
    "a long command": ["true " + "x" * 200 + "; evil"],
    "a command behind blanks": ["true" + " " * 3_000 + "; evil"],
    "a command behind line ends": ["true" + "\n" * 60 + "evil"],
    "a command behind signs that nobody sees": ["true" + "\u200b" * 60 + "; evil"],
}


class TestScreen:
    """What does not fit on one screen is shown in full before a yes counts."""

    @pytest.mark.parametrize("lines", CUT.values(), ids=CUT)
    @pytest.mark.parametrize("command", [("trust",), ("chat",), ("run", "hi")], ids=" ".join)
    def test_a_yes_to_a_list_that_is_cut_trusts_nothing(
        self, terminal, trust, workspace, script, command, lines
    ):
        servers(workspace, *lines)
        model = () if command == ("trust",) else ("--model", script)
        child = terminal(*command, *model)
        child.expect_exact("This is not all of it. Show everything before you decide? [y/N]: ")
        assert max(map(len, child.before.splitlines())) < 80
        child.sendline("y")
        paged = child.expect(
            [r"Trust it\?.*\[y/N\]", r"Page 1 of \d+: Enter shows the next one, q stops: "]
        )
        child.sendline("y" if paged else "n")  # who does not look to the end has not agreed
        child.expect_exact("nothing was trusted" if command == ("trust",) else "It stays inert")
        child.close(force=True)
        assert trust("--list").stdout == "nothing is trusted\n"

    @pytest.mark.parametrize("lines", CUT.values(), ids=CUT)
    def test_all_of_it_is_shown_page_by_page_and_then_a_yes_counts(
        self, terminal, trust, workspace, lines
    ):
        servers(workspace, *lines)
        child = terminal("trust")
        child.expect_exact("decide? [y/N]: ")
        child.sendline("y")
        seen: list[str] = []
        while child.expect([r"Page \d+ of \d+: .*? stops: ", r"Trust it\?.*?\[y/N\]"]) == 0:
            rows = child.before.splitlines()[1:]  # after the end of the line with the question
            assert len(rows) <= 23
            assert max(map(len, rows)) < 80
            seen += rows
            child.sendline("")
        seen += child.before.splitlines()[1:]
        for line in lines:
            assert visible(line, line=True) in "".join(seen)
        child.sendline("y")
        child.expect_exact("trusted: 3")
        child.close()
        assert ".hookline/config.toml" in trust("--list").stdout

    def test_a_no_to_the_rest_of_the_list_is_a_no(self, terminal, trust, workspace):
        servers(workspace, *CUT["many commands"])
        child = terminal("trust")
        child.expect_exact("decide? [y/N]: ")
        child.sendline("n")
        child.expect_exact("nothing was trusted")
        child.close()
        assert trust("--list").stdout == "nothing is trusted\n"

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            (".claude/settings.json", {"allowedEnvVars": ["CANARY_KEY"], "command": "true"}),
            (".claude/settings.local.json", {"allowedEnvVars": ["X", "CANARY_KEY"], "command": "true"}),
            (".claude/settings.json", {"url": "https://x.example/", "headers": {"a": "$CANARY_KEY"}}),
            (
                ".claude/settings.json",
                {"url": "https://x.example/", "headers": {"a": "b${CANARY_KEY}"}},
            ),
        ],
    )
    @pytest.mark.parametrize("others", [0, 40])
    def test_the_variables_that_a_hook_reads_are_on_the_short_screen(
        self, trust, workspace, name, text, others
    ):
        hook = {"type": "http" if "url" in text else "command", **text}
        many = [{"type": "command", "command": f"echo {at}"} for at in range(others)]
        place = workspace / name
        place.parent.mkdir()
        place.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [*many, hook]}]}}))
        (line,) = [line for line in trust().stdout.splitlines() if name in line]
        assert "$CANARY_KEY" in line

    @pytest.mark.parametrize(
        "text",
        [
            '[[hooks.commands.Stop]]\nhooks = [{type = "command", command = "x", allowedEnvVars = ["CANARY_KEY"]}]',
            '[mcp.servers.x]\ncommand = "x"\nenv = {A = "${CANARY_KEY}"}',
            '[mcp.servers.x]\ncommand = "x"\nargs = ["--key=${CANARY_KEY}"]',
            '[mcp.servers.x]\nurl = "https://x.example/${CANARY_KEY}"',
            '[mcp.servers.x]\nurl = "https://x.example/"\nheaders = {a = "${CANARY_KEY}"}',
            '[agents.x]\ninstructions = "${CANARY_KEY}"',
            '[plugins.mail]\nhosts = [["${CANARY_KEY}"]]',
        ],
    )
    def test_so_are_those_that_a_configuration_reads(self, trust, workspace, text):
        (workspace / ".hookline" / "config.toml").write_text(text)
        (line,) = [line for line in trust().stdout.splitlines() if "config.toml" in line]
        assert "reads $CANARY_KEY" in line


class TestOtherCommands:
    def test_a_headless_run_never_trusts_by_itself(self, hookline, trust, script):
        done = hookline("run", "hi", "--model", script, "--no-stream")
        assert (done.returncode, done.stdout) == (0, "Hello.\n")
        assert trust("--list").stdout == "nothing is trusted\n"
        trust("--yes")
        done = hookline("run", "hi", "--model", script, "--no-stream")
        assert done.stdout == "the hook ran\nHello.\n"

    def test_no_project_ignores_what_is_trusted(self, hookline, trust, script):
        trust("--yes")
        done = hookline("--no-project", "run", "hi", "--model", script, "--no-stream")
        assert done.stdout == "Hello.\n"
        refused = hookline("--no-project", "trust")
        assert (refused.returncode, "--no-project leaves" in refused.stderr) == (2, True)

    def test_the_workspace_that_was_named_is_the_project(self, hookline, trust, script, tmp_path):
        trust("--yes")
        (tmp_path / "empty").mkdir()
        elsewhere = ("--workspace", tmp_path / "empty")
        done = hookline("run", "hi", "--model", script, "--no-stream", *elsewhere)
        assert done.stdout == "Hello.\n"

    def test_doctor_and_hooks_tell_of_files(self, hookline, tmp_path):
        profile = tmp_path / "home" / "profiles" / "default" / "hooks"
        profile.mkdir(parents=True)
        (profile / "mine.py").write_text(HOOK)
        (profile / "bad.py").write_text("def f(:")
        done = hookline("doctor")
        assert done.returncode == 1
        assert "files     builtin/stt.py, builtin/tts.py, profile/mine.py" in done.stdout
        assert f"{profile / 'bad.py'}:1: invalid syntax" in done.stdout
        assert "3 things of this project are inert" in done.stdout
        assert "profile/mine.py" in hookline("hooks", "agent_start").stdout

    def test_chat_says_once_what_is_inert_and_reloads(self, chat, trust, tmp_path):
        (tmp_path / "script.toml").write_text('[[turns]]\ntext = "One."\n[[turns]]\ntext = "Two."\n')
        done = chat("hi\n/reload\nhi\n")
        assert done.returncode == 0, done.stderr
        told = done.stdout + done.stderr
        assert told.count("`hookline trust` shows what would run and asks") == 2  # at start, by /reload
        assert "2 hook files, 2 handlers" in told  # the shipped ones
        assert "the hook ran" not in told
        trust("--yes")
        done = chat("hi\n/reload\nhi\n")
        told = done.stdout + done.stderr
        assert "hookline trust" not in told
        assert "3 hook files, 3 handlers" in told
        assert told.count("the hook ran") == 2
        assert "Two." in told

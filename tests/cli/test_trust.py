"""`hookline trust`, and what the other commands make of a project that is not trusted."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pexpect
import pytest
from typer.testing import CliRunner

from hookline.app import Hookline
from hookline.hooks import HooklineError

from .. import commandline, forks

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
        done = trust("--yes")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert "  hook file .hookline/hooks/a.py" in lines
        assert "  config    .hookline/config.toml" in lines
        assert "            mcp.servers.time: uvx mcp-server-time" in lines
        assert "  skill     .agents/skills/review" in lines
        assert "            run.sh" in lines
        assert lines[-1] == "trusted: 3"
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
    def test_a_person_is_asked(self, workspace, environ, answer, said):
        child = pexpect.spawn(
            sys.executable, ["-m", "hookline", "trust"], cwd=str(workspace), env=environ, timeout=30
        )
        child.expect_exact("Trust these 3? What is trusted runs with your rights. [y/N]")
        child.sendline(answer)
        child.expect_exact(said)
        child.expect(pexpect.EOF)
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

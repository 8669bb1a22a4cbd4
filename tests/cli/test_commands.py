"""Every command: help that is whole, lists that say they are empty, and the names people expect."""

import subprocess
import sys
from pathlib import Path
from time import time

import pytest

from hookline.cli.chat.sessions import listed
from hookline.cli.commands import COMMANDS
from hookline.cli.root import built, declared
from hookline.hookspecs import CATALOG
from hookline.runtime.app import Hookline
from hookline.tape import SessionInfo

from .. import commandline


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return commandline.here(tmp_path / "home", workspace, monkeypatch, capsys)


def groups() -> list[str]:
    """The root and every group of commands."""
    app = Hookline(home=Path("/nonexistent"), workspace=Path("/nonexistent"), project=False)
    app.load_hooks(packages=False)
    commands = built(app.create_cli_app()).commands.items()
    return ["", *(name for name, command in commands if hasattr(declared(command), "commands"))]


@pytest.mark.parametrize("group", groups())
def test_no_line_of_a_help_is_cut_at_80_columns(hookline, group):
    lines = hookline(*group.split(), "--help", COLUMNS="80").stdout.splitlines()
    assert [line for line in lines if line.endswith("...") and not line.endswith("[ARGS]...")] == []


def test_the_overall_help_says_of_each_command_what_its_own_help_says(hookline):
    for command, summary in COMMANDS.items():
        shown = hookline(command, "--help").stdout
        assert summary in " ".join(shown.split()), command


def test_the_overall_help_imports_no_command():
    code = (
        "import sys; from hookline.cli import main\n"
        "sys.argv = ['hookline', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "from hookline.cli.commands import COMMANDS\n"
        "print([name for name in COMMANDS if f'hookline.cli.{name}' in sys.modules])\n"
        "print([name for name in ('prompt_toolkit', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["[]", "[]"]


def test_the_help_of_hooks_shows_the_name_and_the_options_that_follow_it(hookline):
    shown = hookline("hooks", "--help").stdout
    for taken in ("NAME", "--turn", "--family", "--json", "--markdown", "check", "stats"):
        assert f"  {taken} " in shown


@pytest.mark.parametrize(
    "words",
    [
        "tape list", "sessions", "tape search nothing", "triggers list", "mcp list", "trust --list",
        "policy approvals", "plugins list", "models list", "config show", "audit show",
        "trust", "triggers dead jobs",
    ],
)  # fmt: skip
def test_a_list_with_nothing_in_it_says_so(hookline, words, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    if words.startswith("audit"):
        (home / "audit").mkdir()
        (home / "audit" / "audit.jsonl").write_text("")
    if words.startswith("triggers dead"):
        (home / "config.toml").write_text('[triggers.jobs]\ntype = "queue"\n')
    shown = hookline(*words.split())
    assert shown.returncode == 0
    assert shown.stdout.strip()


def test_the_expected_names_of_commands_exist(hookline):
    assert hookline("sessions").stdout == hookline("tape", "list").stdout
    assert hookline("models", "list").stdout == hookline("models").stdout != ""


def test_the_table_of_hooks_is_readable_on_a_terminal_of_80_columns(hookline):
    shown = hookline("hooks", COLUMNS="80", FORCE_COLOR="1")
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for name, spec in CATALOG.items():
        at = next(number for number, line in enumerate(lines) if line.split()[:1] == [name])
        assert lines[at].split()[1:] == [str(spec.reducer), spec.order.value, spec.errors.value]
        assert lines[at + 1].startswith(f"    {spec.doc[:40]}")
    assert len(lines) < 3 * len(CATALOG)


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_a_session_is_listed_in_one_line_of_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    info = SessionInfo("terminal:chat#1234567890", time(), time(), 12, None, preview="two\nlines " * 50)
    line = listed(info, info.id, [info.id], "terminal:garden")
    assert "\n" not in line
    assert len(line) < max(columns, 65)  # the id and the time are never cut
    assert ("two lines" in line) == (columns > 70)

"""`hookline replay` and `hookline backtest` as a person runs them."""

import json

import pytest

from .. import commandline, forks, postgres

SCRIPT = """
[[turns]]
text = "Let me look."
tool_calls = [{ name = "read_file", arguments = { path = "notes.txt" } }, { name = "read_file", arguments = { path = ".env" } }]

[[turns]]
text = "Milk and bread."
"""  # noqa: E501
RULE = """
from hookline.events import ToolCallEvent, ToolCallEventResult

def keep_out(event):
    if str(event.input.get("path", "")).endswith(".env"):
        return ToolCallEventResult(block=True, reason="secrets stay where they are")

hooks = [(ToolCallEvent, keep_out)]
"""


@pytest.fixture(scope="module")
def hookline(tmp_path_factory):
    """Run the command in a workspace with one recorded session."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "turns.toml").write_text(SCRIPT)
    (folder / "no_env.py").write_text(RULE)
    (folder / "notes.txt").write_text("milk, bread")
    (folder / ".env").write_text("KEY=1")
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}

    def run(*arguments, home=folder / "home"):
        given = {**environment, "HOOKLINE_HOME": str(home)}
        return forks.run(forks.MAIN, *arguments, cwd=folder, env=given)

    said = ("run", "What do I need?", "--session", "terminal:local")
    assert run(*said, "--model", "scripted:turns.toml").returncode == 0
    run.folder = folder
    return run


def test_a_replay_says_what_came_out_otherwise_and_leaves_with_1(hookline):
    same = hookline("replay", "terminal:local")
    assert (same.returncode, same.stdout) == (0, "1 item replayed, no differences\n")
    other = hookline("replay", "terminal:local", "--plugin", "no_env.py")
    assert other.returncode == 1
    assert "then  allowed\n  now   denied by no_env.py: secrets stay where they are" in other.stdout
    assert "on the tape as terminal:local/replay-" in other.stdout


def test_a_replay_is_printed_as_json(hookline):
    done = hookline("replay", "terminal:local", "--plugin", "no_env.py", "--json")
    data = json.loads(done.stdout)
    assert [d["field"] for d in data["differences"]] == ["decision", "result"]
    assert data["items"][0]["original"]["calls"][1]["decision"] == "allowed"
    assert data["items"][0]["replayed"]["calls"][1]["decision"] == "denied"
    assert data["branch"].startswith("terminal:local/replay-")


def test_a_backtest_says_what_changes_and_fails_where_that_is_asked_for(hookline):
    done = hookline("backtest", "--plugin", "no_env.py", "--since", "30d")
    assert done.returncode == 0
    assert "2 recorded calls in 1 session, 1 decided differently" in done.stdout
    assert "allow → deny  read_file  no_env.py      1" in done.stdout
    failing = ["backtest", "--plugin", "no_env.py", "--fail-on"]
    codes = [hookline(*failing, on).returncode for on in ("new-deny", "new-allow", "any")]
    assert codes == [1, 0, 1]
    assert hookline("backtest", "--fail-on", "any").returncode == 0


def test_a_backtest_of_a_database_is_shared_out_among_processes(hookline):
    schema = postgres.new_schema()
    url = json.dumps(postgres.url())
    home = hookline.folder / "shared"
    home.mkdir()
    (home / "config.toml").write_text(f'[tape]\nurl = {url}\nschema = "{schema}"\n')
    try:
        for session in ("one", "two"):
            asked = [
                "run",
                "What do I need?",
                "--model",
                "scripted:turns.toml",
                "--session",
                session,
            ]
            assert hookline(*asked, home=home).returncode == 0
        test = ["backtest", "--plugin", "no_env.py", "--jobs", "2", "--json", "-"]
        done = hookline(*test, home=home)
    finally:
        postgres.drop(schema)
    found = json.loads(done.stdout)
    assert (found["calls"], found["sessions"], found["kinds"]) == (4, 2, {"allow → deny": 2})


def test_a_backtest_writes_json_and_a_page(hookline):
    files = ["--json", "report.json", "--html", "report.html"]
    assert hookline("backtest", "--plugin", "no_env.py", *files).returncode == 0
    data = json.loads((hookline.folder / "report.json").read_text())
    assert data["kinds"] == {"allow → deny": 1}
    page = (hookline.folder / "report.html").read_text()
    assert "allow → deny" in page
    assert "<h1>Backtest of no_env.py</h1>" in page
    piped = hookline("backtest", "--json", "-")
    assert json.loads(piped.stdout)["changed"] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["replay", "terminal:locol"], "did you mean 'terminal:local'"),
        (["replay", "terminal:local", "--from", "nowhere"], "there is no entry"),
        (["replay", "terminal:local", "--result", "c1"], "write CALL=TEXT"),
        (["replay", "terminal:local", "--plugin", "gone.py"], "there is no such file"),
        (["replay", "terminal:local", "--plugin", "turns.toml"], "turns.toml"),
        (["replay", "terminal:local", "--pack", "./gone"], "manifest cannot be read"),
        (["backtest", "--since", "soon"], "is no time"),
        (["backtest", "--fail-on", "new"], "use one of"),
        (["backtest", "--session", "terminal:locol"], "did you mean 'terminal:local'"),
        (["backtest", "--jobs", "0"], "at least one process"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_clear_message_and_2(hookline, arguments, told, monkeypatch, capsys):
    here = commandline.here(hookline.folder / "home", hookline.folder, monkeypatch, capsys)
    done = here(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("hookline:") == 1
    assert "Traceback" not in done.stderr

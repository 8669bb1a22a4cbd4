"""`hookline eval` as a person runs it."""
# ruff: noqa: E501

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hookline import HooklineError, Hooks
from hookline.plugins.project import project_items
from hookline.plugins.trust import Trust
from hookline.runtime.evals.file import read_file

from .. import commandline
from ..tables import each_row

SCRIPT = """
repeat = true
[[turns]]
match = "France"
text = "Paris."
usage = { input_tokens = 10, output_tokens = 2, cost = 0.0001 }
[[turns]]
tool_calls = [{ name = "read_file", arguments = { path = ".env" } }]
[[turns]]
text = "Read."
"""
CASES = """
runs = 2

[[cases]]
name = "capital"
input = "What is the capital of France?"
contains = "Paris"

[[cases]]
name = "secret"
input = "Read the key."
called = "read_file"
"""
RULE = """
def keep_out(event):
    if str(event.input.get("path", "")).endswith(".env"):
        return event.deny("secrets stay where they are")

hooks = [("tool_call", keep_out)]
"""
PYTHON = """
from hookline import Agent, Case
from hookline.models import Call, ScriptedModel, Turn

from beside import shell

agent = Agent(ScriptedModel([Turn(tool_calls=[Call("shell", {"command": "sudo ls"})]), "done"], repeat=True), tools=[shell])
cases = [Case("List it.", "done", called="shell", name="list")]
at_least = 0.5
"""


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    """Run the command in a workspace with a scripted model."""
    home, workspace = tmp_path / "home", tmp_path / "work"
    workspace.mkdir()
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'model = "scripted:{workspace}/turns.toml"\n[policy]\ndefault = "allow"\n'
    )
    files = {"turns.toml": SCRIPT, "cases.toml": CASES, "no_env.py": RULE, ".env": "KEY=1\n"}
    for name, text in files.items():
        (workspace / name).write_text(text)
    run = commandline.here(home, workspace, monkeypatch, capsys)
    run.home, run.workspace = home, workspace
    return run


def test_cases_of_a_data_file_run_with_the_agent_of_the_settings(hookline):
    done = hookline("eval", "cases.toml", COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "4 of 4 runs of 2 cases passed: 100 % (51 to 100 %)"
    assert [line.split()[:2] for line in lines if line.startswith(("capital", "secret"))] == [
        ["capital", "2/2"],
        ["secret", "2/2"],
    ]
    assert max(map(len, lines)) <= 80
    assert not (hookline.home / "tape.db").exists()  # the conversations of people stay alone


def test_a_hook_file_is_compared_over_the_same_cases(hookline):
    done = hookline("eval", "cases.toml", "--plugin", "no_env.py", "--junit", "junit.xml")
    assert done.returncode == 1
    assert done.stdout.startswith("1 case changed, 1 came out the same\n2 of 4 runs")
    changed = done.stdout.index("secret  worse      2/2    0/2")
    assert changed < done.stdout.index("Cases\n")
    assert "denied now  no_env.py denied read_file: secrets stay where they are" in done.stdout
    suite = ElementTree.parse(hookline.workspace / "junit.xml").getroot()[0]
    assert [(case.get("name"), len(case)) for case in suite] == [("capital", 0), ("secret", 1)]
    assert hookline("eval", "cases.toml").returncode == 0  # the rule was only tried


def test_a_policy_pack_is_compared_over_the_same_cases(hookline):
    done = hookline("eval", "cases.toml", "--pack", "protected-paths", "--json")
    changes = json.loads(done.stdout)["changes"]
    assert [(change["name"], change["kind"]) for change in changes] == [("secret", "worse")]


def test_a_report_is_compared_with_an_earlier_one(hookline):
    done = hookline("eval", "cases.toml", "--json")
    report = json.loads(done.stdout)
    assert (report["ok"], report["rate"], report["cost"]) == (True, 1.0, 0.0002)
    (hookline.workspace / "before.json").write_text(done.stdout)
    files = ["--against", "before.json", "--html", "report.html"]
    (hookline.workspace / "turns.toml").write_text(SCRIPT.replace("Paris.", "<b>Lyon</b>"))
    done = hookline("eval", "cases.toml", *files, "--at-least", "0.5")
    assert done.returncode == 0
    assert done.stdout.startswith("1 case changed, 1 came out the same")
    page = (hookline.workspace / "report.html").read_text()
    assert "&lt;b&gt;Lyon" in page
    assert "<b>Lyon" not in page


def test_a_python_file_brings_its_agent_and_imports_what_is_beside_it(hookline):
    (hookline.workspace / "evals.py").write_text(PYTHON)
    (hookline.workspace / "beside.py").write_text(
        "def shell(command: str) -> str:\n    'Run.'\n    return command\n"
    )
    path = [*sys.path]
    try:
        assert hookline("eval", "evals.py").returncode == 0
        rule = RULE.replace('"path", "")).endswith(".env")', '"command", "")).startswith("sudo")')
        (hookline.workspace / "no_sudo.py").write_text(rule)
        done = hookline("eval", "evals.py", "--plugin", "no_sudo.py")
        assert "list  worse      1/1    0/1" in done.stdout
        assert done.returncode == 1
    finally:
        sys.modules.pop("beside", None)
    assert sys.path == path


def test_a_file_that_a_project_brings_runs_only_if_it_is_trusted(hookline):
    place = hookline.workspace / ".hookline" / "evals" / "mine.py"
    place.parent.mkdir(parents=True)
    mark = hookline.workspace / "ran"
    place.write_text(
        f"import os; os.mkdir({str(mark)!r})\n{PYTHON}".replace("from beside import shell", "")
    )
    done = hookline("eval", place)
    assert done.returncode == 2
    assert "is not trusted, and would be run; `hookline trust` shows it and asks" in done.stderr
    assert not mark.exists()
    items = project_items(hookline.workspace)
    assert [item.name for item in items] == [".hookline/evals/mine.py"]
    Trust(hookline.home).grant(items)
    assert "shell" in hookline("eval", place).stderr  # it runs now, and has no `shell`
    assert mark.exists()
    place.write_text(f"{place.read_text()}# changed\n")
    assert hookline("eval", place).returncode == 2


def test_data_in_other_formats(hookline):
    case = {"input": "What is the capital of France?", "contains": ["Paris"]}
    files = {
        "cases.jsonl": f"{json.dumps(case)}\n\n{json.dumps({**case, 'name': 'again'})}\n",
        "cases.json": json.dumps({"cases": [case], "at_least": 1}),
        "list.json": json.dumps([case]),
        "cases.yaml": "runs: 1\ncases:\n  - input: What is the capital of France?\n    contains: Paris\n",
    }
    for name, text in files.items():
        (hookline.workspace / name).write_text(text)
        assert hookline("eval", name).returncode == 0, name


def test_only_the_cases_that_are_named_run(hookline):
    assert (
        "1 of 1 run of 1 case"
        in hookline("eval", "cases.toml", "--case", "capital", "--runs", "1").stdout
    )


@each_row(
    "name, text, message",
    [
        ("gone.toml", None, "gone.toml: there is no such file"),
        ("x.toml", "", "x.toml: there are no cases: give at least one"),
        ("x.toml", "cases = 3", "x.toml: `cases` is a list of tables, not int"),
        ("x.toml", "cases = [3]", "x.toml: case 1 is a table with `input`, not 3"),
        ("x.toml", "[[cases]]\nname = 'a'", "x.toml: case 'a' has no `input`"),
        ("x.toml", "[[cases]]\ninput = 'a'\nexpcted = 'b'", "case 1: unknown field 'expcted'; did you mean 'expected'?"),
        ("x.toml", "[[cases]]\ninput = 'a'\nexpected = 3", "case 1: expected is text, not 3"),
        ("x.toml", "[[cases]]\ninput = 'a'\ncontains = [1]", "case 1: contains is text or a list of texts, not [1]"),
        ("x.toml", "[[cases]]\ninput = 'a'", "case 'a' expects nothing"),
        ("x.toml", "rns = 3\n[[cases]]\ninput = 'a'\nexpected = 'b'", "unknown field 'rns'; did you mean 'runs'?"),
        ("x.toml", "runs = 'x'\n[[cases]]\ninput = 'a'\nexpected = 'b'", "runs is a number, not 'x'"),
        ("x.toml", "[[cases]\n", "x.toml: Expected"),
        ("x.jsonl", '{"input": "a", "expected": "b"}\n{', "x.jsonl: line 2: "),
        ("x.yaml", "cases: [", "x.yaml: while parsing"),
        ("x.yaml", "!!python/object/apply:os.system ['true']", "x.yaml: could not determine a constructor"),
        ("x.csv", "a", "x.csv: cases are in a file that ends in .py"),
        ("x.py", "cases = []", "x.py defines no `agent`; write agent = Agent(...)"),
        ("x.py", "agent = 3", "x.py defines an `agent` that is a int"),
        ("x.py", "from hookline import Agent\nagent = Agent('local')", "x.py defines no `cases`"),
        ("x.py", "from hookline import Agent\nagent = Agent('local')\ncases = []", "x.py: there are no cases"),
        ("x.py", "1 / 0", "x.py:1: ZeroDivisionError: division by zero"),
        ("x.py", "raise SystemExit", "x.py:1: it ends the program"),
        ("x.py", "def", "x.py:1: invalid syntax"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_explained(hookline, name, text, message, monkeypatch):
    monkeypatch.chdir(hookline.workspace)
    if text is not None:
        (hookline.workspace / name).write_text(text)
    with pytest.raises(HooklineError) as raised:
        read_file(Path(name), Hooks(), Trust(hookline.home))
    assert raised.value.exit_code == 2
    assert message in str(raised.value)


@each_row(
    "options, message",
    [
        (["--case", "x", "--junit", "x"], "no case is named 'x'"),
        (["--runs", "0"], "runs is at least 1, not 0"),
        (["--at-least", "90"], "at_least is a share of the runs from 0 to 1, not 90"),
        (["--case", "captal"], "no case is named 'captal'; did you mean 'capital'?"),
        (["--against", "gone.json"], "--against gone.json: No such file"),
        (["--against", "turns.toml"], "--against turns.toml: "),
        (["--plugin", "gone.py"], "--plugin gone.py: there is no such file"),
        (["--pack", "gone"], "gone"),
        (["--model", "opanai:x"], "unknown model 'opanai:x'"),
        (["--junit", "nowhere/junit.xml"], "cannot write nowhere/junit.xml"),
    ],
)
def test_an_option_that_cannot_be_used_is_explained(hookline, options, message):
    done = hookline("eval", "cases.toml", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr

"""`hookline policy check|test|explain`, and `run` with and without `--yes`."""

import json

import pytest

from .. import commandline
from .conftest import write_pack


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    home = tmp_path / "home"
    home.mkdir()
    workspace = tmp_path / "work"
    workspace.mkdir()
    here = commandline.here(home, workspace, monkeypatch, capsys)

    def run(*words, config=""):
        if config:
            (home / "config.toml").write_text(config)
        return here(*words, HOME=str(tmp_path))

    run.home, run.workspace = home, workspace
    return run


PACKS = '[policy]\npacks = ["destructive-shell", "protected-paths"]\n'


def test_check_reports_each_pack_in_use(hookline):
    done = hookline("policy", "check", config=PACKS)
    assert done.returncode == 0, done.stderr
    assert "destructive-shell 1.0.0" in done.stdout
    assert "default: auto" in done.stdout


def test_check_finds_what_the_schema_does_not_have(hookline, tmp_path):
    cedar = "forbid (principal, action, resource)\nwhen { context.patths };"
    write_pack(tmp_path / "work" / "mine", cedar)
    done = hookline("policy", "check", "./mine")
    assert done.returncode == 1
    assert "rules.cedar:1: " in done.stderr
    assert "patths" in done.stderr
    assert "Traceback" not in done.stderr


CASES = """
[[case]]
tool = "shell"
arguments = { command = "rm -rf /" }
expect = "deny"
by = "destructive-shell/root-or-home"

[[case]]
name = "a listing"
tool = "shell"
arguments = { command = "ls" }
expect = "ask"

[[case]]
name = "wrong on purpose"
tool = "read_file"
arguments = { path = ".env" }
expect = "allow"
"""


def test_a_table_of_cases_is_judged_and_each_failure_shown(hookline):
    (hookline.workspace / "cases.toml").write_text(CASES)
    done = hookline("policy", "test", "cases.toml", config=PACKS)
    assert done.returncode == 1
    told = "FAILED wrong on purpose\n  expected allow, got deny by protected-paths/secrets"
    assert told in done.stdout
    assert "2 of 3 cases as expected" in done.stdout
    (hookline.workspace / "cases.yaml").write_text(
        "cases:\n  - {tool: read_file, arguments: {path: .env}, expect: deny}\n"
    )
    assert hookline("policy", "test", "cases.yaml").returncode == 0


def test_cases_that_cannot_be_read_are_told(hookline):
    (hookline.workspace / "cases.toml").write_text('[[case]]\ntool = "shell"\nexpect = "maybe"\n')
    done = hookline("policy", "test", "cases.toml")
    assert done.returncode == 2
    assert "case 1: expect" in done.stderr
    assert "Traceback" not in done.stderr


def test_explain_shows_the_chain_and_the_rule(hookline):
    call = ("policy", "explain", "shell", '{"command": "rm -rf /"}')
    done = hookline(*call, config=PACKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("deny  shell")
    assert "authorize_action: no plugin answered" in done.stdout
    assert "default auto" in done.stdout
    assert "destructive-shell/root-or-home" in done.stdout
    told = json.loads(hookline(*call, "--json").stdout)
    assert told["decision"] == "deny"
    assert [step["stage"] for step in told["chain"]][:2] == ["authorize_action", "default"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("explain", "shel", "{}"), "shell"),
        (("explain", "shell", "{"), "not valid JSON"),
        (("explain",), "name a tool"),
        (("explain", "--call", "x"), "--call needs the session"),
        (("explain", "--session", "s", "--call", "x"), "has no call 'x'"),
        (("check", "protected-path"), "did you mean 'protected-paths'"),
    ],
)
def test_wrong_words_are_told_in_a_line(hookline, words, told):
    done = hookline("policy", *words)
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


SCRIPT = """
[[turns]]
text = "I write."
tool_calls = [{ name = "write_file", arguments = { path = "made.txt", content = "x" }, id = "call_1" }]

[[turns]]
text = "Done."
"""


def test_a_headless_run_writes_only_with_yes(hookline):
    script = hookline.home / "script.toml"
    script.write_text(SCRIPT)
    words = ("run", "go", "--model", f"scripted:{script}", "--session", "s")
    made = hookline.workspace / "made.txt"
    refused = hookline(*words)
    assert refused.returncode == 0, refused.stderr
    assert not made.exists()
    assert "hookline run --yes" in refused.stderr
    assert hookline(*words[:-1], "t", "--yes").returncode == 0
    assert made.read_text() == "x"
    told = hookline("policy", "explain", "--session", "s", "--call", "call_1")
    assert told.stdout.startswith("deny  write_file")
    assert "resolve_approval" in told.stdout
    allowed = hookline("policy", "explain", "--session", "t", "--call", "call_1")
    assert allowed.stdout.startswith("allow")


def test_yes_does_not_override_the_floor(hookline):
    script = hookline.home / "script.toml"
    script.write_text(SCRIPT)
    floor = '[policy.floor.deny]\ntools = ["write_file"]\n'
    done = hookline("run", "go", "--model", f"scripted:{script}", "--yes", config=floor)
    assert done.returncode == 0, done.stderr
    assert not (hookline.workspace / "made.txt").exists()


def test_a_projects_file_cannot_loosen_the_floor(hookline):
    script = hookline.home / "script.toml"
    script.write_text(SCRIPT)
    (hookline.workspace / ".hookline").mkdir()
    (hookline.workspace / ".hookline" / "config.toml").write_text('[policy]\ndefault = "allow"\n')
    done = hookline("run", "go", "--model", f"scripted:{script}")
    assert done.returncode == 0, done.stderr
    assert not (hookline.workspace / "made.txt").exists()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ('[policy]\npacks = ["./gone"]\n', "manifest cannot be read"),
        ('[policy]\ndefault = "maybe"\n', "policy.default"),
        ('[policy.floor]\ncedar = "gone.cedar"\n', "gone.cedar"),
    ],
)
def test_a_policy_that_cannot_be_used_stops_the_run(hookline, config, told):
    script = hookline.home / "script.toml"
    script.write_text(SCRIPT)
    done = hookline("run", "go", "--model", f"scripted:{script}", "--yes", config=config)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (hookline.workspace / "made.txt").exists()


def test_the_doctor_tells_what_is_in_use_and_what_is_broken(hookline):
    good = hookline("doctor", config=PACKS)
    assert "default auto, destructive-shell 1.0.0, protected-paths 1.0.0" in good.stdout
    bad = hookline("doctor", config='[policy]\npacks = ["./gone"]\n')
    assert bad.returncode == 1
    assert "manifest cannot be read" in bad.stdout
    assert "Traceback" not in bad.stderr

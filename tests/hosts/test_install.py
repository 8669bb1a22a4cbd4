"""`hookline hook install` and `uninstall`: the files of hosts, before and after."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hookline.bridges.hosts.formats import HOSTS, format_of
from hookline.bridges.hosts.json_text import JsonText
from hookline.errors import BadInput
from tests.commandline import here
from tests.tables import each_row

Run = Callable[..., SimpleNamespace]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in ("home", "user", "work"):
        (tmp_path / name).mkdir(mode=0o700)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    hookline = here(tmp_path / "home", tmp_path / "work", monkeypatch, capsys)
    return lambda *arguments: hookline("hook", *arguments, HOME=str(tmp_path / "user"))


PLACES = {
    "claude-code": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/hooks.json", ".codex/hooks.json"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "opencode": (".config/opencode/plugins/hookline.ts", ".opencode/plugins/hookline.ts"),
    "pi": (".pi/agent/extensions/hookline.ts", ".pi/extensions/hookline.ts"),
}


@pytest.mark.parametrize("host", HOSTS)
def test_hooks_are_installed_once_and_removed_without_a_trace(host: str, run: Run, tmp_path: Path):
    for scope, place in zip(("--user", "--project"), PLACES[host], strict=True):
        folder = tmp_path / ("user" if scope == "--user" else "work")
        path = folder / place
        refused = run("install", "--for", host, scope)
        assert refused.returncode == 2
        assert "add --yes" in refused.stderr
        assert "+++" in refused.stdout, "the change is shown before it is asked about"
        assert not path.exists()
        assert run("install", "--for", host, scope, "--yes").returncode == 0
        text = path.read_text()
        assert "already" in run("install", "--for", host, scope, "--yes").stdout
        assert path.read_text() == text
        if path.suffix == ".json":
            entries = json.loads(text)["hooks"]
            assert entries.keys() == format_of(host).events.keys()
        state = json.loads(run("status", "--json").stdout)
        assert [row["path"] for row in state["hosts"] if row["installed"]] == [str(path)]
        assert state["server"] is None
        assert run("uninstall", "--for", host, scope, "--yes").returncode == 0
        assert not path.exists()
        left = [*folder.rglob("*")]
        assert not left, "the folders are gone as well"
        assert "not installed" in run("uninstall", "--for", host, scope, "--yes").stdout


SETTINGS = [
    "{}",
    "{}\n",
    "{ }",
    '{\n\t"theme": "dark"\n}\n',
    '{"theme": "dark", "hooks": {}}',
    '{"hooks": {"PreToolUse": []}}',
    """{
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]},
    "unknown": [1, 2.50, null, "\\u00e9"]
}""",
    '{\r\n  "hooks": {\r\n    "Stop": [\r\n      {"hooks": []}\r\n    ]\r\n  }\r\n}\r\n',
]


def normal(value: Any) -> Any:
    """A value without the empty tables that a removal may leave out."""
    if isinstance(value, dict):
        found = {key: normal(each) for key, each in value.items()}
        return {key: each for key, each in found.items() if each not in ({}, [])}
    return value


def test_the_settings_of_the_user_are_kept_to_the_byte(run: Run, tmp_path: Path):
    path = tmp_path / "user" / ".claude" / "settings.json"
    path.parent.mkdir()
    for text in SETTINGS:
        path.write_bytes(text.encode())
        path.chmod(0o640)
        before = json.loads(text)
        assert run("install", "--for", "claude-code", "--yes").returncode == 0
        after = json.loads(path.read_bytes())
        assert path.stat().st_mode & 0o777 == 0o640
        for key, value in before.items():
            if key != "hooks":
                assert after[key] == value
        for event, entries in before.get("hooks", {}).items():
            assert after["hooks"][event][: len(entries)] == entries
        changed = path.read_bytes()[:-1] + b" }" if text.endswith("}") else path.read_bytes() + b"\n"
        path.write_bytes(changed)  # a person edited the file meanwhile
        assert run("uninstall", "--for", "claude-code", "--yes").returncode == 0
        assert normal(json.loads(path.read_bytes())) == normal(before)
        path.write_bytes(text.encode())
        run("install", "--for", "claude-code", "--yes")
        run("uninstall", "--for", "claude-code", "--yes")
        assert path.read_bytes() == text.encode()


def test_comments_are_kept(run: Run, tmp_path: Path):
    path = tmp_path / "user" / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('// mine\n{\n  "a": 1, // one\n  /* two */ "hooks": { // three\n  }\n}\n')
    assert run("install", "--for", "gemini", "--yes").returncode == 0
    text = path.read_text()
    assert all(word in text for word in ("// mine", "// one", "/* two */", "// three"))
    found = JsonText(text, "settings")
    assert found.value(found.root)["hooks"].keys() == format_of("gemini").events.keys()


def test_a_link_to_the_settings_stays_one(run: Run, tmp_path: Path):
    (tmp_path / "user" / ".claude").mkdir()
    kept = tmp_path / "kept.json"
    kept.write_text("{}\n")
    link = tmp_path / "user" / ".claude" / "settings.json"
    link.symlink_to(kept)
    run("install", "--for", "claude-code", "--yes")
    assert link.is_symlink()
    assert "PreToolUse" in kept.read_text()


@each_row(
    "text, line",
    [
        ("{", 1),
        ('{\n"a": 1,\n}', 3),
        ('{\n"a" 1}', 2),
        ('{"a": tru}', 1),
        ("[]", 1),
        ("{}\n{}", 2),
        ('{\n\n"a": "b', 3),
        ("{'a': 1}", 1),
        ('{"hooks": []}', 1),
        ('{\n"hooks": {\n"PreToolUse": {}}}', 3),
        ('{"a": ' + "[" * 5000, 1),
    ],
)
def test_broken_settings_are_refused_with_their_line(text: str, line: int, run: Run, tmp_path: Path):
    path = tmp_path / "user" / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    refused = run("install", "--for", "claude-code", "--yes")
    assert refused.returncode == 2, refused
    assert f"{path}, line {line}: " in refused.stderr, refused.stderr
    assert path.read_text() == text


def test_a_gate_denies_if_its_command_cannot_be_started(run: Run, tmp_path: Path):
    run("install", "--for", "claude-code", "--yes")
    hooks = json.loads((tmp_path / "user" / ".claude" / "settings.json").read_text())["hooks"]
    commands = {event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()}
    assert commands["PreToolUse"].endswith(" || exit 2")
    assert not commands["Stop"].endswith(" || exit 2"), "a broken hook must not keep an agent running"


def test_a_host_that_does_not_exist_is_named(run: Run):
    refused = run("install", "--for", "claud-code", "--yes")
    assert refused.returncode == 2
    assert "did you mean 'claude-code'" in refused.stderr
    refused = run("install", "--for", "pi", "--user", "--project", "--yes")
    assert "not both" in refused.stderr


def test_json_is_read_as_python_reads_it():
    for text in SETTINGS:
        found = JsonText(text, "settings")
        assert found.value(found.root) == json.loads(text)
    with pytest.raises(BadInput, match="line 1"):
        JsonText("nothing", "settings")

"""The generated reference, and the command line that shows it."""

import json
from pathlib import Path

import pytest

from hookline.hookspecs import CATALOG
from hookline.observe.reference.lifecycle import walk
from hookline.observe.reference.markdown import markdown

from .. import commandline

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    return commandline.here(tmp_path, tmp_path, monkeypatch, capsys)


def test_the_reference_page_is_up_to_date():
    made = markdown(CATALOG)
    kept = (DOCS / "hooks.md").read_text()
    assert kept == made, "docs/hooks.md is stale: python scripts/declared_hooks.py"


def test_the_page_has_a_section_for_every_hook():
    page = markdown(CATALOG)
    assert all(
        f"`{name}`\n" in page and f"](#hook-{name.replace(':', '-')})" in page for name in CATALOG
    )


def test_the_picture_of_a_turn_names_real_hooks():
    names = [name for _, name in walk(CATALOG)]
    assert [n for n in names if n not in CATALOG] == ["each model turn", "each tool call"]
    turn_hooks = {n for n, s in CATALOG.items() if s.family in ("agent", "message") and s.event}
    assert turn_hooks - set(names) == {"agent_error"}


class TestCommand:
    def test_the_table_shows_every_hook_with_its_rules(self, hookline):
        shown = hookline("hooks")
        assert shown.returncode == 0
        for name, spec in CATALOG.items():
            row = next(line for line in shown.stdout.splitlines() if line.split()[:1] == [name])
            assert row.split()[1:4] == [str(spec.reducer), spec.order.value, spec.errors.value]
        assert f"{len(CATALOG)} hooks" in shown.stdout

    @pytest.mark.parametrize("name", ["tool_call", "load_state", "message:receive"])
    def test_one_hook_in_detail_ends_with_an_example(self, hookline, name):
        shown = hookline("hooks", name)
        assert CATALOG[name].doc in shown.stdout
        assert "@hookimpl" in shown.stdout

    def test_the_code_that_dispatches_a_hook(self, hookline):
        shown = hookline("hooks", "load_state", "--source").stdout
        assert "# builtin (" in shown
        assert "async def load_state(message, session_id):" in shown
        refused = hookline("hooks", "--source")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "--source needs the name of a hook" in refused.stderr

    def test_a_family_alone(self, hookline):
        shown = hookline("hooks", "--family", "trigger").stdout
        assert "trigger_init" in shown
        assert "tool_call" not in shown

    def test_json_has_every_declared_fact(self, hookline):
        told = json.loads(hookline("hooks", "--json").stdout)
        assert [entry["name"] for entry in told] == [
            s.name for f in CATALOG.families().values() for s in f
        ]
        [gate] = json.loads(hookline("hooks", "tool_call", "--json").stdout)
        assert (gate["reduce"], gate["match"], gate["scope"]) == ("gate", "tool_name", "ctx.session_id")
        assert gate["payload"] == ["tool_call_id: str", "tool_name: str", "input: dict[str, Any]"]

    def test_the_picture_of_a_turn(self, hookline):
        shown = hookline("hooks", "--turn").stdout.splitlines()
        assert shown[0].startswith("message:receive")
        assert any(line.startswith("            before_tool_call") for line in shown)

    def test_an_unknown_name_is_one_line_and_exit_code_2(self, hookline):
        for arguments, hint in (
            (("hooks", "toolcall"), "unknown hook 'toolcall'; did you mean 'tool_call'"),
            (("hooks", "--family", "toll"), "no family 'toll'; did you mean 'tool'?"),
        ):
            refused = hookline(*arguments)
            assert refused.returncode == 2
            assert refused.stdout == ""
            assert refused.stderr.startswith(f"hookline: {hint}")
            assert refused.stderr.count("\n") == 1

    def test_it_works_in_a_narrow_terminal(self, hookline):
        assert "resolve_session" in hookline("hooks", COLUMNS="60").stdout

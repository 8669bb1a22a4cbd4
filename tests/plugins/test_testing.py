"""`hookline.testing`: hooks fired at a plugin, decision tables, and the record of who changed what."""

from pathlib import Path

import pytest

from hookline import hookimpl, testing
from hookline.events import ToolCallEvent, ToolCallEventResult, ToolResultEvent, ToolResultEventResult
from hookline.hooks import HooklineError
from hookline.models import Call, Turn
from hookline.testing import decisions, rows

pytest_plugins = ["pytester"]


class Careful:
    """Denies sudo, asks before rm, and shows the folder of ls."""

    @hookimpl(when="shell")
    def tool_call(self, event):
        command = event.input["command"]
        if command.startswith("sudo"):
            return ToolCallEventResult(block=True, reason="not as root")
        if command.startswith("rm"):
            return ToolCallEventResult(ask=True)
        return ToolCallEventResult(input={"command": "ls ."}) if command == "ls" else None

    @hookimpl
    def before_tool_call(self, arguments):
        return {**arguments, "careful": True}

    @hookimpl
    def resolve_session(self, message):
        return f"chat:{message['chat_id']}"


def shell(command):
    return ToolCallEvent(tool_name="shell", input={"command": command})


class TestFiring:
    def test_an_event_gives_its_verdict(self, fire):
        verdict = fire(shell("sudo ls"), at=Careful())
        assert verdict.denied
        assert (verdict.reason, verdict.decided_by) == ("not as root", "Careful")

    def test_a_name_with_fields_is_as_good_as_an_event(self, fire):
        assert fire("tool_call", at=Careful(), tool_name="shell", input={"command": "rm x"}).asked

    def test_a_function_shaped_hook_gives_its_value(self, fire):
        assert fire("resolve_session", at=Careful(), message={"chat_id": 7}) == "chat:7"

    def test_the_entries_of_a_hook_file_are_fired_at_too(self, fire):
        hooks = [
            ("tool_result", lambda event: ToolResultEventResult(content=event.content.upper())),
            (ToolResultEvent, lambda event: ToolResultEventResult(content=event.content + "!")),
        ]
        assert fire(ToolResultEvent(content="hi"), at=hooks).event.content == "HI!"

    async def test_in_an_async_test_it_is_awaited(self, fire):
        assert (await fire.call(shell("sudo ls"), at=Careful())).denied
        with pytest.raises(HooklineError, match="in an async test write"):
            fire(shell("ls"), at=Careful())

    def test_a_field_that_the_event_does_not_have_is_told(self, fire):
        with pytest.raises(HooklineError, match="has no field 'tool'; did you mean 'tool_name'"):
            fire("tool_call", at=Careful(), tool="shell")


def test_no_module_hides_a_fixture():
    """An import of `hookline.testing.fire` would put the module where the fixture was."""
    folder = Path(testing.__file__).parent
    assert not {path.stem for path in folder.glob("*.py")}.intersection(testing.__all__)


TABLE = [
    {"event": "tool_call", "tool_name": "shell", "input": {"command": "sudo ls"}, "decision": "deny",
     "reason": "not as root", "by": "Careful"},
    {"event": "tool_call", "tool_name": "shell", "input": {"command": "rm x"}, "decision": "ask"},
    {"event": "tool_call", "tool_name": "shell", "input": {"command": "ls"}, "decision": "allow",
     "then": {"input": {"command": "ls ."}}},
]  # fmt: skip

TOML = """
[[row]]
name = "sudo is denied"
event = "tool_call"
tool_name = "shell"
input = { command = "sudo ls" }
decision = "deny"

[[row]]
event = "tool_call"
tool_name = "shell"
input = { command = "ls" }
decision = "ask"
"""

CSV = """event,tool_name,input,decision,reason
tool_call,shell,"{""command"": ""sudo ls""}",deny,not as root
tool_call,shell,"{""command"": ""rm x""}",ask,
"""


class TestTables:
    @decisions(TABLE)
    def test_a_list_is_a_table(self, row, fire):
        row.check(fire, at=Careful())

    @decisions(TABLE)
    async def test_a_table_serves_async_tests_too(self, row, fire):
        await row.check_async(fire, at=Careful())

    def test_each_row_of_a_file_is_a_test_and_the_wrong_ones_are_told(self, pytester):
        pytester.makefile(".toml", table=TOML)
        pytester.makefile(".csv", table=CSV)
        pytester.makepyfile(
            """
            from hookline.testing import decisions
            from tests.plugins.test_testing import Careful

            @decisions("table.toml")
            def test_toml(row, fire):
                row.check(fire, at=Careful())

            @decisions("table.csv")
            def test_csv(row, fire):
                row.check(fire, at=Careful())
            """
        )
        pytester.syspathinsert(__file__.rsplit("/tests/", 1)[0])
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-v")
        result.assert_outcomes(passed=3, failed=1)
        result.stdout.fnmatch_lines(
            [
                "*test_toml[[]sudo is denied[]] PASSED*",
                "table.toml, row 2: tool_call(tool_name='shell', input={'command': 'ls'})",
                "  decision: expected 'ask', got 'allow'",
            ]
        )

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            (
                {"event": "tool_cal", "decision": "deny"},
                "row 1: event 'tool_cal' is none that is decided",
            ),
            ({"event": "agent_end", "decision": "deny"}, "event 'agent_end' is none that is decided"),
            ({"event": "tool_call", "decision": "maybe"}, "decision must be one of allow, ask, deny"),
            ({"event": "tool_call", "decision": "ask", "tool": 1}, "no field 'tool'; did you mean"),
            ({"event": "tool_call", "decision": "ask", "then.x": 1}, "no field 'x'"),
        ],
    )
    def test_a_bad_row_is_told_with_its_place(self, row, message):
        with pytest.raises(HooklineError, match=message):
            rows([row])

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("t.toml", "x = ", "is not TOML"),
            ("t.toml", "x = 1", r"has no \[\[row\]\] tables"),
            ("t.csv", "event,decision\n", "has no rows"),
            ("t.json", "[]", "is a .toml or a .csv file"),
            ("t.toml", None, "cannot read the decision table"),
        ],
    )
    def test_a_bad_file_is_told(self, tmp_path, name, text, message):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(HooklineError, match=message):
            rows(tmp_path / name)


async def test_the_record_tells_who_changed_what(app, scripted, changes):
    app.hooks.add(Careful(), name="careful")
    scripted(
        Turn(
            tool_calls=[
                Call("shell", {"command": "sudo ls"}),
                Call("shell", {"command": "ls"}),
            ]
        ),
        "Done.",
    )
    async with app.running():
        await app.process({"content": "go", "chat_id": "7"})
    assert {str(change) for change in changes.of("tool_call")} == {
        "careful denied tool_call: not as root",
        "careful rewrote tool_call: input",
    }
    [rewritten] = [change for change in changes.of("tool_call") if change.did == "rewrote"]
    assert rewritten.values == {"input": {"command": "ls ."}}
    assert "careful rewrote before_tool_call: arguments" in map(str, changes.by("careful"))

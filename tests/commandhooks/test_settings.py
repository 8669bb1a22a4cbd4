"""Settings files and `[hooks.commands]`: what is read, what is refused, and whose word counts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.events import ToolCallEvent
from hookline.ext.command_hooks.matcher import Matcher, ToolCondition
from hookline.ext.command_hooks.names import shown_input, taken_input
from hookline.ext.command_hooks.settings import read_table
from hookline.observe.trace.plugin import Tracing


async def judged(app, tool="shell", **arguments):
    async with app.running():
        event = ToolCallEvent("c1", tool, arguments or {"command": "true"})
        return await app.hooks.call(event, app.context("s"))


BAD = {
    "no table": ([], "hooks must be a table of events"),
    "unknown event": ({"PreToolUes": []}, "hooks.PreToolUes: unknown event .* mean 'PreToolUse'"),
    "no list": ({"Stop": {}}, "hooks.Stop: must be a list"),
    "no group": ({"Stop": ["x"]}, r"hooks.Stop\[1\]: must be a table"),
    "no hooks": ({"Stop": [{}]}, r"hooks.Stop\[1\].hooks: must be a list"),
    "bad matcher": (
        {"PreToolUse": [{"matcher": "Bash(", "hooks": []}]},
        r"hooks.PreToolUse\[1\].matcher: 'Bash\(' is not a regular expression",
    ),
    "matcher no text": (
        {"PreToolUse": [{"matcher": 5, "hooks": []}]},
        r"hooks.PreToolUse\[1\].matcher: must be a text",
    ),
}

BAD_HOOKS = {
    "no table": ("echo", r"hooks\[1\]: must be a table"),
    "no type": ({"command": "x"}, r"hooks\[1\].type: Field required"),
    "unknown type": ({"type": "magic"}, r"hooks\[1\].type: must be 'command' or 'http'"),
    "a prompt": ({"type": "prompt", "prompt": "x"}, r"hooks\[1\].type: hooks of type 'prompt'"),
    "no command": ({"type": "command"}, r"hooks\[1\].command: is missing"),
    "no url": ({"type": "http"}, r"hooks\[1\].url: is missing"),
    "time": (
        {"type": "command", "command": "x", "timeout": -1},
        r"hooks\[1\].timeout: must be greater",
    ),
    "kind of time": ({"type": "command", "command": "x", "timeout": "5"}, r"hooks\[1\].timeout: must"),
    "fail mode": (
        {"type": "command", "command": "x", "on_failure": "explode"},
        r"hooks\[1\].on_failure: must be 'allow' or 'deny'",
    ),
    "plain http": ({"type": "http", "url": "http://example.com/"}, r"hooks\[1\].url: .*https"),
    "no address": ({"type": "http", "url": "example.com"}, r"hooks\[1\].url: must be an address"),
    "a condition": ({"type": "command", "command": "x", "if": "("}, r"hooks\[1\].if: must be a tool"),
    "NUL": ({"type": "command", "command": "a\0b"}, r"hooks\[1\].command: .*NUL"),
}


NOTHING = """
import asyncio, sys
from pathlib import Path
from hookline.runtime.app import Hookline

async def main(folder):
    app = Hookline(home=folder, workspace=folder)
    app.load_hooks(packages=False)
    app.user_home = folder
    async with app.running():
        print(*(name for name in sys.modules if name.startswith("hookline.ext.command_hooks.")))
        print(app.hooks["tool_call"].live or app.hooks["input"].live or app.hooks["model_call"].live)

asyncio.run(main(Path(sys.argv[1])))
"""


class TestReading:
    @pytest.mark.parametrize(("hooks", "told"), BAD.values(), ids=BAD.keys())
    def test_what_is_wrong_is_named_with_file_and_key(self, hooks, told):
        (problem,) = read_table(hooks, "/x/settings.json").problems
        assert problem.startswith("/x/settings.json: ")
        assert re.search(told, problem), problem

    @pytest.mark.parametrize(("hook", "told"), BAD_HOOKS.values(), ids=BAD_HOOKS.keys())
    def test_a_bad_hook_leaves_the_others_alone(self, hook, told):
        good = {"type": "command", "command": "true"}
        table = read_table({"Stop": [{"hooks": [hook, good]}]}, "/x/settings.json")
        assert [h.command for h in table.hooks] == ["true"]
        assert re.search(told, table.problems[0]), table.problems

    def test_events_that_nothing_fires_here_are_no_mistake(self):
        table = read_table({"PermissionRequest": []}, "f")
        assert table.problems == []
        assert "nothing fires this event here" in table.warnings[0]

    def test_an_unknown_key_is_told_with_the_nearest(self):
        hook = {"type": "command", "command": "true", "on_failur": "deny", "statusMessage": "…"}
        table = read_table({"Stop": [{"hooks": [hook]}]}, "f")
        assert len(table.hooks) == 1
        (warning,) = table.warnings
        assert "on_failur" in warning
        assert "did you mean 'on_failure'" in warning

    async def test_a_file_that_is_no_json_is_told_and_its_hooks_do_not_run(self, app, places):
        app.absences.on_load_error = "continue"
        places.user.parent.mkdir()
        places.user.write_text('{"hooks": ')
        assert (await judged(app)).allowed
        (failure,) = app.failures
        assert str(places.user) in str(failure)
        assert "it is not JSON" in str(failure)

    def test_nothing_is_imported_and_attached_where_there_are_no_hooks(self, tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", NOTHING, tmp_path], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["hookline.ext.command_hooks.plugin", "False"]

    async def test_all_hooks_can_be_turned_off_in_the_file(self, app, places):
        hook = {"type": "command", "command": "exit 2"}
        places.write({"PreToolUse": [{"hooks": [hook]}]}, disableAllHooks=True)
        assert (await judged(app)).allowed


class TestOurConfiguration:
    def configure(self, app, text: str) -> None:
        app.home.mkdir(exist_ok=True)
        (app.home / "config.toml").write_text(text)

    async def test_hooks_stand_there_too(self, app):
        self.configure(
            app,
            '[[hooks.commands.PreToolUse]]\nmatcher = "Bash"\n'
            'hooks = [{ type = "command", command = "echo from toml >&2; exit 2" }]\n',
        )
        verdict = await judged(app)
        assert (verdict.reason, verdict.decided_by) == ("from toml", "command hooks")

    async def test_they_can_be_turned_off_altogether(self, app, places):
        places.on("PreToolUse", "exit 2")
        self.configure(app, "[hooks.commands]\nenabled = false\n")
        assert (await judged(app)).allowed

    async def test_settings_files_can_be_left_out(self, app, places):
        places.on("PreToolUse", "exit 2")
        self.configure(app, "[hooks.commands]\nsettings_files = false\n")
        assert (await judged(app)).allowed

    async def test_a_mistake_is_named_with_file_and_key(self, app):
        self.configure(app, '[hooks.commands]\nenabled = "yes"\n')
        app.absences.on_load_error = "continue"
        await judged(app)
        (failure,) = app.failures
        assert f"{app.home / 'config.toml'}: hooks.commands.enabled: must be" in str(failure)

    async def test_the_users_and_the_configured_hooks_both_run(self, app, places):
        places.on("PreToolUse", places.recording("a.py"))
        self.configure(
            app,
            f'[[hooks.commands.PreToolUse]]\nhooks = [{{ type = "command", command = '
            f"{json.dumps(places.recording('b.py'))} }}]\n",
        )
        await judged(app)
        assert len(places.noted()) == 2


class TestReloading:
    async def test_a_changed_file_counts_after_a_reload(self, app, places):
        places.on("PreToolUse", "exit 2")
        async with app.running():
            event = ToolCallEvent("c1", "shell", {"command": "true"})
            assert (await app.hooks.call(event, app.context("s"))).denied
            places.on("PreToolUse", "exit 0")
            await app.hook_files.reload()
            assert (await app.hooks.call(event, app.context("s"))).allowed

    async def test_one_that_cannot_be_used_any_more_keeps_its_last_version(self, app, places):
        places.on("PreToolUse", "exit 2")
        async with app.running():
            places.user.write_text("{")
            await app.hook_files.reload()
            event = ToolCallEvent("c1", "shell", {"command": "true"})
            assert (await app.hooks.call(event, app.context("s"))).denied
        assert "its last working version stays" in str(app.failures[0])

    async def test_one_that_is_gone_is_gone(self, app, places):
        places.on("PreToolUse", "exit 2")
        async with app.running():
            places.user.unlink()
            await app.hook_files.reload()
            assert app.hooks["tool_call"].count() == 0


class TestMatchers:
    @pytest.mark.parametrize(
        ("text", "names", "matches"),
        [
            ("", ("Bash", "shell"), True),
            ("*", ("anything",), True),
            ("Bash", ("Bash", "shell"), True),
            ("shell", ("Bash", "shell"), True),
            ("bash", ("Bash", "shell"), False),
            ("Edit|Write", ("Write", "write_file"), True),
            ("Edit, Write", ("Write", "write_file"), True),
            ("Write", ("NotebookWrite",), False),
            ("mcp__memory", ("mcp__memory__read",), False),
            ("mcp__memory__.*", ("mcp__memory__read",), True),
            ("^Note", ("NotebookEdit",), True),
            ("Note.*", ("Bash", "shell"), False),
        ],
    )
    def test_names_are_exact_and_the_rest_is_a_regular_expression(self, text, names, matches):
        assert Matcher(text).matches(names) is matches

    @pytest.mark.parametrize(
        ("text", "given", "holds"),
        [
            ("Bash(git *)", {"command": "git push"}, True),
            ("Bash(git:*)", {"command": "git push"}, True),
            ("Bash(git *)", {"command": "git"}, True),
            ("Bash(git *)", {"command": "echo git"}, False),
            ("Bash(rm *)", {"command": "true; rm x"}, True),
            ("Bash(rm *)", {"command": "echo $(rm x)"}, True),
            ("Bash(rm *)", {"command": "A=1 B=2 rm x"}, True),
            ("Bash", {"command": "anything"}, True),
            ("Edit(*.py)", {"command": "x"}, False),
        ],
    )
    def test_conditions_on_commands(self, text, given, holds):
        assert ToolCondition(text).holds(("Bash", "shell"), given, "/w") is holds

    @pytest.mark.parametrize(
        ("pattern", "path", "holds"),
        [
            ("*.py", "/w/src/a.py", True),
            ("src/**", "/w/src/a/b.py", True),
            ("src/**", "/w/docs/a.md", False),
            ("**/*.ts", "/w/a.ts", True),
            ("//etc/*", "/etc/passwd", True),
        ],
    )
    def test_conditions_on_paths(self, pattern, path, holds):
        condition = ToolCondition(f"Read({pattern})")
        assert condition.holds(("Read", "read_file"), {"file_path": path}, "/w") is holds


class TestNames:
    @pytest.mark.parametrize(
        ("tool", "given", "shown"),
        [
            ("shell", {"command": "ls", "timeout": 1.5}, {"command": "ls", "timeout": 1500}),
            (
                "shell",
                {"command": "x", "background": True},
                {"command": "x", "run_in_background": True},
            ),
            ("read_file", {"path": "a"}, {"file_path": "/w/a"}),
            (
                "read_file",
                {"path": "a", "start": 5, "end": 9},
                {"file_path": "/w/a", "offset": 5, "limit": 5},
            ),
            ("write_file", {"path": "/w/a", "content": "x"}, {"file_path": "/w/a", "content": "x"}),
            (
                "edit_file",
                {"path": "a", "edits": [{"old": "x", "new": "y", "all": True}]},
                {"file_path": "/w/a", "old_string": "x", "new_string": "y", "replace_all": True},
            ),
            (
                "edit_file",
                {"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "p", "new": "q"}]},
                {
                    "file_path": "/w/a",
                    "edits": [
                        {"old_string": "x", "new_string": "y"},
                        {"old_string": "p", "new_string": "q"},
                    ],
                },
            ),
            ("list_files", {"pattern": "*.py"}, {"pattern": "*.py"}),
            (
                "search_files",
                {"pattern": "x", "ignore_case": True, "limit": 5},
                {"pattern": "x", "-i": True, "head_limit": 5},
            ),
            ("fetch_url", {"url": "https://x"}, {"url": "https://x"}),
            (
                "delegate",
                {"tasks": ["one", "two"], "role": "scout"},
                {
                    "tasks": ["one", "two"],
                    "prompt": "one\n\ntwo",
                    "description": "one",
                    "subagent_type": "scout",
                },
            ),
            (
                "todo",
                {"action": "add", "items": ["a"]},
                {"action": "add", "todos": [{"content": "a", "status": "pending"}]},
            ),
            ("mcp__server__tool", {"any": 1}, {"any": 1}),
        ],
    )
    def test_an_input_is_shown_in_the_formats_names_and_taken_back_unchanged(
        self, tmp_path, tool, given, shown
    ):
        workspace = Path("/w")
        assert shown_input(tool, given, workspace) == shown
        assert taken_input(tool, shown, given, workspace) == given

    def test_changes_are_taken_in_our_names(self):
        workspace = Path("/w")
        edit = {"path": "a", "edits": [{"old": "x", "new": "y"}]}
        changed = {"file_path": "/w/b", "old_string": "x", "new_string": "z"}
        taken = taken_input("edit_file", changed, edit, workspace)
        assert taken == {"path": "b", "edits": [{"old": "x", "new": "z"}]}
        taken = taken_input("delegate", {"prompt": "other"}, {"tasks": ["one"]}, workspace)
        assert taken == {"tasks": ["other"]}
        taken = taken_input(
            "read_file", {"file_path": "/etc/x", "offset": 3, "limit": 2}, {}, workspace
        )
        assert taken == {"path": "/etc/x", "start": 3, "end": 4}


# --- where a hook is written ----------------------------------------------------------------------

SETTINGS = """{
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [
        {"type": "command", "command": "echo \\"no\\" >&2; exit 2"}
      ]}
    ],
    "Stop": [{"hooks": [{"type": "command", "command": "true"}]}]
  }
}
"""
CONFIG = """
[[hooks.commands.PreToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = 'echo "no" >&2; exit 2' }]

[[hooks.commands.Stop]]
hooks = [{ type = "command", command = "true" }]

[[hooks.commands.PreToolUse]]
hooks = [{ type = "command", command = "true" }]
"""


@pytest.mark.parametrize(
    ("text", "lines"), [(SETTINGS, {5, 8}), (CONFIG, {4, 7, 10})], ids=["settings.json", "config.toml"]
)
async def test_a_command_hook_is_placed_by_its_file_and_line(app, places, text, lines):
    path = places.user if text is SETTINGS else app.home / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    app.config.reload()
    async with app.running():
        event = ToolCallEvent("c1", "shell", {"command": "true"})
        assert (await app.hooks.call(event, app.context("s"))).denied
        traces = await Tracing.of(app).store()
        (kept,) = [r for r in (await traces.read()).records if r.name == "tool_call"]
        attached = [*app.hooks["tool_call"].run_order(), *app.hooks["agent_stop"].run_order()]
    (own,) = [each for each in kept.handlers if each.by == "command hooks"]
    assert own.place.startswith(f"{path}:")
    found = [each for impl in attached for each in impl.location.split(", ") if str(path) in each]
    assert {int(each.rpartition(":")[2]) for each in found} == lines

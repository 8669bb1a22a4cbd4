"""Hooks that fail: what counts as a failure, who is told, what denies; and nothing is left running."""

import asyncio
import time
from pathlib import Path

import pytest

from hookline.events import ToolCallEvent
from hookline.ext.command_hooks.answer import LONGEST, of_output
from hookline.ext.command_hooks.settings import CommandHook
from hookline.models import Call, Turn

from ..tables import each_row


async def judged(app):
    """What becomes of a call of the shell."""
    async with app.running():
        event = ToolCallEvent("c1", "shell", {"command": "echo ran"})
        return await app.hooks.call(event, app.context("s"))


def gone(pid: int) -> bool:
    """Whether a process is no more; one that nobody has reaped yet does nothing either."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


FAILURES = {
    "another exit code": ("echo broken >&2; exit 3", "exit code 3: broken"),
    "a missing program": ("no-such-program-here", "exit code 127"),
    "a program that is no program": ("/", "exit code 126"),
    "its own death": ("kill -9 $$", "ended by SIGKILL"),
    "JSON that is none": ("echo '{not json'", "not JSON"),
    "a decision that is none": ("""echo '{"decision": "maybe"}'""", "decision 'maybe'"),
    "a permission that is none": (
        """echo '{"hookSpecificOutput": {"permissionDecision": 5}}'""",
        "permissionDecision 5",
    ),
    "an input that is no table": (
        """echo '{"hookSpecificOutput": {"updatedInput": [1]}}'""",
        "updatedInput of its answer must be an object",
    ),
    "an answer to another event": (
        """echo '{"hookSpecificOutput": {"hookEventName": "Stop"}}'""",
        "answered for 'Stop'",
    ),
    "more output than is kept": ("head -c 3000000 /dev/zero", "more than 1,000,000 bytes"),
    "too much time": ("sleep 30", "longer than 0.3 s"),
}


class TestFailMode:
    @pytest.mark.parametrize(("command", "told"), FAILURES.values(), ids=FAILURES.keys())
    async def test_a_failure_is_told_and_blocks_nothing(self, app, places, said, command, told):
        places.on("PreToolUse", command, timeout=0.3 if "sleep" in command else 30)
        assert (await judged(app)).allowed
        assert told in said[0]
        assert str(places.user) in said[0]
        assert "hooks.PreToolUse[1].hooks[1]" in said[0]

    @pytest.mark.parametrize(("command", "told"), FAILURES.values(), ids=FAILURES.keys())
    async def test_a_failure_of_a_hook_that_guards_denies(self, app, places, command, told):
        limit = 0.3 if "sleep" in command else 30
        places.on("PreToolUse", command, on_failure="deny", timeout=limit)
        verdict = await judged(app)
        assert verdict.denied
        assert told in verdict.reason

    async def test_a_program_with_arguments_that_is_missing_is_told(self, app, places, said):
        places.on("PreToolUse", "/no/such/program", args=["x"])
        assert (await judged(app)).allowed
        assert "cannot be started: No such file or directory" in said[0]

    async def test_arguments_are_not_for_the_shell(self, app, places):
        out = places.folder / "out"
        places.on("PreToolUse", "/bin/sh", args=["-c", 'echo "$1" > ' + str(out), "x", "$HOME; *"])
        assert (await judged(app)).allowed
        assert out.read_text() == "$HOME; *\n"

    async def test_one_setting_makes_every_failure_a_deny(self, app, places):
        app.home.mkdir()
        (app.home / "config.toml").write_text('[hooks.commands]\non_failure = "deny"\n')
        places.on("PreToolUse", "exit 1")
        assert (await judged(app)).denied

    async def test_then_settings_that_cannot_be_read_deny_every_tool(self, app, places):
        app.home.mkdir()
        (app.home / "config.toml").write_text('[hooks.commands]\non_failure = "deny"\n')
        places.user.parent.mkdir()
        places.user.write_text("{")
        app.absences.on_load_error = "continue"
        verdict = await judged(app)
        assert verdict.denied
        assert "not JSON" in verdict.reason

    async def test_a_prompt_is_blocked_where_its_guard_fails(self, app, places, scripted):
        places.on("UserPromptSubmit", "exit 1", on_failure="deny")
        scripted("done")
        async with app.running():
            result = await app.process({"content": "hi"})
        assert result.outcome == "blocked"

    async def test_a_result_is_withheld_where_its_guard_fails(self, app, places, scripted):
        places.on("PostToolUse", "exit 1", on_failure="deny")
        seen = []
        app.hooks.register("tool_execution_end", lambda event: seen.append(event.tool_result))
        scripted(Turn(tool_calls=[Call("shell", {"command": "echo secret"})]), "done")
        async with app.running():
            await app.process({"content": "hi"})
        assert "secret" not in seen[0].content
        assert "withheld" in seen[0].content


DENY = '{"hookSpecificOutput": {"permissionDecision": "deny"}}'
BLOCK = '{"decision": "block", "reason": "no"}'


class TestDenialsInDisguise:
    """A deny that a shell, a runtime or a mistake wraps in something else lets nothing through."""

    @each_row("answer", [DENY, BLOCK])
    @each_row("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @each_row("before", ["", "\n\n"])
    @each_row("after", ["", "\r\n", "\0", "\0\n"])
    def test_an_encoded_deny_denies(self, before, after, encoding, answer):
        printed = f"{before}{answer}{after}".encode(encoding)
        assert of_output(CommandHook("PreToolUse", "a hook"), printed).block

    @each_row("answer", [DENY, BLOCK, '{"continue": false}', '{"permissionDecision": "deny"}'])
    @each_row("before", ["warning: old\n", "a\nb\r\n", "[1]\n", "\x1b[0m\n"])
    @each_row("event", ["PreToolUse", "UserPromptSubmit", "PostToolUse", "Stop"])
    def test_an_answer_after_other_output_is_a_failure(self, event, before, answer):
        printed = f"{before}{answer}".encode()
        assert of_output(CommandHook(event, "a hook"), printed).failure
        assert of_output(CommandHook(event, "a hook", on_failure="deny"), printed).block

    @each_row("printed", [f"{BLOCK}\ndone", "{not json", '{"permissionDecision": "deny"}', "{"])
    @each_row("event", ["PreToolUse", "UserPromptSubmit", "SessionStart"])
    def test_a_guards_answer_that_cannot_be_read_is_not_taken_for_context(self, event, printed):
        answer = of_output(CommandHook(event, "a hook", on_failure="deny"), printed.encode())
        assert answer.block
        assert not answer.context

    @each_row("printed", ["fine", "see {this}\n{that}", 'text\n{"a": 1}', "{curly} text", "a\n{", ""])
    def test_plain_text_is_still_context(self, printed):
        answer = of_output(CommandHook("UserPromptSubmit", "a hook"), printed.encode())
        assert not answer.failure
        assert answer.context == printed


class TestOutput:
    async def test_bytes_that_are_no_text_do_no_harm(self, app, places):
        places.on("PreToolUse", r"printf '\377\376 no' >&2; exit 2")
        verdict = await judged(app)
        assert verdict.denied
        assert verdict.reason.endswith(" no")

    async def test_a_long_context_is_cut(self, app, places, scripted):
        places.on("UserPromptSubmit", "head -c 500000 /dev/zero | tr '\\0' x")
        scripted("done")
        async with app.running():
            result = await app.process({"content": "hi"})
        assert "490,000 characters left out" in result.prompt
        assert len(result.prompt) < LONGEST + 100

    async def test_braces_that_are_no_json_are_context_where_text_is(self, app, places, scripted):
        places.on("UserPromptSubmit", "echo '{braces}'")
        scripted("done")
        async with app.running():
            assert (await app.process({"content": "hi"})).prompt == "{braces}\n\nhi"

    async def test_a_large_input_arrives_whole(self, app, places):
        places.on("PreToolUse", places.recording())
        text = "ü" * 300_000
        async with app.running():
            event = ToolCallEvent("c1", "write_file", {"path": "a", "content": text})
            await app.hooks.call(event, app.context("s"))
        assert places.noted()[0]["tool_input"]["content"] == text

    async def test_a_hook_that_does_not_read_a_large_input_is_not_in_the_way(self, app, places):
        places.on("PreToolUse", "exit 0", on_failure="deny")
        async with app.running():
            event = ToolCallEvent("c1", "write_file", {"path": "a", "content": "x" * 1_000_000})
            verdict = await app.hooks.call(event, app.context("s"))
        assert verdict.allowed


class TestNothingIsLeftRunning:
    def stubborn(self, places) -> str:
        """Ignores being asked to end, and has a child that does too."""
        pids = places.folder / "pids"
        child = f"(trap '' TERM; echo $BASHPID >> {pids}; sleep 60)"
        return f"trap '' TERM; {child} & echo $$ >> {pids}; sleep 60"

    def pids(self, places) -> list[int]:
        return [int(line) for line in (places.folder / "pids").read_text().split()]

    async def test_after_a_time_limit(self, app, places):
        for limit in (0.5, 2, 8, 30):  # a busy machine may need longer to start both
            places.on("PreToolUse", self.stubborn(places), timeout=limit, on_failure="deny")
            (places.folder / "pids").write_text("")
            assert (await judged(app)).denied
            if len(self.pids(places)) == 2:
                break
        assert len(self.pids(places)) == 2
        assert all(gone(pid) for pid in self.pids(places))

    async def test_after_a_cancelled_turn(self, app, places):
        places.on("PreToolUse", self.stubborn(places))
        task = asyncio.create_task(judged(app))
        while not (places.folder / "pids").exists() or len(self.pids(places)) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(gone(pid) for pid in self.pids(places))

    async def test_after_a_hook_that_left_something_in_the_background(self, app, places):
        pids = places.folder / "pids"
        places.on("PreToolUse", f"sleep 60 & echo $! > {pids}; echo fine")
        assert (await judged(app)).allowed
        assert all(gone(pid) for pid in self.pids(places))

    async def test_no_descriptor_stays_open(self, app, places):
        places.on("PreToolUse", "exit 0", "/no/such/thing", "sleep 9", timeout=0.2)
        async with app.running():
            event = ToolCallEvent("c1", "shell", {"command": "true"})
            await app.hooks.call(event, app.context("s"))
            before = len([*Path("/proc/self/fd").iterdir()])
            for _ in range(3):
                await app.hooks.call(event, app.context("s"))
            assert len([*Path("/proc/self/fd").iterdir()]) == before

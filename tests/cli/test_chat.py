"""`hookline chat`, as a person meets it: in a real pseudo-terminal, on a pipe, on a dumb terminal."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pyte
import pytest
import typer
from rich.console import Console

from hookline.channel import exact
from hookline.cli.chat.blocks import LIMIT, Blocks
from hookline.cli.chat.completion import files
from hookline.cli.chat.page import BURST
from hookline.cli.chat.screen import BATCH, Screen
from hookline.cli.doctor import examine
from hookline.errors import BadInput
from hookline.hooks import hookimpl
from hookline.runtime.session_index import project_name
from hookline.runtime.user_commands import SlashCommand, command_from, plugin_commands, written
from hookline.runtime.user_tools import arguments_of
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.types import StreamEvent

from .. import forks
from ..tables import each_row
from ..terminals import Child

pytestmark = pytest.mark.slow

SCRIPT = """
from hookline.models.script import Call, Fault, Turn

SLOW = "".join(f"word{i:03d} " for i in range(400))
turns = [
    Turn(
        "A **bold** word and `code`.", match="^hello", chunk=3,
        usage={"input_tokens": 1200, "output_tokens": 34},
    ),
    Turn(SLOW, match="slow", chunk=8, delay=0.01),
    Turn("Looking.", match="touch", tool_calls=[Call("shell", {"command": "touch made; seq 1 9"})]),
    Turn("Touched.", match="touch"),
    Turn("Answer.", match="think", reasoning="Let me think."),
    Turn(match="break", error=Fault("the model broke")),
    Turn("Plain again.", match="after"),
    Turn("The file says hello.", match="(?s)look.*notes.txt:.*hello"),
    Turn(
        "Dear.", match="price", tool_calls=[Call("todo", {})],
        usage={"input_tokens": 1000, "output_tokens": 10, "cost": 0.02},
    ),
    Turn("Done.", match="price", usage={"input_tokens": 1000, "output_tokens": 10, "cost": 0.0123}),
    Turn("Two lines it was.", match="first\\nsecond"),
    Turn("Escape \\x1b[31mred\\x1b[0m done.", match="escape"),
]
repeat = True
"""

APP = """
import asyncio
import sys
from hookline.runtime.app import Hookline
from hookline.cli.chat import start
from hookline.events import ToolCallEventResult
from hookline.policy import Policy

app = Hookline(model=sys.argv[1], policy=Policy(default="allow"))
app.load_hooks(packages=False)
if sys.argv[2] == "ask":
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="really?"))
if sys.argv[2] == "deny":
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(block=True, reason="not here"))
if sys.argv[2] == "follow":
    def follow(event, ctx):
        message = {"content": "after", "session_id": ctx.session_id}
        app.started = asyncio.create_task(app.process(message))
    app.hooks.register("settled", follow, once=True)
start(app)
"""


@pytest.fixture
def place(tmp_path):
    workspace = tmp_path / "work"
    (workspace / "deep").mkdir(parents=True)
    (workspace / "notes.txt").write_text("hello")
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "app.py").write_text(APP)
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[policy]\ndefault = "allow"\n')
    return SimpleNamespace(
        workspace=workspace,
        home=home,
        model=f"scripted:{tmp_path / 'script.py'}",
        app=str(tmp_path / "app.py"),
    )


def command_for(place, mode):
    if mode:
        return [sys.executable, place.app, place.model, mode]
    return [sys.executable, "-m", "hookline", "chat", "--model", place.model]


def environment(place, **more):
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "HOOKLINE_HOME": str(place.home), "TERM": "xterm-256color", **more}


class Terminal:
    """A chat in a pseudo-terminal, with the screen that a person would see."""

    def __init__(self, place, mode="", rows=30, columns=80, **env):
        if mode in ("ask", "deny"):
            command = [Path(place.app).read_text(), place.model, mode]
        else:
            command = [forks.MAIN, "chat", "--model", place.model, *filter(None, [mode])]
        self.screen = pyte.HistoryScreen(columns, rows, history=5000)
        self.stream = pyte.Stream(self.screen)
        self.raw = ""
        self.child = Child(
            *command, cwd=place.workspace, env=environment(place, **env), dimensions=(rows, columns)
        )

    @property
    def text(self):
        gone = [
            "".join(line[x].data for x in range(self.screen.columns))
            for line in self.screen.history.top
        ]
        return "\n".join(line.rstrip() for line in [*gone, *self.screen.display])

    def pump(self, seconds=0.05):
        try:
            data = self.child.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return
        self.raw += data
        self.stream.feed(data)
        if "\x1b[6n" in data:  # it asks where the cursor is
            self.child.send(f"\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R")

    def see(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, f"{pattern!r} did not show:\n{self.text}"
            self.pump(1)

    def see_prompt(self):
        """The prompt is back, empty, with its status line."""
        self.see(r"(?m)^>\s*\n(?s:.*)tokens · ")
        for _ in range(3):
            self.pump()

    def type(self, text):
        self.child.send(text)

    def end(self):
        end = time.monotonic() + 60
        while self.child.isalive():
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
            try:
                self.pump()
            except pexpect.EOF:
                break
        self.child.close()
        return self.child.exitstatus


@pytest.fixture
def terminal(place):
    opened = []

    def open_(mode="", **options):
        opened.append(Terminal(place, mode, **options))
        opened[-1].see_prompt()
        return opened[-1]

    yield open_
    for each in opened:
        each.child.close(force=True)


def tape(place):
    session = f"terminal:{project_name(place.workspace)}"
    done = forks.run(forks.MAIN, "tape", "show", session, "--json", env=environment(place))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class TestOnATerminal:
    def test_markdown_is_rendered_and_the_status_line_counts(self, terminal):
        chat = terminal()
        chat.type("hello\r")
        chat.see(r"A bold word and code\.")
        assert "**" not in chat.text
        chat.see(r"script\.py · 1,234 tokens · work-[0-9a-f]{8}")

    def test_the_status_line_tells_what_the_turn_and_the_session_cost(self, terminal):
        chat = terminal()
        chat.type("price\r")
        chat.see(r"2,020 tokens · \$0\.0323 \(\+\$0\.0323\) · work-[0-9a-f]{8}")
        chat.see_prompt()
        chat.type("price\r")
        chat.see(r"4,040 tokens · \$0\.0646 \(\+\$0\.0323\)")
        chat.see_prompt()
        chat.type("/session\r")
        chat.see(r"session terminal:work-\w+: \d+ messages, 4,040 tokens, \$0\.0646")
        chat.see_prompt()
        chat.type("\x04")
        assert chat.end() == 0
        again = terminal()
        again.see(r"4,040 tokens · \$0\.0646 · work-[0-9a-f]{8}")

    def test_a_mentioned_file_goes_with_the_message_and_a_missing_one_is_told(self, terminal):
        chat = terminal()
        chat.type("look at @nots.txt \r")
        chat.see(r"✗ @nots\.txt cannot be attached: .*did you mean\s+'notes\.txt'")
        chat.see_prompt()
        chat.type("look at @notes.txt \r")
        chat.see(r"attached: notes\.txt")
        chat.see("The file says hello.")

    def test_an_answer_shows_while_it_comes_and_ctrl_c_stops_it(self, terminal, place):
        chat = terminal()
        chat.type("slow\r")
        chat.see("word020")
        assert "word399" not in chat.text
        chat.child.sendintr()
        chat.see("stopped")
        chat.see_prompt()
        chat.type("after\r")
        chat.see("Plain again.")
        chat.see_prompt()
        chat.type("\x04")
        assert chat.end() == 0
        statuses = [e["payload"]["status"] for e in tape(place) if e["kind"] == "turn"]
        assert statuses == ["started", "cancelled", "started", "completed"]

    def test_ctrl_c_wipes_the_line_and_leaves_when_it_is_empty(self, terminal):
        chat = terminal()
        chat.type("something")
        chat.see("> something")
        chat.type("\x03")
        chat.see_prompt()
        assert chat.child.isalive()
        chat.type("\x03")
        assert chat.end() == 0

    def test_being_asked_to_end_ends_the_turn_too(self, terminal, place):
        chat = terminal()
        chat.type("slow\r")
        chat.see("word020")
        chat.child.kill(signal.SIGTERM)
        assert chat.end() == 143
        assert tape(place)[-1]["payload"]["status"] == "cancelled"

    def test_a_resize_during_an_answer_is_survived(self, terminal):
        chat = terminal()
        chat.type("slow\r")
        chat.see("word050")
        chat.child.setwinsize(20, 50)
        chat.screen.resize(20, 50)
        chat.see("word150")
        chat.child.setwinsize(35, 100)
        chat.screen.resize(35, 100)
        chat.see("word399")
        chat.type("after\r")
        chat.see("Plain again.")

    def test_commands_and_files_are_completed(self, terminal):
        chat = terminal()
        chat.type("/he\t")
        chat.see(r"> /help")
        chat.type("\r")
        chat.see(r"/clear +Wipe the screen")
        chat.see_prompt()
        chat.type("look at @no\t")
        chat.see(r"> look at @notes\.txt")

    def test_a_tool_call_is_shown_with_its_result_folded_and_show_unfolds_it(self, terminal, place):
        chat = terminal()
        chat.type("touch\r")
        chat.see(r'● shell \{"command": "touch made; seq 1 9"\}')
        chat.see(r"└ … 6 more lines, /show unfolds\n    7\n    8\n    9\n    \[exit code 0\]")
        chat.see(r"Touched\.")
        assert (place.workspace / "made").exists()
        chat.see_prompt()
        chat.type("/show\r")
        chat.see(r"\n1\n2\n")

    def test_thinking_is_dimmed(self, terminal):
        chat = terminal()
        chat.type("think\r")
        chat.see("Answer.")
        assert re.search(r"\x1b\[2;3mLet me think", chat.raw)

    def test_a_failed_turn_is_one_line_and_the_chat_goes_on(self, terminal):
        chat = terminal()
        chat.type("break\r")
        chat.see("✗ the model broke")
        assert "Traceback" not in chat.text
        chat.see_prompt()
        chat.type("after\r")
        chat.see("Plain again.")

    def test_several_lines_by_alt_enter_a_backslash_or_pasting(self, terminal):
        chat = terminal()
        for typed in (
            "first\x1b\rsecond\r",
            "first\\\rsecond\r",
            "\x1b[200~first\nsecond\x1b[201~\r",
        ):
            before = chat.text.count("Two lines it was.")
            chat.type(typed)
            chat.see(rf"(?s)(Two lines it was\..*){{{before + 1}}}")
            chat.see_prompt()

    def test_an_answer_cannot_steer_the_terminal(self, terminal):
        chat = terminal()
        chat.type("escape\r")
        chat.see(r"Escape red done")
        assert "\x1b[31mred" not in chat.raw

    def test_what_was_typed_is_kept_for_its_owner_and_comes_back(self, terminal, place):
        chat = terminal()
        chat.type("hello\r")
        chat.see("A bold word")
        chat.see_prompt()
        chat.type("\x04")
        assert chat.end() == 0
        assert (place.home / "chat_history").stat().st_mode & 0o777 == 0o600
        again = terminal()
        again.see("1,234 tokens")
        again.type("\x1b[A")
        again.see("> hello")

    def test_no_color_means_none(self, terminal):
        chat = terminal(NO_COLOR="1")
        chat.type("hello\r")
        chat.see("A bold word and code.")
        chat.see_prompt()
        chat.type("touch\r")
        chat.see("Touched.")
        styles = {
            code for found in re.findall(r"\x1b\[([\d;]*)m", chat.raw) for code in found.split(";")
        }
        assert not [code for code in styles if code and 30 <= int(code) <= 107]

    def test_slash_commands(self, terminal):
        chat = terminal()
        for typed, shown in [
            ("/tools\r", r"/shell command=…"),
            ("/model scripted:nope.py\r", r"✗ .*nope\.py"),
            ("/hooks resolve_session\r", r"Name the session"),
            ("/session\r", r"session terminal:work-\w+: 0 messages, 0 tokens"),
            ("/helq\r", r"✗ no command /helq; did you mean 'help'"),
        ]:
            chat.type(typed)
            chat.see(shown)
            chat.see_prompt()
        chat.type("/exit\r")
        assert chat.end() == 0


class TestSessions:
    """Branching, going back, shrinking and leaving, as they are typed."""

    def do(self, chat, *steps):
        for typed, shown in steps:
            chat.type(typed + "\r")
            chat.see(shown)
            chat.see_prompt()

    def test_a_session_is_forked_navigated_named_and_left(self, terminal, place):
        chat = terminal(columns=100)
        session = f"terminal:{project_name(place.workspace)}"
        self.do(
            chat,
            ("hello one", r"A bold word"),
            ("after that", r"Plain again"),
            ("/tree", r"1  hello one(?s:.*)2  after that"),
            ("/label start 1", r"labelled start"),
            ("/fork 2 before", r"a fork of terminal:work-\w+: terminal:work-\w+#"),
            ("/tree", r"1  hello one"),
            (f"/switch {session}", r"session terminal:work-\w+: \d+ messages, last used"),
            ("/tree start", r"hello one(?s:.*)← here"),
            ("/name my talk", r"called my talk"),
            ("/resume", r"→ terminal:work-\w+ .*my talk"),
            ("/new work", r"a new session: work"),
            ("/think hi\t", r"thinking: high"),
            ("/think harder", r"✗ thinking must be one of off, low, medium, high"),
            ("/resume my talk", r"session terminal:work-\w+: "),
            ("/tree 99", r"✗ the tree has the numbers 1 to"),
            ("/switch nowhere", r"✗ there is no session 'nowhere'"),
            ("/export talk.html", r"written to .*talk\.html"),
        )
        assert "hello one" in (place.workspace / "talk.html").read_text()

    def test_a_session_is_compacted_and_handed_off(self, terminal):
        chat = terminal()
        self.do(
            chat,
            ("/compact", r"✗ there is no session"),
            ("hello one", r"A bold word"),
            ("after that", r"Plain again"),
            ("/compact keep it short", r"compacted\. The model goes on from"),
            ("/handoff next: we said hello", r"handed off: next"),
        )

    def test_the_persons_shell_runs_and_the_agent_hears_of_it(self, terminal, place):
        chat = terminal("ask")  # the person's own commands pass the same gates
        chat.type("!echo from me > made\r")
        chat.see(r"allow it\?")  # what is typed before the question is not an answer to it
        chat.type("y\r")
        chat.see_prompt()
        assert (place.workspace / "made").read_text() == "from me\n"
        chat.type("!!touch hidden\r")
        chat.see(r"(?s)really\?.*really\?")
        chat.type("n\r")
        chat.see_prompt()
        assert not (place.workspace / "hidden").exists()

    def test_a_turn_that_was_cut_off_goes_on_when_the_chat_comes_back(self, terminal, place):
        chat = terminal()
        chat.type("slow\r")
        chat.see("word003")
        chat.child.kill(signal.SIGKILL)
        again = terminal()
        again.see("the last turn was cut off; going on with it")
        again.see("word399", seconds=30)
        again.see_prompt()

    def test_the_latest_session_is_continued(self, terminal, place):
        chat = terminal()
        self.do(chat, ("/new work", "a new session: work"), ("hello", "A bold word"))
        chat.type("\x04")
        assert chat.end() == 0
        again = terminal("--continue")
        again.see(r"tokens · work")


class TestApproval:
    def test_a_yes_lets_the_call_run(self, terminal, place):
        chat = terminal("ask")
        chat.type("touch\r")
        chat.see(
            r'\? really\?\n  shell \{"command": "touch made; seq 1 9"\}\n'
            r"  allow it\? \[y/N/session/minutes/why not\]"
        )
        assert not (place.workspace / "made").exists()
        chat.type("y\r")
        chat.see("Touched.")
        assert (place.workspace / "made").exists()

    @pytest.mark.parametrize("answer", ["n\r", "\r", "maybe\r"])
    def test_anything_else_does_not(self, terminal, place, answer):
        chat = terminal("ask")
        chat.type("touch\r")
        chat.see("allow it")
        chat.type(answer)
        chat.see(r"✗ shell was rejected: really\?")
        chat.see_prompt()
        assert not (place.workspace / "made").exists()

    def test_ctrl_c_at_the_question_stops_the_turn(self, terminal, place):
        chat = terminal("ask")
        chat.type("touch\r")
        chat.see("allow it")
        chat.type("\x03")
        chat.see("stopped")
        chat.see_prompt()
        assert not (place.workspace / "made").exists()
        chat.type("after\r")
        chat.see("Plain again.")

    def test_a_call_by_hand_passes_the_same_gates(self, terminal, place):
        chat = terminal("deny")
        chat.type("/shell touch made\r")
        chat.see("✗ not here")
        chat.see_prompt()
        assert not (place.workspace / "made").exists()

    def test_by_default_what_writes_is_asked_about_and_always_is_remembered(self, terminal, place):
        (place.home / "config.toml").unlink()
        chat = terminal()
        chat.type("touch\r")
        chat.see(r"run shell\?\n  shell .*\n  allow it\? \[y/N/session/minutes/why not\]")
        assert not (place.workspace / "made").exists()
        chat.type("always\r")
        chat.see("Touched.")
        chat.see_prompt()
        (place.workspace / "made").unlink()
        chat.type("touch\r")
        chat.see(r"Touched\.(.|\n)*Touched\.")
        assert (place.workspace / "made").exists()
        assert len(re.findall(r"allow it\?", chat.text)) == 1

    def test_a_call_by_hand_runs_and_is_on_the_tape(self, terminal, place):
        chat = terminal()
        chat.type('/shell {"command": "touch made; echo done"}\r')
        chat.see("└ done")
        chat.see_prompt()
        assert (place.workspace / "made").exists()
        assert [entry["kind"] for entry in tape(place)] == ["tool_call", "tool_result"]

    def test_what_cannot_be_seen_is_spelled_out(self):
        call = exact("shell", {"command": "rm x\u202ey\x1b[1m\nls ü"})
        assert call == 'shell {"command": "rm x\\u202ey\\u001b[1m\\nls ü"}'


class TestPlain:
    def chat(self, place, text, mode="", **env):
        return subprocess.run(
            command_for(place, mode), input=text if isinstance(text, bytes) else text.encode(),
            capture_output=True, env=environment(place, **env), cwd=place.workspace, check=False,
        )  # fmt: skip

    def test_a_pipe_gets_the_text_and_nothing_else(self, place):
        done = self.chat(place, "hello\n\ntouch\nbreak\n/shell echo hi\nafter")
        assert done.returncode == 0
        assert done.stdout.decode() == (
            "A **bold** word and `code`.\nLooking.\nTouched.\nhi\n[exit code 0]\nPlain again.\n"
        )
        assert done.stderr.decode() == (
            '→ shell {"command": "touch made; seq 1 9"}\nhookline: the model broke\n'
        )

    def test_the_answer_of_a_turn_that_a_plugin_starts_is_shown(self, place):
        done = self.chat(place, "hello\nthink\n", "follow")
        shown = done.stdout.decode().splitlines()
        assert shown == ["A **bold** word and `code`.", "Plain again.", "Answer."]

    def test_nobody_answers_on_a_pipe(self, place):
        done = self.chat(place, "touch\ny\n", "ask")
        assert b"needs approval and nobody answered" in done.stderr
        assert not (place.workspace / "made").exists()

    def test_a_line_that_is_no_text_is_left_out(self, place):
        done = self.chat(place, b"\xff\xfe\nafter\n")
        assert (done.returncode, done.stdout) == (0, b"Plain again.\n")
        assert b"not UTF-8" in done.stderr

    def test_an_unknown_model_is_told_at_once(self, place):
        place.model = "nope:1"
        done = self.chat(place, "hello\n")
        assert done.returncode == 2
        assert b"unknown model 'nope:1'" in done.stderr

    def test_a_dumb_terminal_gets_no_escape_codes_and_can_answer(self, place):
        program, *arguments = command_for(place, "ask")
        child = pexpect.spawn(
            program, arguments, cwd=str(place.workspace), encoding="utf-8", timeout=60,
            env=environment(place, TERM="dumb"),
        )  # fmt: skip
        child.expect_exact("> ")
        child.sendline("touch")
        child.expect_exact("allow it? [y/N/session/minutes/why not] ")
        child.sendline("y")
        child.expect_exact("Touched.\r\n> ")
        seen = child.before
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0
        assert "\x1b" not in seen + child.before


class TestTheCostOfStreaming:
    @each_row(
        ("piece", "count", "seconds"),
        [
            ("word ", 100_000, 0.0001),
            ("unbroken", 20_000, 0.0001),
            ("a line\n", 20_000, 0.0001),
            ("word ", 300, 1.0),
            ("one\n\n", 500, 0.001),
            ("- item\n", 500, 0.01),
            ("```\n", 500, 0.01),
            ("|a|b|\n|-|-|\n|1|2|\n", 200, 0.01),
        ],
    )
    def test_the_work_is_linear_and_the_memory_bounded(self, piece, count, seconds):
        now = 0.0
        drawn = 0

        class Counting(io.StringIO):
            def write(self, text):
                nonlocal drawn
                drawn += bool(text)
                return len(text)

        screen = Screen(Console(file=Counting(), force_terminal=True, width=80, height=24), lambda: now)
        screen.begin()
        longest = 0
        for _ in range(count):
            now += seconds
            screen.event(StreamEvent("text", {"delta": piece}))
            longest = max(longest, screen._blocks._size)
        screen.end()
        frames = min(count, count * seconds * 15) + 2
        assert longest <= 3 * LIMIT
        assert screen.rendered <= 2 * count * (len(piece) + 8) + frames * 3 * LIMIT
        assert drawn <= frames + 2 * count

    def test_a_flood_is_written_whole_and_as_it_is_and_nothing_of_it_is_kept(self):
        written = io.StringIO()
        console = Console(file=written, force_terminal=True, width=80, height=24)
        screen = Screen(console, lambda: 0.0)  # all of it comes in one moment
        screen.begin()
        held = 0
        for number in range(100_000):
            screen.event(StreamEvent("text", {"delta": f"w{number} "}))
            if number % 10 == 9:
                screen.event(StreamEvent("text", {"delta": "\n\n"}))
            waiting = sum(len(block) for block, _ in screen._ready)
            held = max(held, screen._blocks._size + waiting)
        screen.end()
        assert held <= BATCH + 3 * LIMIT
        assert screen.rendered <= BURST + 3 * LIMIT
        assert re.findall(r"w\d+", written.getvalue()) == [f"w{number}" for number in range(100_000)]

    def test_what_comes_while_a_question_is_asked_waits(self):
        written = io.StringIO()
        screen = Screen(Console(file=written, width=80, height=24))
        screen.begin()
        screen.pause()
        before = written.getvalue()
        screen.event(StreamEvent("tool_call", {"name": "shell", "arguments": "{}"}))
        screen.event(StreamEvent("text", {"delta": "later"}))
        assert written.getvalue() == before
        screen.resume()
        screen.end()
        assert re.search(r"(?s)● shell \{\}.*later", written.getvalue())

    def test_blocks_lose_nothing(self):
        text = "# A\n\nb *c*\nd\n\n1. x\n\n2. y\n   z\n\nend\n```py\na = 1\n\nb = 2\n```\nlast"
        for size in (1, 2, 7, 1000):
            blocks = Blocks()
            given = [b for i in range(0, len(text), size) for b in blocks.take(text[i : i + size])]
            given += blocks.close()
            assert [block.strip() for block in given] == [
                "# A", "b *c*\nd", "1. x\n\n2. y\n   z", "end", "```py\na = 1\n\nb = 2\n```", "last",
            ]  # fmt: skip

    def test_a_long_code_block_is_cut_into_blocks_that_are_code_each(self):
        blocks = Blocks()
        given = [*blocks.take("```py\n" + "x = 1\n" * 1000 + "```\nafter"), *blocks.close()]
        assert len(given) > 2
        assert all(b.startswith("```py\n") and b.rstrip().endswith("```") for b in given[:-1])
        assert sum(b.count("x = 1") for b in given) == 1000


class TestCommands:
    @tool(side_effects="none", registry=Registry())
    def two(name: str, count: int = 1) -> str:
        """Two."""
        return name * count

    @pytest.mark.parametrize(
        ("text", "arguments"),
        [
            ('{"name": "x", "count": 2}', {"name": "x", "count": 2}),
            ("name=x count=2", {"name": "x", "count": 2}),
            ("name='a b' count=many", {"name": "a b", "count": "many"}),
            ("just a text", {"name": "just a text"}),
            ("FOO=1 make", {"name": "FOO=1 make"}),
            ("name=5", {"name": "5"}),
            ("", {}),
        ],
    )
    def test_arguments_may_be_written_in_three_ways(self, text, arguments):
        assert arguments_of(self.two, text) == arguments

    def test_broken_json_is_told(self):
        with pytest.raises(BadInput, match="not valid JSON"):
            arguments_of(self.two, "{name: x}")

    def test_a_path_is_no_command(self):
        assert written("/etc/hosts is a file") is None
        assert written(" /help") is None
        assert written("/help") == ("help", "")
        assert written("/a.b x\ny ") == ("a.b", "x\ny")

    async def test_plugins_bring_theirs_and_a_broken_one_is_left_out(self, app):
        class Good:
            @hookimpl
            def register_commands(self):
                def shelf(text):
                    """Where it stands."""
                    return f"shelf {text}"

                return [shelf, {"name": "b", "help": "B.", "handler": lambda app, text: None},
                        SlashCommand("c", "C.", lambda app, text: text)]  # fmt: skip

        class Bad:
            @hookimpl
            def register_commands(self):
                return [{"name": "no spaces please", "handler": print}]

        app.hooks.add(Good(), name="good")
        app.hooks.add(Bad(), name="bad")
        found, wrong = plugin_commands(app)
        assert {c.name: c.help for c in found.values()} == {
            "shelf": "Where it stands.",
            "b": "B.",
            "c": "C.",
        }
        assert found["shelf"].handler(app, "x") == "shelf x"
        assert len(wrong) == 1
        assert wrong[0].startswith("bad: register_commands failed: a command needs a name")
        assert command_from(found["c"]) is found["c"]
        assert [(failure.plugin, failure.stage) for failure in app.failures] == [
            ("bad", "register_commands")
        ]

    def test_the_doctor_names_a_plugin_whose_commands_cannot_be_used(self, app, capsys):
        class Bad:
            @hookimpl
            def register_commands(self):
                raise RuntimeError("no commands today")

        app.hooks.add(Bad(), name="bad")
        with pytest.raises(typer.Exit) as left:
            examine(app)
        assert left.value.exit_code == 1
        assert re.search(
            r"!!\s+plugin\s+bad: register_commands failed: .*no commands today", capsys.readouterr().out
        )

    def test_files_are_found_by_folder_and_by_name(self, tmp_path):
        for path in ("src/deep/nodes.py", "notes.txt", "node_modules/not.js", ".git/no"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("")
        (tmp_path / "src" / "loop").symlink_to(tmp_path)
        assert files(tmp_path, "no") == ["node_modules/", "notes.txt", "src/deep/nodes.py"]
        assert files(tmp_path, "src/") == ["src/deep/", "src/loop/"]
        assert files(tmp_path, "../") == files(tmp_path, "/etc/") == files(tmp_path, "none/x") == []

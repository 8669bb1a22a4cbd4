"""What hooks print: never among JSON, and never in the middle of something else."""

import json
import subprocess
import sys

import pytest

from .. import commandline, forks
from ..plugins.site import Site
from ..tables import each_row
from . import test_chat
from .test_chat import Terminal

pytestmark = pytest.mark.slow

place = test_chat.place

NOISE = """
import atexit, ctypes, logging, os, subprocess, sys, threading, warnings

def noise():
    print("printed by a hook")
    print("printed without an end", end="", flush=True)
    sys.__stdout__.write("written to the first standard output\\n")
    os.write(1, b"written to the descriptor\\n")
    subprocess.run(["echo", "printed by a child"])
    logging.getLogger("noise").warning("logged")
    warnings.warn("warned")
    ctypes.CDLL(None).puts(b"printed by a library")
    thread = threading.Thread(target=print, args=["printed by a thread"])
    thread.start()
    thread.join()

logging.basicConfig(stream=sys.stdout, level="INFO")
atexit.register(print, "printed at the end")
noise()
"""
HOOKS = """
from hookline.events import MessageSendResult
from hookline.types import AudioPart, TextPart

def parts(event):
    noise()
    return MessageSendResult([TextPart("a text"), AudioPart(b"sound", "audio/wav")])

def heard(event):
    noise()

hooks = [(name, heard) for name in (
    "session_start", "context", "tool_call", "message_update", "agent_end", "session_shutdown",
)] + [("message:send", parts), ("hookline_startup", noise), ("hookline_shutdown", noise)]
"""
PLUGIN = """
from hookline import hookimpl

@hookimpl
def system_prompt():
    noise()
    return ""
"""
SCRIPT = """
[[turns]]
text = "Let me look."
tool_calls = [{ name = "list_files", arguments = {} }]

[[turns]]
text = "Done."
"""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """A home with hooks that print in every way there is, and one recorded session."""
    folder = tmp_path_factory.mktemp("noisy")
    hooks = folder / "home" / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "noise.py").write_text(NOISE + HOOKS)
    (folder / "turns.toml").write_text(SCRIPT)
    Site(folder / "site").install("loud", NOISE + PLUGIN)
    return folder


def new_process(noisy, *arguments, **streams):
    """`hookline` in a new interpreter, where the plugin of a package is imported, too."""
    env = commandline.environment(noisy / "home", PYTHONPATH=str(noisy / "site"))
    return subprocess.run(
        [sys.executable, "-m", "hookline", *arguments], cwd=noisy, env=env, text=True, timeout=120,
        check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )  # fmt: skip


RUN = ("run", "go", "--model", "scripted:turns.toml", "--session", "s")


class TestJson:
    def test_a_run_prints_one_object_whatever_plugins_and_hooks_print(self, noisy):
        done = new_process(noisy, *RUN, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["content"] == "Done."
        assert [part["type"] for part in found["parts"]] == ["text", "audio"]
        for way in ("by a hook", "by a child", "by a thread", "by a library", "at the end"):
            assert f"printed {way}" in done.stderr

    def test_a_run_that_cannot_start_prints_one_object(self, noisy):
        broken = noisy / "home" / "profiles" / "broken" / "hooks"
        broken.mkdir(parents=True)
        (broken / "guard.py").write_text(NOISE + "def :")
        done = forks.run(
            forks.MAIN, "--profile", "broken", *RUN, "--json",
            cwd=noisy, env=commandline.environment(noisy / "home"),
        )  # fmt: skip
        assert done.returncode == 2
        assert "guard.py" in json.loads(done.stdout)["message"]
        assert "guard.py" in done.stderr

    def test_standard_error_may_be_closed(self, noisy):
        line = f'exec "{sys.executable}" -m hookline {" ".join(RUN)} --json 2>&-'
        env = commandline.environment(noisy / "home")
        done = subprocess.run(
            ["sh", "-c", line], cwd=noisy, env=env, stdout=subprocess.PIPE, timeout=120, check=False
        )
        assert json.loads(done.stdout)["content"] == "Done."

    @each_row(
        "command",
        [
            ["tape", "show", "s", "--json"],
            ["why", "s", "--json"],
            ["hooks", "--json"],
            ["hooks", "stats", "--json"],
            ["plugins", "list", "--json"],
            ["config", "show", "--json"],
            ["policy", "explain", "list_files", "{}", "--json"],
            ["policy", "approvals", "--json"],
            ["doctor", "--coverage", "--json"],
            ["replay", "s", "--json"],
            ["backtest", "--json", "-"],
            ["mcp", "list", "--json"],
            ["bench", "--turns", "1", "--model", "scripted:turns.toml", "--json"],
        ],
    )
    def test_every_other_command_prints_json_alone(self, noisy, command):
        env = commandline.environment(noisy / "home")
        if not (noisy / "home" / "tape.db").exists():
            forks.run(forks.MAIN, *RUN, cwd=noisy, env=env)
        done = forks.run(forks.MAIN, *command, cwd=noisy, env=env)
        assert done.stdout.strip(), done.stderr
        if command[:2] == ["tape", "show"]:  # one object in each line
            assert all(json.loads(line) for line in done.stdout.splitlines())
        else:
            json.loads(done.stdout)

    def test_a_plugins_own_command_keeps_its_output(self, noisy):
        Site(noisy / "site").install(
            "speaker",
            """
            import typer
            from hookline import hookimpl

            print("imported")

            @hookimpl
            def register_cli_commands(app):
                @app.command()
                def speak(as_json: bool = typer.Option(False, "--json")):
                    print('{"said": true}')
            """,
        )
        done = new_process(noisy, "speak", "--json")
        assert json.loads(done.stdout.splitlines()[0]) == {"said": True}
        assert "imported" in done.stderr


WHOLE = """
def heard(event):
    print("a line of its own")

hooks = [("message_update", heard)]
"""


def hook_file(home, text):
    hooks = home / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "printing.py").write_text(text)


class TestText:
    """The answer comes in pieces, and a hook prints after each."""

    @pytest.fixture
    def printing(self, place):
        hook_file(place.home, WHOLE)
        return place

    def lines(self, text):
        return [line for line in text.splitlines() if line.strip()]

    def test_a_printed_line_does_not_break_into_the_answer_of_a_run(self, printing):
        done = forks.run(
            forks.MAIN, "run", "hello", "--model", printing.model,
            cwd=printing.workspace, env=commandline.environment(printing.home),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = self.lines(done.stdout)
        assert found.count("a line of its own") > 3
        rest = "".join(line for line in found if line != "a line of its own")
        assert rest == "A **bold** word and `code`."

    def test_nor_into_that_of_a_chat_on_a_pipe(self, printing):
        done = forks.run(
            forks.MAIN, "chat", "--model", printing.model, stdin="hello\n",
            cwd=printing.workspace, env=commandline.environment(printing.home),
        )  # fmt: skip
        rest = [line for line in self.lines(done.stdout) if line != "a line of its own"]
        assert "".join(rest) == "A **bold** word and `code`."

    def test_on_a_terminal_it_stands_above_what_is_still_growing(self, printing):
        chat = Terminal(printing)
        try:
            chat.see_prompt()
            chat.type("hello\r")
            chat.see(r"A bold word and code\.")
            chat.see_prompt()
            printed = [line for line in chat.text.splitlines() if "a line of its own" in line]
            assert len(printed) > 3
            assert set(printed) == {"a line of its own"}
            assert chat.text.count("A bold word and code.") == 1
        finally:
            chat.child.close(force=True)

    def test_while_a_person_types_it_stands_above_the_prompt_and_cannot_steer_the_terminal(self, place):
        hook_file(
            place.home,
            """
import logging, threading

def later(event):
    threading.Timer(1, speak).start()

def speak():
    print("from \\x1b[2J a thread")
    logging.getLogger("x").warning("a warning")

hooks = [("settled", later)]
""",
        )
        chat = Terminal(place)
        try:
            chat.see_prompt()
            chat.type("after\r")
            chat.see(r"Plain again\.")
            chat.see_prompt()
            chat.type("half a line")
            chat.see(r"(?m)^from \\u001b\[2J a thread$(?s:.*)^a warning$(?s:.*)^> half a line$")
            chat.type(", after\r")
            chat.see(r"(?s)half a line, after.*Plain again\.")
        finally:
            chat.child.close(force=True)

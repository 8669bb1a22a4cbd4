"""Notes and questions of hooks, and approvals, at the terminal: `run` and `chat`, and without one."""

import json
import os
import pty
import termios
from types import SimpleNamespace

import pexpect
import pytest
from pexpect.fdpexpect import fdspawn

from .. import forks
from ..commandline import environment, here

HOOKS = """
async def talk(event, ctx):
    ctx.notify("a note \\x1b[2Jwith an escape")
    answer = await ctx.ask("Proceed?", ["yes", "no"], default="no")
    ctx.notify(f"the answer is {answer}")

async def leave(event, ctx):
    if await ctx.ask("Leave without saving?", ["yes", "no"]) != "yes":
        return {"cancel": True}

hooks = [("agent_end", talk), ("session_before_switch", leave)]
"""
SCRIPT = """
from hookline.models.script import Call, Turn
turns = [
    Turn("Touching.", match="touch", tool_calls=[Call("shell", {"command": "touch made"})]),
    Turn("Touched.", match="touch"),
    Turn("Hello.", match=""),
]
repeat = True
"""


@pytest.fixture
def place(tmp_path):
    hooks = tmp_path / "home" / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "talk.py").write_text(HOOKS)
    (tmp_path / "home").chmod(0o700)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "work").mkdir()
    return SimpleNamespace(
        home=tmp_path / "home",
        hooks=hooks,
        work=tmp_path / "work",
        model=("--model", f"scripted:{tmp_path / 'script.py'}"),
    )


class Terminal(fdspawn):
    """A command in a pseudo-terminal that stays plain; standard output may go elsewhere."""

    def __init__(self, place, *arguments, stdout=None):
        master, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (40, 200))
        self.process = forks.fork(
            forks.MAIN,
            *arguments,
            *place.model,
            files=(terminal, terminal if stdout is None else stdout, terminal),
            terminal=True,
            cwd=place.work,
            env=environment(place.home, TERM="dumb"),
        )
        os.close(terminal)
        super().__init__(master, encoding="utf-8", timeout=60)
        self.delaybeforesend = None

    def see(self, text):
        self.expect_exact(text)

    def answers(self, text):
        self.send(f"{text}\n")

    def end(self):
        self.expect([pexpect.EOF])
        code = self.process.wait(60)
        self.close()
        return code


@pytest.mark.parametrize(
    ("typed", "counts"), [("yes", "yes"), ("Y", "yes"), ("", "no"), ("\x04", "no")]
)
def test_run_asks_on_the_terminal_and_prints_notes(place, typed, counts):
    run = Terminal(place, "run", "hi")
    run.see("hookline: a note \\u001b[2Jwith an escape")
    run.see("Proceed?")
    run.see("[yes/no, default no]")
    run.send(typed if typed == "\x04" else f"{typed}\n")
    run.see(f"hookline: the answer is {counts}")
    assert run.end() == 0


def test_run_asks_again_until_it_gets_one_of_the_choices(place):
    run = Terminal(place, "run", "hi")
    run.see("[yes/no, default no]")
    run.answers("perhaps")
    run.see("[yes/no, default no]")
    run.answers("yes")
    run.see("the answer is yes")
    assert run.end() == 0


@pytest.mark.parametrize(
    ("typed", "is_made"), [("y", True), ("session", True), ("no, not here", False)]
)
def test_run_asks_for_approval_on_the_terminal(place, typed, is_made):
    (place.hooks / "talk.py").unlink()
    run = Terminal(place, "run", "touch")
    run.see('shell {"command": "touch made"}')
    run.see("allow it? [y/N/session/minutes/why not]")
    run.answers(typed)
    run.see("Touched." if is_made else "the person says: not here")
    assert run.end() == 0
    assert (place.work / "made").exists() == is_made


def test_with_json_a_question_stays_off_standard_output(place, tmp_path):
    with (tmp_path / "out").open("w+") as out:
        run = Terminal(place, "run", "hi", "--json", stdout=out.fileno())
        run.see("[yes/no, default no]")
        run.answers("yes")
        run.see("the answer is yes")
        assert run.end() == 0
        assert json.loads((tmp_path / "out").read_text())["content"] == "Hello."


@pytest.fixture
def headless(place, monkeypatch, capsys):
    return here(place.home, place.work, monkeypatch, capsys)


def test_without_a_terminal_run_takes_the_default_and_says_so(place, headless):
    done = headless("run", "hi", *place.model)
    assert done.returncode == 0
    assert done.stdout == "Hello.\n"
    assert "no one is here to answer, so the default 'no' counts: Proceed?" in done.stderr
    assert "hookline: the answer is no" in done.stderr
    assert "\x1b" not in done.stderr


def test_without_a_terminal_run_names_the_call_that_it_did_not_make(place, headless):
    done = headless("run", "touch", *place.model)
    assert 'no one is here to approve it: shell {"command": "touch made"}' in done.stderr
    assert "hookline run --yes" in done.stderr
    assert not (place.work / "made").exists()


def test_yes_approves_calls_and_answers_no_question(place, headless):
    done = headless("run", "touch", "--yes", *place.model)
    assert (place.work / "made").exists()
    assert "hookline: the answer is no" in done.stderr


def test_chat_shows_notes_and_asks_questions(place):
    chat = Terminal(place, "chat")
    chat.see("> ")
    chat.answers("hi")
    chat.see("a note \\u001b[2Jwith an escape")
    chat.see("Proceed?")
    chat.see("[yes/no, default no]")
    chat.answers("perhaps")
    chat.see("please answer with one of [yes/no, default no]")
    chat.answers("y")
    chat.see("the answer is yes")
    chat.see("> ")
    chat.answers("/new")
    chat.see("Leave without saving?")
    chat.answers("no")
    chat.see("leaving the session was blocked")
    chat.see("> ")
    chat.send("\x04")
    assert chat.end() == 0


def test_a_chat_on_a_pipe_takes_the_default_and_says_so(place):
    env = environment(place.home)
    done = forks.run(forks.MAIN, "chat", *place.model, stdin="hi\n", cwd=place.work, env=env)
    assert "no one is here to answer, so the default 'no' counts: Proceed?" in done.stderr
    assert "the answer is no" in done.stderr

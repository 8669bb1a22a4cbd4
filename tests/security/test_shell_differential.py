"""What real shells execute is what the reader says, or the reader says that it cannot tell.

The command lines run in bash and dash, in a sandbox whose programs only record how they were called.
They are the same in every run; `shell_search.py` looks for others.
"""

from random import Random

import pytest

from . import shell_sandbox
from .shell_grammar import command_line
from .shell_search import compare
from .spellings import OTHER, PUSH, PUSH_LINES

REASON = shell_sandbox.available()
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"runs real shells: {REASON}")
ENDLESS = ("while ", "until ", "select ", "watch", "sleep", "coproc", "curl", "\x00")
"""What would not end, or needs more than the sandbox has."""
FOUND = [
    "foo -f2>&1 ",
    "b -2>&1 -",
    "git push2>&1",
    "git -C2>&1 push",
    "a 12>out b",
    "rm > out f.t\\\nxt",
    "git > out pu\\\nsh",
    "git >out 'pu'\\\nsh",
    "git 2>&1 pu\\\nsh",
    "git <<E pu\\\nsh\nE\n",
    "foo a >>out '\\' '*'\\\nx=\"$x\"; a $x",
    "export A=1\\\n2 B=3; git push",
    "[ a\\\n = a ] && git push",
    "rm {a,b} $(a) &>out push",
    "rm {a,b} &>out push {c,d}",
    "exec -a $x z a .env a",
    "nice -n $x 5 git push",
    "env -u $x Y git push",
    "timeout -s $x 9 5 git push",
    "env -u X b .env --opt=v\x0c",
    "git\x0cpush",
    "git push\x0b",
    "git\x85push",
    "git\u2028push",
]
"""Command lines that were once read wrongly, and their relatives."""


def agreed(commands, folder) -> int:
    """Run command lines; how many of those that ran something were understood."""
    understood, wrong = compare(commands, folder)
    assert not wrong, "\n".join(wrong)
    return understood


def test_what_the_search_found_is_read_as_the_shells_read_it(tmp_path):
    agreed(FOUND, tmp_path)


def test_the_spellings_run_what_the_reader_says(tmp_path):
    commands = [c for c in [*PUSH, *PUSH_LINES, *OTHER] if not any(part in c for part in ENDLESS)]
    assert agreed(commands, tmp_path) > 100


def test_commands_of_a_grammar_run_what_the_reader_says(tmp_path):
    random = Random(0)
    assert agreed([command_line(random) for _ in range(400)], tmp_path) > 150

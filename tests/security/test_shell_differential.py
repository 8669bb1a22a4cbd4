"""What real shells execute is what the reader says, or the reader says that it cannot tell.

The command lines run in bash and dash, in a sandbox whose programs only record how they were called.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hookline.shell.reader import commands_of
from hookline.shell.words import Word

from . import shell_sandbox
from .shell_grammar import command_line
from .spellings import OTHER, PUSH, PUSH_LINES

REASON = shell_sandbox.available()
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"runs real shells: {REASON}")
ENDLESS = ("while ", "until ", "select ", "watch", "sleep", "coproc", "curl", "\x00")
"""What would not end, or needs more than the sandbox has."""


def fits(call: list[Word], argv: list[str]) -> bool:
    """Whether a program was called as the reader said; an unknown word may be any number of them."""
    if call[0].text != argv[0]:
        return False
    places = past_dynamic({1}, call)
    for argument in argv[1:]:
        following: set[int] = set()
        for place in places:
            if place == len(call):
                continue
            word = call[place]
            if word.dynamic or word.pattern:
                following |= {place, place + 1}
            elif word.text == argument or word.text.startswith("~"):
                following.add(place + 1)
        places = past_dynamic(following, call)
    return len(call) in places


def past_dynamic(places: set[int], call: list[Word]) -> set[int]:
    for place in sorted(places):
        while place < len(call) and call[place].dynamic:
            place += 1
            places.add(place)
    return places


def check(commands: list[str], folder) -> int:
    """Run command lines and compare; how many of those that ran something were read."""
    understood = 0
    for command, ran in zip(commands, shell_sandbox.executed(commands, folder), strict=True):
        found = commands_of(command)
        if found.opaque:
            continue
        understood += any(ran.values())
        for shell, calls in ran.items():
            for argv in calls:
                assert any(fits(call, argv) for call in found.calls), (
                    f"{shell} ran {argv} for {command!r}, and the reader says {found.lines}"
                )
    return understood


def test_the_spellings_run_what_the_reader_says(tmp_path):
    commands = [c for c in [*PUSH, *PUSH_LINES, *OTHER] if not any(part in c for part in ENDLESS)]
    assert check(commands, tmp_path) > 100


@settings(
    max_examples=3,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(st.randoms(use_true_random=False), min_size=1, max_size=1))
def test_generated_commands_run_what_the_reader_says(tmp_path_factory, randoms):
    commands = [command_line(randoms[0]) for _ in range(60)]
    check(commands, tmp_path_factory.mktemp("shells"))


@pytest.mark.parametrize("seed", range(2))
def test_commands_of_a_grammar_run_what_the_reader_says(tmp_path, seed):
    random = Random(seed)
    commands = [command_line(random) for _ in range(100)]
    assert check(commands, tmp_path) > 30

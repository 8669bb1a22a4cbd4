"""Globs and regular expressions mean what they say, and stay linear on hostile text."""

import fnmatch
import random
import re

import pytest

from hookline.text.errors import PatternError
from hookline.text.patterns import Glob, PathGlob, Pattern, matches_glob

from ..tables import each_row

LONG = 1_000_000


def test_globs_agree_with_fnmatch_on_random_pairs():
    chance = random.Random(7)
    for _ in range(30_000):
        pattern = "".join(chance.choices("ab*?c[ab][!a]", k=chance.randint(0, 7)))
        text = "".join(chance.choices("abc", k=chance.randint(0, 6)))
        assert Glob(pattern).matches(text) == fnmatch.fnmatchcase(text, pattern), (pattern, text)


@each_row(
    ("pattern", "text", "expected"),
    [
        ("git push*", "git push", True),
        ("git push *", "git push", False),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("[!a]*", "abc", False),
        ("[^a]*", "abc", False),
        ("[]]", "]", True),
        ("[a", "[a", True),
        ("[z-a]", "z", False),
        ("x[a-c]*[0-9]", "xb-7", True),
        ("*\n*", "a\nb", True),
        ("a?c", "a\nc", True),
        ("*.py", "ü.py", True),
        ("\udcff*", "\udcffx", True),
    ],
)
def test_a_glob_describes_the_whole_text(pattern: str, text: str, expected: bool):
    assert matches_glob(text, pattern) is expected


@each_row(
    ("pattern", "path", "expected"),
    [
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**", "src/a/b", True),
        ("{a,b}.txt", "b.txt", True),
        ("{a,b}.txt", "c.txt", False),
        ("a{b", "a{b", True),
        ("a}b", "a}b", True),
        ("a,b", "a,b", True),
        ("[!a]b", "/b", False),
        ("[!a]b", "cb", True),
        ("a b+c", "a b+c", True),
        ("a\nb", "a\nb", True),
        ("?", "/", False),
    ],
)
def test_a_path_glob_keeps_to_its_folder(pattern: str, path: str, expected: bool):
    assert PathGlob(pattern).matches(path) is expected


def test_brackets_in_a_path_can_stand_for_themselves():
    assert PathGlob("app/[id]/{x}", sets=False).matches("app/[id]/{x}")
    assert not PathGlob("app/[id]", sets=False).matches("app/i")


HOSTILE_GLOBS = [
    "*a" * 50 + "*b",
    "*" * 1000 + "b",
    "*" + "a" * 2000 + "b*",
    "*" + "[ab]" * 300 + "c",
    "*" + "a?" * 300 + "c*",
    "?*" * 500 + "b",
    "[!b]*" * 100 + "b",
]


@each_row("pattern", HOSTILE_GLOBS)
@each_row("text", ["a" * LONG, "ab" * (LONG // 2) + "a", "a" * LONG + "c"])
def test_a_hostile_glob_ends_on_a_megabyte(pattern: str, text: str):
    Glob(pattern).matches(text)


@each_row(
    "pattern",
    [
        "**/" * 200 + "x",
        "*a" * 50 + "*b",
        "{a,b}*" * 100 + "c",
        "**a" * 100 + "b",
        "*a" + "?" * 300 + "b",
    ],
)
@each_row("text", ["a" * LONG, "a/" * (LONG // 2), "ab/" * (LONG // 3)])
def test_a_hostile_path_glob_ends_on_a_megabyte(pattern: str, text: str):
    assert not PathGlob(pattern).matches(text)


@each_row(
    "pattern",
    [
        r"(a+)+$",
        r"(a|aa)+b",
        r"(a|a)*c",
        r"(.*)*x",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"(a*)*\Z",
        r"a{0,500}b",
    ],
)
@each_row("text", ["a" * LONG + "!", "ab" * (LONG // 2) + "!"])
def test_an_expression_that_explodes_in_python_ends_on_a_megabyte(pattern: str, text: str):
    Pattern(pattern).search(text)


@each_row(
    ("pattern", "said"),
    [
        (r"(?=a)b", "lookaround"),
        (r"(?<!a)b", "lookaround"),
        (r"(a)\1", "backreferences"),
        ("(", "missing )"),
        ("[", "missing ]"),
        ("a{2000}", "repetition size"),
        ("((a{100}){100}){100}", "repetition size"),
        ("x" * 4001, "4,000 characters"),
        ("\ud800", "UTF-8"),
    ],
)
def test_an_expression_that_cannot_run_linearly_is_refused_with_the_reason(pattern: str, said: str):
    with pytest.raises(PatternError, match=re.escape(said)):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "span"),
    [
        (r"b+", "aübb", (2, 4)),
        (r"b", "\ud800b", (1, 2)),
        (r"^b", "a\nb", None),
        (r"a\Z", "a", (0, 1)),
        (r"\u0041", "xA", (1, 2)),
        (r"\/x", "/x", (0, 2)),
        (r"(?P<n>b)", "ab", (1, 2)),
    ],
)
def test_a_search_gives_positions_in_characters(pattern: str, text: str, span: tuple[int, int] | None):
    assert Pattern(pattern).search(text) == span


def test_flags_are_options():
    assert Pattern("B$", ignore_case=True, multiline=True).search("b\nc") == (0, 1)
    assert Pattern("a.b", dot_all=True).matches("a\nb")
    assert [*Pattern("(a)(b)?").spans("abaüab", group=2)] == [(1, 2), (5, 6)]

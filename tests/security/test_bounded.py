"""Readers of foreign text end soon on shapes that take minutes where time is quadratic or worse."""

import time
from pathlib import Path

import pytest

from hookline.cli.chat.blocks import TABLE
from hookline.cli.chat.elements import breaks_of
from hookline.ext.stores.cypher import question
from hookline.ext.stores.errors import BadStoreValue
from hookline.ext.tools.html_text import html_text
from hookline.models.prompt import read_call
from hookline.policy.redaction import Redactor
from hookline.policy.targets import URL
from hookline.runtime.attachments import mentions
from hookline.sandbox.repository import SETTING
from hookline.text.errors import ForeignJsonError
from hookline.text.foreign_json import DEEPEST, parse_json
from hookline.text.line_diff import line_diff
from hookline.text.patterns import Glob, PathGlob, Pattern
from hookline.text.shell.effects import VERSION
from hookline.tools.arguments import parse
from hookline.tools.rawschema import RawSignature

from ..tables import each_row

SIZE = 100_000
SECONDS = 20.0
REDACTOR = Redactor()
GLOB, PATH_GLOB, EXPRESSION = (
    Glob("*a*<*a*=*b"),
    PathGlob("**/*a*{<,b}*=**c"),
    Pattern(r"((a|<|\S)+)+$"),
)


def json_or_not(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return None


READERS = {
    "redaction": REDACTOR.text,
    "html": html_text,
    "glob": GLOB.matches,
    "path glob": PATH_GLOB.matches,
    "expression": EXPRESSION.search,
    "json": json_or_not,
    "arguments": parse,
}
SHAPES = [
    "a",
    "a ",
    "<",
    "<a ",
    "<a b=",
    '<a b="',
    "<!--",
    "<div>",
    "<script>",
    "</",
    "&#1",
    "[",
    "{",
    '{"a":',
    '"',
    "'",
    "\\",
    "\n",
    "\t",
    "-",
    "--",
    "=",
    "a=",
    "token=",
    "token: ",
    'token="',
    "password",
    "@",
    "a@",
    "a@b.",
    "http://",
    "http://a:",
    "eyJ",
    "eyJa.",
    "sk-",
    "-----BEGIN PRIVATE KEY-----",
    "4",
    "4 ",
    "*",
    "/",
    "a/",
    "\ud800",
    "é",
    "\x00",
    "Bearer ",
    "Cookie: a=",
]


@each_row("reader", READERS)
@each_row("shape", SHAPES)
def test_a_reader_ends_soon_on_a_repeated_shape(reader: str, shape: str):
    started = time.process_time()
    READERS[reader](shape * (SIZE // len(shape)))
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    "text", ["[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500, "[" * 100_000]
)
def test_deep_json_is_refused_by_every_edge(text: str):
    with pytest.raises(ForeignJsonError, match="128 levels"):
        parse_json(text)
    assert parse(text)[1]


def test_json_as_deep_as_is_allowed_is_read():
    text = "[" * DEEPEST + "]" * DEEPEST
    assert parse_json(text) == parse_json(text.encode())
    assert len(parse_json("[[]," * 1 + "[]]" + " " * 10)) == 2
    assert len(parse_json(f"[{','.join(['[]'] * 5000)}]")) == 5000
    with pytest.raises(ForeignJsonError, match="10 characters"):
        parse_json("[1,2,3,4,5,6]", largest=10)


DOUBLING = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
DEEP: dict = {}
for _ in range(80):
    DEEP = {"items": DEEP}
HOSTILE_SCHEMAS = {
    "a pattern that backtracks": ({"properties": {"x": {"pattern": "^(a+)+$"}}}, "x"),
    "names that backtrack": (
        {"patternProperties": {"^(a+)+$": True}, "additionalProperties": False},
        "x",
    ),
    "doubling references": (
        {
            "$defs": {**DOUBLING, "d40": {"type": "integer"}},
            "properties": {"x": {"$ref": "#/$defs/d0"}},
        },
        "takes too long",
    ),
    "a reference to itself": (
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        "arguments",
    ),
    "depth": (DEEP, "64 levels"),
    "size": ({"properties": {f"p{n}": {} for n in range(20_000)}}, "10,000 parts"),
    "a remote reference": ({"properties": {"x": {"$ref": "http://127.0.0.1:9/x"}}}, "does not contain"),
}


@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_a_hostile_schema_ends_with_a_reason(name: str):
    schema, said = HOSTILE_SCHEMAS[name]
    found = RawSignature(schema, None).values({"x": "a" * 100_000 + "!"})
    assert isinstance(found, list)
    assert said in str(found)


def test_a_pattern_of_a_schema_that_cannot_be_run_is_not_checked():
    schema = {"properties": {"x": {"pattern": r"^(?!\.)a$"}}}
    assert RawSignature(schema, None).values({"x": "b"}) == {"x": "b"}


def test_many_items_are_compared_once():
    unique = RawSignature({"properties": {"x": {"uniqueItems": True}}}, None)
    items = [{"n": n} for n in range(50_000)]
    assert unique.values({"x": items}) == {"x": items}
    assert isinstance(unique.values({"x": [*items, {"n": 1}]}), list)


def test_a_diff_of_many_equal_lines_ends_and_shows_every_line():
    old, new = ["a\n", "b\n"] * 20_000, ["b\n", "c\n", "a\n"] * 15_000
    lines = [*line_diff(old, new, ("a/f", "b/f"))]
    assert sum(line.startswith("-a") for line in lines) == 20_000


def test_a_diff_of_a_small_change_in_a_long_text_counts_lines_from_its_beginning():
    old = [f"{n}\n" for n in range(50_000)]
    new = [*old[:40_000], "new\n", *old[40_000:]]
    lines = [*line_diff(old, new, ("a/f", "b/f"))]
    assert lines[2] == "@@ -39998,6 +39998,7 @@\n"
    assert "+new\n" in lines
    assert [*line_diff(old, old, ("a/f", "b/f"))] == []


LINEAR = {
    "settings of a repository": lambda: SETTING.findall("\n" * 400_000),
    "a table in chat": lambda: TABLE.match("|-" + " " * 400_000 + "x"),
    "blanks in chat": lambda: breaks_of("x" + " " * 400_000, 80),
    "addresses in a command": lambda: URL.findall("a" * 400_000),
    "the version of a program": lambda: VERSION.sub("", "1" * 400_000 + "-"),
    "a mention": lambda: mentions("@" + "a/" * 200_000 + "!", Path("/nowhere")),
    "a written call": lambda: read_call('{"name":"a","arguments":' + "[" * 400_000),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_long_text_takes_linear_time(name: str):
    started = time.process_time()
    LINEAR[name]()
    assert time.process_time() - started < 5  # quadratic takes minutes


@pytest.mark.parametrize("opened", ["/* ", "'", "\\'", '"', "`"])
def test_a_query_that_does_not_close_what_it_opens_is_refused_at_once(opened: str):
    started = time.process_time()
    with pytest.raises(BadStoreValue):
        question("MATCH (a) RETURN " + opened * 200_001)
    assert time.process_time() - started < 5


def test_a_text_with_too_many_findings_is_redacted_to_its_end():
    text = REDACTOR.text("pw=hunter22 " * 60_000)
    assert "hunter22" not in text

"""Hostile text: a worst case of 1 MB for everything that parses or judges what strangers wrote.

    python benchmarks/hostile.py            # a table
    python benchmarks/hostile.py --check    # exits with status 1 if a bound is broken

Each case runs on 250 kB and on 1 MB. It may take `BOUND` seconds, and the longer text may take
`GROWTH` times as long as the shorter one: linear is 4, quadratic 16. Runs below `NOISE` seconds are
not compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

SIZE = 1_000_000
BOUND = 20.0
GROWTH = 7.0
NOISE = 0.25


class Case(NamedTuple):
    """One shape of text for one reader."""

    reader: str
    shape: str
    unit: str
    read: Callable[[str], object]
    after: str = ""

    def text(self, size: int) -> str:
        return self.unit * (size // len(self.unit)) + self.after


def cases() -> Iterator[Case]:
    yield from globs()
    yield from expressions()
    yield from redaction()
    yield from html()
    yield from json_texts()
    yield from schemas()
    yield from markdown()
    yield from diffs()
    yield from searches()


def globs() -> Iterator[Case]:
    from hookline.patterns import Glob, PathGlob

    for pattern in ("*a*a*a*a*b", "*" + "a?" * 200 + "b", "*" + "[ab]" * 200 + "c"):
        yield Case("glob", pattern[:12], "a", Glob(pattern).matches)
    for pattern in ("**/*a*a*a*b", "**/" * 100 + "x", "{a,b}*" * 50 + "c"):
        yield Case("path glob", pattern[:12], "a/", PathGlob(pattern).matches)


def expressions() -> Iterator[Case]:
    from hookline.patterns import Pattern

    for pattern in (r"(a+)+$", r"(a|aa)+$", r"(.*)*x", r"^(([a-z])+.)+[A-Z]([a-z])+$"):
        yield Case("expression", pattern, "a", Pattern(pattern).search, "!")


def redaction() -> Iterator[Case]:
    from hookline.policy.redaction import Redactor

    redact = Redactor().text
    for shape in (
        "a",
        "token=a,",
        "token:\n",
        'token="',
        'secrets=["a",',
        "a@b.co ",
        "4111 ",
        "http://a:b",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "curl -u a:",
        "mysql -p ",
        "password ",
        "_",
        "key",
        '{"password": "x1y2"},',
        "Cookie: a=b\n",
        "Bearer ",
        "<token>",
        "--token ",
        "é",
    ):
        yield Case("redaction", shape, shape, redact)


def html() -> Iterator[Case]:
    from hookline.tools.builtin.html_text import html_text

    for shape in (
        "<p>a",
        "<div>",
        "<",
        "<!",
        "<a b=",
        '<a b="',
        "<!--",
        "<script>",
        "&#1",
        "<li>",
        "<td>",
        "<a href=x>",
        "<svg></svg>",
        "</a ",
        "<a",
        "<pre> ",
        "<table><tr>",
        "<select>",
    ):
        yield Case("HTML", shape, shape, lambda text: html_text(text, "https://example.org/"))


def json_texts() -> Iterator[Case]:
    from hookline.foreign_json import parse_json

    def read(text: str) -> object:
        try:
            return parse_json(text)
        except ValueError:
            return None

    for shape in ("[", '{"a":', "[[", "1", '"\\u0000', "-"):
        yield Case("JSON", shape, shape, read)
    yield Case("JSON", "[[…]],", "[[[[[[]]]]]],", lambda text: read(f"[{text}0]"))


def schemas() -> Iterator[Case]:
    from hookline.tools.rawschema import RawSignature

    doubling: dict[str, object] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)
    }
    doubling["d40"] = {"type": "integer"}
    for name, schema in {
        "pattern": {"properties": {"x": {"pattern": r"^(a+)+$"}}},
        "patternProperties": {"patternProperties": {r"^(a+)+$": False}},
        "$ref doubling": {"$defs": doubling, "properties": {"x": {"$ref": "#/$defs/d0"}}},
        "$ref loop": {
            "$defs": {"a": {"$ref": "#/$defs/a"}},
            "properties": {"x": {"$ref": "#/$defs/a"}},
        },
    }.items():
        checked = RawSignature(schema, None).values
        yield Case(
            "schema", name, "a", lambda text, checked=checked: checked({"x": text, text: 1}), "!"
        )
    unique = RawSignature({"properties": {"x": {"uniqueItems": True}}}, None).values
    yield Case(
        "schema",
        "uniqueItems",
        "[1,",
        lambda text: unique({"x": [{"a": n} for n in range(len(text) // 12)]}),
    )


def markdown() -> Iterator[Case]:
    from hookline.gateway.telegram.markup import as_html, pieces

    def read(text: str) -> object:
        return [as_html(piece) for piece in pieces(text)]

    for shape in ("a ", "*a ", "[", "`", "> ", "- a\n", "|a|\n", "```\n", "_*", "![", "&", "<a"):
        yield Case("Telegram", shape, shape, read)


def diffs() -> Iterator[Case]:
    from hookline.tools.builtin.writing import diff

    for shape in ("a\n", "a\nb\n", "\n"):
        yield Case("diff", shape, shape, lambda text: diff(text, text[::-1] + "x\ny\n" + text, "f"))
    yield Case("diff", "distinct", "a", lambda text: diff(_lines(text, 0), _lines(text, 7), "f"))


def _lines(text: str, shift: int) -> str:
    return "".join(f"{(n * 7919 + shift) % 997}\n" for n in range(len(text) // 4))


def searches() -> Iterator[Case]:
    from hookline.tape.text import matches, phrases_of, snippet, text_of, words_of

    def read(text: str) -> object:
        phrases, text = phrases_of("a-" * 400 + "b"), text_of({"text": text})
        return matches(phrases, words_of(text)), snippet(text, phrases)

    for shape in ("a ", "a-", "é ", "語", "-"):
        yield Case("full text", shape, shape, read)


def measured(case: Case) -> tuple[float, float]:
    """Seconds for 250 kB and for 1 MB."""
    found: list[float] = []
    for size in (SIZE // 4, SIZE):
        text = case.text(size)
        started = time.process_time()
        case.read(text)
        found.append(time.process_time() - started)
    return found[0], found[1]


def is_broken(short: float, long: float) -> bool:
    return long > BOUND or (long > NOISE and long > GROWTH * max(short, NOISE / GROWTH))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="exit with status 1 if a bound is broken")
    options.add_argument("--reader", help="run the cases of one reader only")
    given = options.parse_args()
    worst: dict[str, tuple[float, str, float]] = {}
    broken = 0
    for case in cases():
        if given.reader and case.reader != given.reader:
            continue
        short, long = measured(case)
        if is_broken(short, long) and is_broken(*measured(case)):
            broken += 1
            print(f"broken: {case.reader} {case.shape!r}: {short:.2f} s, {long:.2f} s", file=sys.stderr)
        if case.reader not in worst or long > worst[case.reader][0]:
            worst[case.reader] = (long, case.shape, long / max(short, 1e-4))
    print(f"{'reader':12} {'slowest shape':22} {'1 MB':>9} {'growth':>7}")
    for reader, (long, shape, growth) in worst.items():
        print(f"{reader:12} {shape!r:22} {long:8.2f}s {growth:6.1f}x")
    return 1 if broken and given.check else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hostile text: a worst case of 1 MB for everything that parses or judges what strangers wrote.

    python benchmarks/hostile.py            # a table
    python benchmarks/hostile.py --check    # exits with status 1 if a bound is broken

Each shape is read at 250 kB and at 1 MB. Reading 1 MB may take `BOUND` seconds of CPU time, and
`GROWTH` times as long as 250 kB: linear is 4, quadratic is 16. A case that breaks a bound is measured
again, and counts if it breaks it again; below `NOISE` seconds, growth is not compared. Every group of
readers runs in a process of its own. A case that takes `LIMIT` seconds of CPU time ends its process and
is broken; a new process goes on with the next case.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

SIZE = 1_000_000
BOUND = 5.0
GROWTH = 6.0
NOISE = 0.5
LIMIT = 15.0


class Case(NamedTuple):
    """One shape of text for one reader."""

    reader: str
    shape: str
    unit: str
    read: Callable[[str], object]
    after: str = ""

    def text(self, size: int) -> str:
        return self.unit * (size // len(self.unit)) + self.after


def globs() -> Iterator[Case]:
    from hookline.text.patterns import Glob, PathGlob

    for pattern in ("*a*a*a*a*b", "*" + "a?" * 200 + "b", "*" + "[ab]" * 200 + "c"):
        yield Case("glob", pattern[:12], "a", Glob(pattern).matches)
    for pattern in ("**/*a*a*a*b", "**/" * 100 + "x", "{a,b}*" * 50 + "c"):
        yield Case("path glob", pattern[:12], "a/", PathGlob(pattern).matches)


def expressions() -> Iterator[Case]:
    from hookline.text.patterns import Pattern

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
        "pw=a ",
        "é key=a ",
        "pw:\n",
        "[pw]\n",
        "--pw a ",
        "é@b.co ",
    ):
        yield Case("redaction", shape, shape, redact)


def html() -> Iterator[Case]:
    from hookline.ext.tools.html_text import html_text

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
        "<b>",
        "<!>",
        "</p>",
        "&a",
        "<a href=x></a>",
    ):
        yield Case("HTML", shape, shape, lambda text: html_text(text, "https://example.org/"))


def json_texts() -> Iterator[Case]:
    from hookline.text.foreign_json import parse_json

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
    from hookline.ext.telegram.markup import MOST_MARKS, as_html, pieces

    def read(text: str) -> object:
        return [as_html(piece) for piece in pieces(text)]

    for shape in ("a ", "*a ", "[", "`", "> ", "- a\n", "|a|\n", "```\n", "_*", "![", "&", "<a"):
        yield Case("Telegram", shape, shape, read)
        few = shape * (MOST_MARKS // 2 // len(shape))  # as much as is still parsed
        yield Case("Telegram", f"{shape}, few", f"{few}{'a ' * ((4090 - len(few)) // 2)}", read)


def diffs() -> Iterator[Case]:
    from hookline.ext.tools.replacement import diff

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


def chats() -> Iterator[Case]:
    from rich.console import Console
    from rich.markdown import Markdown

    from hookline.cli.chat.blocks import TABLE, Blocks
    from hookline.cli.chat.elements import breaks_of

    def cut(text: str) -> object:
        blocks = Blocks()
        return [len(block) for block in [*blocks.take(text), *blocks.close()]]

    def shown(text: str) -> object:
        first = next(iter(Blocks().take(text)))  # each block is rendered by itself
        return Console(width=80).render_lines(Markdown(first))

    for shape in (" ", "-", "|-", "`", "a\n", "| \n", "- a\n\n", "```\n", "|a|\n|-|\n|a|\n"):
        yield Case("chat, cut", shape, shape, cut)
    for shape in ("[", "![", "*a ", "_*", "<a", "`", "> ", "a "):
        yield Case("chat, one block", shape, shape, shown)
    yield Case("chat, cut", "a wide table", " ", lambda text: TABLE.match(f"|-{text}x"))
    yield Case("chat, cut", "blanks", " ", lambda text: breaks_of(f"x{text}", 80))


def speech() -> Iterator[Case]:
    from hookline.ext.voice.speakable import speakable

    for shape in ("[", "![", "[a](", "_*", "- a\n", "|a|\n", "<a", "`"):
        yield Case("speech", shape, shape, lambda text: speakable(text, 4096))


def mentioned() -> Iterator[Case]:
    from pathlib import Path

    from hookline.runtime.attachments import mentions

    for shape in ("@", "@a/", '@"', "@a:1", "`", "```", "/", "1"):
        yield Case("mentions", shape, shape, lambda text: mentions(f"@{text}", Path("/nowhere")), "!")


def queries() -> Iterator[Case]:
    from hookline.ext.stores.cypher import question

    for shape in ("'", "\\'", "/*", "`", '"', "//", "LOAD ", "/* */", "';"):
        yield Case("Cypher", shape, f"{shape}", _attempt(lambda text: question(f"MATCH {text}")), "\\")


def _attempt(read: Callable[[str], object]) -> Callable[[str], object]:
    from hookline import HooklineError

    def attempt(text: str) -> object:
        try:
            return read(text)
        except (ValueError, HooklineError):
            return None  # refused

    return attempt


def settings() -> Iterator[Case]:
    from hookline.ext.skills.frontmatter import parse
    from hookline.ext.triggers.schedule import Schedule
    from hookline.sandbox.repository import SETTING
    from hookline.text.untrusted import load_toml

    for shape in ("\n", " ", "a", "a=", "a \n", "= "):
        yield Case("git settings", shape, shape, SETTING.findall)
    for shape in ("a.", "[a]\n", "[", "a={", '"', "a=[\n", "[[a]]\n", "\n"):
        yield Case("TOML", shape, shape, _attempt(load_toml))
    for shape in ("a: ", "- ", "[", "{a: ", "&a ", "\n", "a:\n"):
        yield Case("skills", shape, shape, _attempt(lambda text: parse(f"---\n{text}\n---\n", "a")))
    for shape in ("0,", "9", "* "):
        yield Case("cron", shape, shape, _attempt(lambda text: Schedule(f"{text}0 * * * *")))


def commands() -> Iterator[Case]:
    from hookline.ext.command_hooks.matcher import ToolCondition
    from hookline.policy.targets import URL
    from hookline.text.shell.effects import VERSION
    from hookline.text.shell.reader import commands_of

    for shape in ("sudo ", "a;", "$(", "`", "'", "a\n", "<<a\n", "((", "${", "a|", "1"):
        yield Case("shell", shape, shape, commands_of)
    for shape in ("a", "http://", "a:", "://"):
        yield Case("addresses", shape, shape, URL.findall)
    yield Case("shell", "version", "1", lambda text: VERSION.sub("", text), "-")
    rule = ToolCondition("Bash(git * --force *)")
    for shape in ("git ", "a=b ", "git --force"):
        yield Case(
            "hook rules", shape, shape, lambda text: rule.holds(("Bash",), {"command": text}, "/")
        )


def answers() -> Iterator[Case]:
    from hookline.ext.tools.literals import required_literal
    from hookline.models.prompt import read_answer, read_call

    def read(text: str) -> object:
        read_call(f'{{"name": "{text}')
        return read_call(f'{{"name":"a","arguments":{text}'), read_answer(text)

    for shape in (" ", "[", '{"a":', '"', "\\", "1"):
        yield Case("written calls", shape, shape, _attempt(read))
    for shape in ("(", "a|", "[a", "a{1,2}", "\\"):
        yield Case("literals", shape, shape, lambda text: required_literal(text, ignore_case=True))


def terminals() -> Iterator[Case]:
    from hookline.text.printable import printable, visible

    for shape in ("\x1b", "\x1b[", "\x1b]8;;", "\u202e", "a", "\x9b", "\x1b[1", "\x1bP"):
        yield Case("terminal", shape, shape, lambda text: (printable(text), visible(text)))


READERS: dict[str, Callable[[], Iterator[Case]]] = {
    each.__name__: each
    for each in (
        globs, expressions, redaction, html, json_texts, schemas, markdown, diffs, searches, chats,
        speech, mentioned, queries, settings, commands, answers, terminals,
    )
}  # fmt: skip


def measured(case: Case) -> tuple[float, float]:
    """Seconds of CPU time for 250 kB and for 1 MB."""
    found: list[float] = []
    for size in (SIZE // 4, SIZE):
        text = case.text(size)
        started = time.process_time()
        case.read(text)
        found.append(time.process_time() - started)
    return found[0], found[1]


def is_broken(short: float, long: float) -> bool:
    return long > BOUND or (long > NOISE and long > GROWTH * short)


def run(name: str, skipped: int) -> None:
    """Measure one group: a line of JSON before each case, and one with the times after it."""
    for case in islice(READERS[name](), skipped, None):
        print(json.dumps([case.reader, case.shape]), flush=True)
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)  # kills the process, whatever it is in
        short, long = measured(case)
        if is_broken(short, long):
            short, long = min((short, long), measured(case), key=lambda pair: pair[1])
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(json.dumps([case.reader, case.shape, short, long]), flush=True)


def results(name: str) -> Iterator[tuple[str, str, float, float]]:
    """The cases of one group; one that did not end gets infinite time."""
    done = 0
    while True:
        command = [sys.executable, __file__, "--group", name, "--skip", str(done)]
        running = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                said = json.loads(line)
                running = said[:2]
                if len(said) == 4:
                    done += 1
                    running = None
                    yield said[0], said[1], said[2], said[3]
        if not child.returncode:
            return
        if running is None:
            raise SystemExit(f"the group {name} failed before a case began")
        done += 1
        yield running[0], running[1], float("inf"), float("inf")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="exit with status 1 if a bound is broken")
    options.add_argument("--group", choices=READERS, help="measure one group, as lines of JSON")
    options.add_argument("--skip", type=int, default=0, help="cases of the group to leave out")
    given = options.parse_args()
    if given.group:
        run(given.group, given.skip)
        return 0
    worst: dict[str, tuple[float, str, float]] = {}
    broken = cases = 0
    for name in READERS:
        for reader, shape, short, long in results(name):
            cases += 1
            if is_broken(short, long):
                broken += 1
                print(f"broken: {reader} {shape!r}: {short:.2f} s, {long:.2f} s", file=sys.stderr)
            if reader not in worst or long > worst[reader][0]:
                worst[reader] = (long, shape, long / max(short, 0.001))
    print("| reader | slowest shape | 1 MB, s | growth |")
    print("|---|---|---|---|")
    for reader, (long, shape, growth) in sorted(worst.items(), key=lambda item: -item[1][0]):
        grown = f"{growth:.1f}" if long >= 0.05 else "-"
        print(
            f"| {reader} | `{json.dumps(shape).replace('|', chr(92) + '|')}` | {long:.2f} | {grown} |"
        )
    print(f"\n{cases} cases, {broken} broken")
    return 1 if broken and given.check else 0


if __name__ == "__main__":
    sys.exit(main())

"""No text from a model, a tool, a file or a stranger steers the terminal, whatever prints it."""

import io
import json
import logging
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from unicodedata import category

import pytest

from hookline.cli.console import GuardedConsole
from hookline.cli.terminal import GuardedStream, guarded, style, unguarded
from hookline.text.printable import printable, visible

from ..commandline import here
from ..tables import each_row

PAYLOADS = {
    "clear the screen": "\x1b[2J\x1b[H",
    "a window title": "\x1b]0;owned\x07",
    "a link": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "a colour": "\x1b[31mred\x1b[0m",
    "hidden text": "\x1b[8mhidden\x1b[28m",
    "the alternate screen": "\x1b[?1049h",
    "an answer from the terminal": "\x1b[6n\x1b[c",
    "a device string": "\x1bP+q544e\x1b\\",
    "a reset": "\x1bc",
    "another character set": "\x1b(0lqk\x0e",
    "a C1 introducer": "\x9b2J",
    "a C1 string": "\x9d0;owned\x9c",
    "a C1 device string": "\x90q\x9c",
    "a carriage return": "rm -rf /\rls      ",
    "backspaces": "rm\x08\x08ls",
    "a bell": "\x07",
    "a vertical tab": "a\x0bb\x0cc",
    "NUL and DEL": "\0\x7f",
    "a direction override": "\u202egnp.exe",
    "a direction isolate": "\u2066abc\u2069",
    "a direction mark": "\u200e\u200f\u061c",
    "a zero-width space": "a\u200bb",
    "a joiner in ASCII": "a\u200db\u200cc",
    "a byte order mark": "\ufeffx",
    "a line separator": "a\u2028b\u2029c",
    "tags": "\U000e0041\U000e007f",
    "an invisible operator": "a\u2062b\u2060c",
    "a soft hyphen": "pass\u00adword",
    "filler": "\u3164\u115f\uffa0",
    "annotations": "\ufff9a\ufffab\ufffb",
    "half of a surrogate pair": "\ud800",
    "an escape at the end": "text\x1b",
    "a long sequence": "\x1b[" + "1;" * 500 + "m",
    "many": "\x1b[A" * 200,
}
ALL = "".join(PAYLOADS.values())


def steering(text: str) -> list[str]:
    """The characters of a text that a terminal acts on or does not show, other than ends of lines."""
    return [c for c in text if c not in "\n\t" and category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


# --- the function ---------------------------------------------------------------------------------


@each_row("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_what_steers_a_terminal_is_spelled_out(payload):
    shown = printable(f"before {payload} after")
    assert steering(shown) == []
    assert shown != f"before {payload} after"
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_json_stays_the_same_document(payload):
    if "\ud800" in payload:
        pytest.skip("JSON without escapes cannot hold half of a pair")
    data = {"text": payload, payload: ["\\", payload]}
    assert json.loads(printable(json.dumps(data, ensure_ascii=False))) == data


@each_row(
    "text",
    [
        "plain",
        "a\tb\nc",
        "Grüße, 你好, שלום, مرحبا",
        "👩‍👩‍👧 👍🏽",
        "می‌خواهم",
        "e\u0301",
        "─│✓→µ",
        "\\u001b",
        "",
    ],
)
def test_text_of_people_stays_as_it_is(text):
    assert printable(text) == text


def test_every_control_character_of_unicode_is_caught():
    missed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if chr(code) not in "\n\t" and category(chr(code)) in ("Cc", "Cs", "Zl", "Zp")
        if printable(chr(code)) == chr(code)
    ]
    assert missed == []


@each_row(
    ("coloured", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mred\x1b[m", "red"),
        ("\x1b[38:2::255:0:0mred\x1b[39m", "red"),
        ("\x1b[8mhidden\x1b[28m", "hidden"),
        ("\x1b[31", "\\u001b[31"),
        ("\x1b[?31m", "\\u001b[?31m"),
        ("\x1b[>4;2m", "\\u001b[>4;2m"),
        ("\x1b[31 m", "\\u001b[31 m"),
        ("\x1b[31\nm", "\\u001b[31\nm"),
        ("\x1b[31M", "\\u001b[31M"),
        ("\x1b[\x1b[31m2J", "\\u001b[2J"),
        ("\x1b\x1b[31m[2J", "\\u001b[2J"),
        ("\x1b[31m\x1b[2J", "\\u001b[2J"),
        ("\x9b31mred", "\\u009b31mred"),
        ("\x1b[\u0661m", "\\u001b[\u0661m"),
    ],
)
def test_colours_are_dropped_and_nothing_else(coloured, plain):
    assert printable(coloured) == plain


def test_what_is_decided_on_keeps_its_colours_visible():
    assert visible("\x1b[8mrm -rf /\x1b[0m") == "\\u001b[8mrm -rf /\\u001b[0m"


def test_lines_that_end_as_on_windows_stay_lines():
    assert printable("a\r\nb\r\n") == "a\nb\n"


def test_a_megabyte_of_escapes_takes_no_time():
    from time import process_time

    started = process_time()
    printable("\x1b[2J" * 250_000)
    assert process_time() - started < 5


# --- the guard ------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    encoding = "utf-8"

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def screen(request, monkeypatch):
    """A terminal or a pipe."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal(tty=request.param)


@contextmanager
def shown_on(screen):
    """Standard output and standard error behind the guard."""
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = screen
    try:
        with guarded():
            yield
    finally:
        sys.stdout, sys.stderr = before


def by_print(text):
    print(text)


def by_echo(text):
    import typer

    typer.echo(text)


def by_error(text):
    import typer

    typer.echo(text, err=True)


def by_write(text):
    sys.stdout.write(text)


def by_lines(text):
    sys.stderr.writelines([text, text])


def by_pieces(text):
    for each in text:
        sys.stdout.write(each)


def by_logger(text):
    handler = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("hookline.test.terminal")
    logger.addHandler(handler)
    try:
        logger.error("%s", text)
    finally:
        logger.removeHandler(handler)


def by_traceback(text):
    from traceback import print_exc

    try:
        raise RuntimeError(text)
    except RuntimeError:
        print_exc()


def by_rich(text):
    from rich.console import Console

    Console().print(text, markup=False)


def by_console(text):
    GuardedConsole(highlight=False).print(text, markup=False)


def by_table(text):
    from rich.table import Table

    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    GuardedConsole().print(table)


def by_style(text):
    print(style(text, "red"), text)


WAYS = [
    by_print, by_echo, by_error, by_write, by_lines, by_pieces, by_logger, by_traceback, by_rich,
    by_console, by_table, by_style,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_nothing_gets_past_the_guard(screen, way):
    with shown_on(screen):
        way(ALL.replace("\ud800", ""))
    shown = screen.getvalue()
    assert shown
    styled = way in (by_console, by_table, by_style) and screen.tty
    assert steering(SGR.sub("", shown) if styled else shown) == []
    if styled:  # only the styles that we chose, none of the text's own
        assert "\x1b[8m" not in shown
        assert "\x1b[31mred" not in shown


def test_our_own_styles_reach_a_terminal_and_no_pipe(screen):
    with shown_on(screen):
        print(style("ok", "green"), "text")
    expected = "\x1b[32mok\x1b[m text\n" if screen.tty else "ok text\n"
    assert screen.getvalue() == expected


def test_no_colour_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    made = Terminal(tty=True)
    with shown_on(made):
        print(style("ok", "green"))
    assert made.getvalue() == "ok\n"


def test_text_cannot_forge_our_marks(screen):
    other = GuardedStream(Terminal(tty=True))
    with shown_on(screen):
        print(other.style("forged", "31"))
    assert "\x1b" not in screen.getvalue()


def test_styled_text_cannot_end_its_style_early(screen):
    with shown_on(screen):
        print(style("a\x1b[0mb", "red"))
    assert screen.getvalue().count("\x1b[") == (2 if screen.tty else 0)


def test_the_guard_is_one_and_ends(monkeypatch):
    before = sys.stdout
    with guarded():
        inner = sys.stdout
        with guarded():
            assert sys.stdout is inner
        assert unguarded(sys.stdout) is before
    assert sys.stdout is before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_encoding_that_lacks_a_character_spells_it_out(monkeypatch, encoding):
    import typer

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, write_through=True))
    with guarded():
        print("é→\x1b[2J")
        typer.echo("é→\x1b[2J")
    shown = raw.getvalue()
    assert b"\x1b" not in shown
    assert shown.count(b"u001b") + shown.count(b"[2J") >= 1


def test_bytes_are_refused_as_by_any_text_stream(screen):
    with shown_on(screen), pytest.raises(TypeError):
        sys.stdout.write(b"x")


# --- the commands ---------------------------------------------------------------------------------


TEXT = ALL.replace("\ud800", "").replace("\0", "")
SAID = f'"{"".join(f"{chr(92)}u{ord(c):04x}" if ord(c) < 256 else c for c in TEXT)}"'  # as TOML has it
SCRIPT = f"""
repeat = true
[[turns]]
[[turns.tool_calls]]
name = "read_file"
arguments = {{ path = {SAID} }}
[[turns]]
text = {SAID}
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A home and a workspace full of hostile text."""
    home, workspace = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("workspace")
    (home / "turns.toml").write_text(SCRIPT)
    (home / "config.toml").write_text(
        f'model = "scripted:{home}/turns.toml"\n[audit]\nenabled = true\n[trace]\nlevel = "full"\n'
        f"[agents.helper]\ndescription = {SAID}\ninstructions = {SAID}\n"
    )
    (home / "hooks").mkdir()
    (home / "hooks/evil.py").write_text(f"raise RuntimeError({ALL!r})\n")
    (home / "skills/evil").mkdir(parents=True)
    skill = f"---\nname: evil\ndescription: {json.dumps(TEXT)}\n---\n{TEXT}"
    (home / "skills/evil/SKILL.md").write_text(skill)
    return home, workspace


@pytest.fixture
def place(folders, monkeypatch, capsys):
    """The command line in that home, after one turn."""
    run = here(*folders, monkeypatch, capsys)
    if not (folders[0] / "tape.db").exists():
        assert run("run", f"hello {TEXT}", "--yes", "--session", "terminal:local").returncode == 0
    return run


COMMANDS = [
    ("run", "again", "--yes"), ("run", "again", "--yes", "--no-stream"),
    ("run", "again", "--yes", "--json"),
    ("run", "a\x1b[2Jb\x9b2J", "--yes"), ("run", "--model", "scripted:\x1b[2J.toml", "x"),
    ("run", "x", "--session", "s\x1b[2J\u202e"), ("run", "x", "--workspace", "/no\x1b[2J"),
    ("tape", "list"), ("tape", "list", "--json"), ("tape", "show", "terminal:local"),
    ("tape", "show", "terminal:local", "--json"), ("tape", "show", "no\x1b[2Jsession"),
    ("tape", "search", "answer"), ("tape", "search", "\x1b[2J"), ("tape", "export"),
    ("config", "show"), ("config", "show", "--json"), ("config", "show", "no.\x1b[2J"),
    ("config", "check"),
    ("doctor",), ("models",), ("plugins", "list"), ("plugins", "disable", "x\x1b[2J"), ("hooks",),
    ("hooks", "no\x1b[2Jhook"), ("skills", "list"), ("skills", "show", "evil"), ("mcp", "list"),
    ("trust", "--list"), ("trust",), ("policy", "check"), ("policy", "approvals"),
    ("policy", "explain", "shell", '{"command": "ls \\u001b[2J\\u202e"}'),
    ("policy", "explain", "no\x1b[2J", "{}"), ("policy", "explain", "shell", "{\x1b[2J"),
    ("audit", "show"), ("audit", "verify"), ("why", "terminal:local"),
    ("why", "terminal:local", "--json"),
    ("why", "no\x1b[2J"), ("stats",), ("replay", "terminal:local"), ("backtest",), ("triggers", "list"),
    ("--set", "a\x1b[2J=1", "doctor"), ("--profile", "p\x1b[2J", "doctor"), ("no\x1b[2Jcommand",),
    ("run", "--no\x1b[2Joption"), ("sessions",), ("models", "list"), ("config", "get", "agents"),
    ("config", "get", "no.\x1b[2J"), ("config", "set", "no\x1b[2J", "1"),
    ("plugins", "show", "no\x1b[2J"), ("plugins", "verify"), ("hooks", "no\x1b[2J", "--source"),
    ("mcp", "show", "no\x1b[2J"),
    ("triggers", "fire", "no\x1b[2J"), ("audit", "show", "--session", "s\x1b[2J"),
    ("tape", "import", "/no\x1b[2J.jsonl"), ("tape", "show", "terminal:\u202e"),
    ("sandbox", "no\x1b[2J"), ("voice", "no\x1b[2J"), ("new", "no\x1b[2J"),
    ("replay", "no\x1b[2J"), ("trust", "/no\x1b[2J"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(map(ascii, each)) for each in COMMANDS])
def test_no_command_prints_what_steers_a_terminal(place, command):
    ended = place(*command)
    assert steering(ended.stdout) == []
    assert steering(ended.stderr) == []
    assert ended.stdout + ended.stderr or command == ("triggers", "list")
    if "--json" in command and ended.returncode == 0:
        lines = ended.stdout.splitlines()
        for text in lines if lines[0].endswith(("}", "]")) else [ended.stdout]:
            json.loads(text)


def test_the_answer_is_spelled_out_in_a_pipe_and_kept_with_raw(place):
    plain, raw = place("run", "again", "--yes"), place("run", "again", "--yes", "--raw")
    assert "\x1b" not in plain.stdout
    assert "\\u001b[2J" in plain.stdout
    assert "\x1b[2J" in raw.stdout


def test_json_holds_what_the_model_really_said(place):
    ended = place("run", "again", "--yes", "--json")
    assert "\x1b[2J" in json.loads(ended.stdout)["content"]


def test_a_traceback_of_a_command_is_guarded(tmp_path, monkeypatch, capsys):
    from hookline import cli

    def broken(*_, **__):
        raise ZeroDivisionError("\x1b[2J broken \u202e")

    monkeypatch.setattr("hookline.cli.early.early", broken)
    ended = here(tmp_path, tmp_path, monkeypatch, capsys)("doctor")
    assert ended.returncode == cli.FAILED
    assert "ZeroDivisionError" in ended.stderr
    assert steering(ended.stderr) == []


def test_a_new_process_is_guarded_from_its_first_line(tmp_path):
    command = [sys.executable, "-m", "hookline", "no\x1b[2Jcommand"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"\x1b" not in done.stdout + done.stderr


def test_the_whole_command_line_writes_through_the_guard_only():
    """What writes past the guard says so with `unguarded`, and is one of these."""
    import hookline.cli

    folder = Path(hookline.cli.__file__).parent
    texts = {path.name: path.read_text() for path in folder.rglob("*.py")}
    past = re.compile(r"unguarded\(|(stdout|stderr)\.buffer|__(stdout|stderr)__")
    known = {"console.py", "json_output.py", "models.py", "run.py", "terminal.py"}
    assert {name for name, text in texts.items() if past.search(text)} <= known
    styled = re.compile(r"typer\.(style|secho)\(|[^a-zA-Z]Console\(")
    assert {name for name, text in texts.items() if styled.search(text)} <= {"console.py"}

"""Every command line in the documentation exists, and those that can run print what is shown."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from hookline.cli.hooks import ShowUnlessNamed
from hookline.cli.root import built, declared
from hookline.hookspecs import CATALOG
from hookline.observe.reference.lifecycle import walk
from hookline.runtime.app import Hookline

from . import commandline, forks, sample_pages

ROOT = Path(__file__).parents[1]
DOCS = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "hooks.md"]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *DOCS]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
SPAN = re.compile(r"(?<!`)`(hookline [a-z-][^`\n]*)`")
SERVED = ("hookline.serve.server", "hookline.serve.web", "hookline.observe.inspector.routes")
"""What commands that serve import."""
VARIES = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "a time"),
    (r"\b[0-9A-HJKMNP-TV-Z]{20}\b", "the id of an entry"),
    (r"\b[0-9a-f]{16,64}\b", "a hash"),
    (r"\b\d+(\.\d+)? (s|ms|µs)\b", "a duration"),
    (r"\b\d+\.\d+ %", "a share"),
    (r"replay-[0-9a-z]{12}", "a branch"),
    (r"ap_[0-9a-f]+", "an approval"),
    (r"127\.0\.0\.1:\d+/", "127.0.0.1/"),
    (r"(stdio:\w+)-[0-9a-f]{8}", r"\1"),
    (r"\.py:\d+", "a line"),
    (r"\d+ (files|entries)", r"\1"),
)


@dataclass(frozen=True)
class Sample:
    """A command line of a page, and the lines that it prints there."""

    place: str
    command: str
    output: tuple[str, ...] = ()


def samples(page: Path) -> Iterator[Sample]:
    """The command lines in the fenced blocks of a page."""
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        lines = block[2].replace("\\\n", " ").splitlines()
        if block[1] not in ("text", "console", "sh", "bash", ""):
            continue
        if block[1] in ("sh", "bash", ""):
            yield from (Sample(f"{page.name}:{line}", each) for each in lines if each.strip())
            continue
        starts = [number for number, each in enumerate(lines) if each.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
            output = tuple(each.rstrip() for each in lines[start + 1 : end] if each.strip())
            yield Sample(f"{page.name}:{line}", lines[start][2:], output)


@cache
def command_line() -> Any:
    """Every command with its options."""
    app = Hookline(home=Path("/nonexistent"), workspace=Path("/nonexistent"), project=False)
    app.load_hooks(packages=False)
    root = built(app.create_cli_app())
    root.commands = {name: declared(command) for name, command in root.commands.items()}
    return root


def words_of(line: str) -> list[str]:
    """The words after `hookline` in a command line; none where it is another program's."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    words = [word.removeprefix(".venv/bin/") for word in words]
    for word in ("|", "&&", ";", "--"):
        while word in words and words[0] != "hookline":
            words = words[words.index(word) + 1 :]
    if words[:1] != ["hookline"]:
        return []
    ends = [number for number, word in enumerate(words) if word in ("|", "&&", ";", "--", ">")]
    return words[1 : ends[0]] if ends else words[1:]


def fault(words: list[str]) -> str:
    """What is wrong with the words of a command line: a command or an option that does not exist."""
    command, taken = command_line(), {"-h", "--help"}
    while words:
        word, *words = words
        if isinstance(command, ShowUnlessNamed) and word not in command.commands:
            command = command.commands["show"]
        taken |= {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
        if word.startswith("-") and len(word) > 1:
            name = word.partition("=")[0].rstrip(",.")
            if name not in taken:
                return f"{command.name} has no option {name}"
            option = next((p for p in command.params if name in p.opts), None)
            if option is not None and not getattr(option, "is_flag", False) and "=" not in word:
                words = words[1:]
        elif word in (commands := getattr(command, "commands", {})):
            command = commands[word]
        elif commands and re.fullmatch(r"[a-z-]+", word):
            return f"{command.name} has no command {word}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_on_a_page_exists(page: Path):
    lines = [(sample.place, sample.command) for sample in samples(page)]
    lines += [(page.name, span) for span in SPAN.findall(page.read_text())]
    wrong = [(place, line, fault(words_of(line))) for place, line in lines]
    assert [each for each in wrong if each[2]] == []


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, name in VARIES:
        line = re.sub(pattern, name, line)
    return " ".join(line.split())  # columns are as wide as what is in them


def matches(shown: str, printed: str) -> bool:
    """Whether a line of a page stands for a line that was printed; `…` is any text."""
    pattern = ".*".join(re.escape(piece.strip()) for piece in plain(shown).split("…"))
    return re.fullmatch(rf"\s*{pattern}\s*", plain(printed)) is not None


def differences(shown: tuple[str, ...], printed: list[str]) -> list[str]:
    """The lines of a sample that were not printed, and those printed that it does not show."""
    left = list(printed)
    missing: list[str] = []
    for line in shown:
        if line.strip() == "…":
            continue
        if line.startswith("> "):
            continue
        found = next((each for each in left if matches(line, each)), None)
        if found is None:
            missing.append(f"not printed: {line}")
        else:
            left.remove(found)
    more = [] if "…" in shown else [f"not shown: {line}" for line in left]
    return missing + more


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a path as short as a person's: commands shorten long ones."""
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


@pytest.mark.parametrize("name", sample_pages.PAGES)
def test_the_samples_of_a_page_print_what_it_shows(name, short_folder, monkeypatch, capsys):
    person = short_folder / "ada"
    home, workspace = person / ".hookline", person / "library"
    workspace.mkdir(parents=True)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(person))
    for key in [key for key in os.environ if key.endswith("_API_KEY")]:
        monkeypatch.delenv(key)
    hookline = commandline.here(home, workspace, monkeypatch, capsys)
    page = sample_pages.Page(hookline, home, workspace, monkeypatch)
    sample_pages.PAGES[name](page)
    wrong: list[str] = []
    for sample in samples(ROOT / name):
        if not words_of(sample.command) or sample_pages.why_not(name, sample.command):
            continue
        command = page.before(sample.command)
        printed, code = run(page, command, sample.output)
        for here, shown in page.shown_as.items():
            printed = printed.replace(here, shown)
        lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
        if found := differences(sample.output, lines) if sample.output else []:
            wrong += ["", f"{sample.place}: $ {sample.command}", *found, "printed:", *lines]
        assert "Traceback" not in printed, sample
        if not sample.output and code:  # where nothing is shown, it works
            wrong += ["", f"{sample.place}: $ {sample.command}", f"exit code {code}", *lines]
    page.end()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_every_sample_is_run_or_says_why_it_is_not():
    left = []
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        for sample in samples(page):
            runs = name in sample_pages.PAGES or sample_pages.why_not(name, sample.command)
            if words_of(sample.command) and not runs:
                left.append((sample.place, sample.command))
    assert left == []
    texts = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
    assert [at for at in sample_pages.NOT_RUN if at[1] not in texts[at[0]]] == []


def serve(page: sample_pages.Page, words: list[str], shown: tuple[str, ...]) -> tuple[str, int]:
    """Start a command that serves, until it printed what is shown; return that and its exit code."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    where = {"cwd": page.workspace, "env": page.environment(), "imports": SERVED}
    process = forks.start(forks.MAIN, *words, **where, **pipes)
    printed = "".join(process.stderr.readline() for _ in shown or [""])
    process.send_signal(signal.SIGINT)
    process.communicate()
    return printed, 0


def run(page: sample_pages.Page, line: str, shown: tuple[str, ...]) -> tuple[str, int]:
    """Run a command line, with what is piped into it and out of it: what it prints, its exit code.

    Shown lines that begin with `>` are typed.
    """
    before, _, rest = line.partition("hookline ")
    stdin = next((text for start, text in page.answers.items() if line.startswith(start)), "")
    if before.strip().endswith("|"):
        shell = ["sh", "-c", before.strip().removesuffix("|")]
        stdin = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    command, _, after = rest.partition(" | ")
    words = shlex.split(command, comments=True)
    typed = [each.removeprefix("> ") for each in shown if each.startswith("> ")]
    if typed:
        stdin = "\n".join([*typed, ""])
    elif words[0] in ("gateway", "worker", "inspect"):
        return serve(page, words, shown)
    if words[0] in ("chat", "sandbox", "gateway"):  # which use the files of standard input and output
        done = forks.run(forks.MAIN, *words, stdin=stdin, cwd=page.workspace, env=page.environment())
    else:
        done = page.hookline(*words, stdin=stdin, **page.env)
    printed = done.stdout if typed else done.stdout + done.stderr
    if after.startswith("grep "):
        word = after.removeprefix("grep ").strip()
        printed = "".join(each for each in printed.splitlines(keepends=True) if word in each)
    elif after.startswith("psql "):
        page.psql(printed)
    return printed, done.returncode


def sections() -> dict[str, str]:
    """The sections of cli.md by the commands in their headings."""
    parts = re.split(r"^## (.*)$", (ROOT / "docs" / "cli.md").read_text(), flags=re.M)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: text for head, text in pairs for name in re.findall(r"hookline ([a-z]+)", head)}


def inner(command: Any) -> Iterator[Any]:
    """A command and everything below it."""
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from inner(each)


def test_the_page_on_the_command_line_has_every_command_and_option_and_no_other():
    found = sections()
    assert set(found) == set(command_line().commands)
    missing, unknown = [], []
    for name, command in command_line().commands.items():
        text = found[name]
        named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text))
        params = [p for each in inner(command) for p in each.params if p.opts[0].startswith("-")]
        known = {option for p in params for option in (*p.opts, *p.secondary_opts)}
        missing += [f"{name} {p.opts}" for p in params if not named & {*p.opts, *p.secondary_opts}]
        subs = getattr(command, "commands", {})
        missing += [f"{name} {sub}" for sub in subs if not re.search(rf"`[^`]*\b{sub}\b", text)]
        unknown += [f"{name} {option}" for option in sorted(named - known)]
    assert (missing, unknown) == ([], [])


def test_the_page_on_the_chat_has_every_slash_command_and_no_other(app):
    from hookline.cli.chat.commands import ChatCommands

    table = re.findall(r"^\| (`/.*?) \|", (ROOT / "docs" / "chat.md").read_text(), re.M)
    named = [name for cell in table for name in re.findall(r"`/([a-z]+)", cell)]
    chat = SimpleNamespace(app=app, session_id="s")
    assert sorted(named) == sorted(ChatCommands(chat).known)


def test_the_page_on_the_gateway_has_every_slash_command_and_no_other(app):
    from hookline.serve.commands import ChannelCommands

    text = (ROOT / "docs" / "gateway.md").read_text()
    section = re.search(r"^## Commands\n(.*?)^## ", text, re.S | re.M)[1]
    named = re.findall(r"^\| `/([a-z]+)", section, re.M)
    known = ChannelCommands(SimpleNamespace(app=app))._known("s", {"content": ""})
    assert sorted(named) == sorted(known)


def test_the_picture_of_a_turn_has_every_hook_of_it_but_those_of_a_tool_call():
    [picture] = re.findall(r"^a message:.*?^```", (ROOT / "docs" / "turn.md").read_text(), re.S | re.M)
    shown = re.findall(r"[├└]─ ([a-z_:, ]+?)  |^(session_shutdown)", picture, re.M)
    named = {name for pair in shown for name in "".join(pair).split(", ")}
    missing = [name for _, name in walk(CATALOG) if name in CATALOG and name not in named]
    assert {CATALOG[name].family for name in missing} <= {"tool", "plugin"}

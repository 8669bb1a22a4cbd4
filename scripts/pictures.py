"""Makes the pictures of the documentation from what the commands really print.

.venv/bin/python scripts/pictures.py
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PICTURES = {"hooks.svg": (["hooks", "--family", "tool"], 132)}
TOKEN = "the-token-of-the-pictures"
KEPT = f"sessionStorage.setItem('hookline.token', '{TOKEN}')"
WORK = Path(__file__).parent / "chat_work.py"
"""The conversation that the pictures of the chat show."""


def without_web_fonts(template: str) -> str:
    """A picture must not fetch anything: drop the font declarations that rich puts in."""
    start, end = template.index("    @font-face"), template.index("    .{unique_id}-matrix")
    return template[:start] + template[end:]


def picture(arguments: list[str], width: int) -> str:
    """Run a command in colour and draw its output."""
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(width - 2), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "hookline", *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout
    lines = "\n".join(line.rstrip() for line in printed.splitlines())
    return drawn(Text.from_ansi(f"$ hookline {' '.join(arguments)}\n{lines}"), width)


def drawn(text: Text, width: int) -> str:
    """A text as a picture of a terminal."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, force_terminal=True)
        console.print(text)
        svg = console.export_svg(title="hookline", code_format=without_web_fonts(CONSOLE_SVG_FORMAT))
    return svg.replace("Fira Code", "DejaVu Sans Mono")


class Terminal:
    """A chat in a pseudo-terminal, on a screen that can be drawn."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.screen)
        env = {**os.environ, "HOOKLINE_HOME": str(folder / "home"), "TERM": "xterm-256color"}
        env.pop("NO_COLOR", None)
        arguments = ["-m", "hookline", "chat", "--model", f"scripted:{WORK.name}"]
        shutil.copy(WORK, folder / "repository")
        self.child = pexpect.spawn(
            sys.executable, arguments, cwd=str(folder / "repository"), env=env, encoding="utf-8",
            dimensions=(rows, columns), timeout=20,
        )  # fmt: skip

    def see(self, pattern: str) -> None:
        """Wait until something is on the screen."""
        end = time.monotonic() + 30
        while not re.search(pattern, "\n".join(self.screen.display)):
            if time.monotonic() > end:
                raise RuntimeError(f"{pattern!r} did not show:\n" + "\n".join(self.screen.display))
            try:
                data = self.child.read_nonblocking(65536, timeout=0.1)
            except pexpect.TIMEOUT:
                continue
            self.stream.feed(data)
            if "\x1b[6n" in data:  # it asks where the cursor is
                row, column = self.screen.cursor.y + 1, self.screen.cursor.x + 1
                self.child.send(f"\x1b[{row};{column}R")

    def type(self, text: str) -> None:
        self.child.send(text)

    def text(self) -> Text:
        """The screen, cell by cell, without the empty rows before its last one."""
        rows = [self._row(number) for number in range(self.screen.lines)]
        *above, status = rows
        while above and not above[-1].plain.strip():
            above.pop()
        shown = [*above, Text(""), status] if status.plain.strip() else above
        return Text("\n").join(shown)

    def _row(self, number: int) -> Text:
        row = Text()
        for column in range(self.screen.columns):
            cell = self.screen.buffer[number][column]
            row.append(cell.data, Style(color=colour(cell.fg), bold=cell.bold, italic=cell.italics))
        row.rstrip()
        return row


def colour(name: str) -> str | None:
    """A colour as rich names it."""
    if name == "default":
        return None
    return (
        f"#{name}"
        if re.fullmatch(r"[0-9a-f]{6}", name)
        else re.sub("^bright", "bright_", name.replace("brown", "yellow"))
    )


def make_repository(folder: Path) -> None:
    """The repository in which the work is done."""
    for path, text in runpy.run_path(str(WORK))["FILES"].items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def chat_pictures() -> dict[str, str]:
    """A piece of work in a repository: the question, a diff with approval, and the answer."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        make_repository(folder / "repository")
        chat = Terminal(folder, 96, 34)
        chat.see(r"(?m)^>")
        chat.type("The tests of @shop/basket.py fail, please mend it ")
        chat.see("please mend it")
        chat.type("\r")
        chat.see(r"(?s)● shell .*allow it\?")
        found["chat-work.svg"] = drawn(chat.text(), 96)
        chat.type("y\r")
        chat.see(r"(?s)● edit_file .*allow it\?")
        chat.type("y\r")
        chat.see(r"(?s)└ --- a.*● shell .*allow it\?")
        found["chat-diff.svg"] = drawn(chat.text(), 96)
        chat.type("y\r")
        chat.see(r"(?s)Shall I commit it\?.*> .*tokens")
        found["chat-answer.svg"] = drawn(chat.text(), 96)
        chat.type("\x04")
        chat.child.close()
    return found


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """The gateway of a repository, and its address."""
    shutil.copy(WORK, folder / "repository")
    command = [sys.executable, "-m", "hookline", "gateway", "--port", "0"]
    env = {**os.environ, "HOOKLINE_HOME": str(folder / "home"), "NO_COLOR": "1"}
    running = subprocess.Popen(
        [*command, "--model", f"scripted:{WORK.name}"], cwd=folder / "repository", env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        for line in running.stdout or ():
            if found := re.search(r"http://\S+", line):
                yield found[0]
                break
    finally:
        running.terminate()
        running.wait()


def page_pictures() -> dict[str, bytes]:
    """The same work on the web page: a wide one, a dark one, and one on a phone."""
    from playwright.sync_api import sync_playwright

    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        make_repository(Path(directory) / "repository")
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        with gateway(Path(directory)) as address:
            page = browser.new_page(viewport={"width": 1000, "height": 680})
            page.goto(address)
            page.wait_for_selector('#state[data-state="connected"]')
            page.fill("#composer-text", "The tests of shop/basket.py fail, please mend it")
            page.click("#send")
            page.click(".approval >> text=Approve for this session")
            page.wait_for_selector(".approval .diff")
            found["page-approval.png"] = page.screenshot()
            page.set_viewport_size({"width": 390, "height": 680})
            found["page-phone.png"] = page.screenshot()
            page.set_viewport_size({"width": 1000, "height": 680})
            page.click(".approval >> text=Approve once")
            page.wait_for_selector("text=Shall I commit it?")
            page.emulate_media(color_scheme="dark")
            found["page-answer.png"] = page.screenshot()
        browser.close()
    return found


PATIENT = """
from hookline.events import ToolCallEventResult

def patient(event):
    if event.tool_name == "shell":
        command = f"timeout 60 {event.input['command']}"
        return ToolCallEventResult(input={**event.input, "command": command})

hooks = [("tool_call", patient)]
"""
NO_PUSH = """
def no_push(event):
    if "git push" in str(event.input.get("command")):
        return event.deny("a person pushes, after a review")

hooks = [("tool_call", no_push)]
"""
PUSH = """
turns.insert(-1, Turn(tool_calls=[Call("shell", {"command": "git push origin main"})]))
"""
STRICT = """
from hookline.events import ToolCallEventResult

def strict(event):
    if "|" in str(event.input.get("command")):
        return ToolCallEventResult(block=True, reason="no pipes: run one program, and read its output")

hooks = [("tool_call", strict)]
"""


@contextmanager
def inspector(folder: Path) -> Iterator[str]:
    """The same work, recorded with a trace under a hook; and the inspector of it, with its address."""
    (folder / "repository" / WORK.name).write_text(WORK.read_text() + PUSH)
    hooks = folder / "home" / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "patient.py").write_text(PATIENT)
    (hooks / "no_push.py").write_text(NO_PUSH)
    env = {**os.environ, "HOOKLINE_HOME": str(folder / "home"), "HOOKLINE_TRACE__LEVEL": "full"}
    env["HOOKLINE_GATEWAY__TOKEN"] = TOKEN
    here = {"cwd": folder / "repository", "env": env, "text": True}
    command = [sys.executable, "-m", "hookline"]
    said = "The tests of shop/basket.py fail, please mend it"
    model = ["--model", f"scripted:{WORK.name}", "--yes", "--chat-id", "shop"]
    subprocess.run([*command, "run", said, *model], check=True, stdout=subprocess.DEVNULL, **here)
    (hooks / "strict.py").write_text(STRICT)
    inspect = [*command, "inspect", "--port", "0"]
    running = subprocess.Popen(inspect, stderr=subprocess.PIPE, **here)
    try:
        for line in running.stderr or ():
            if found := re.search(r"http://[\d.]+:\d+/inspect", line):
                yield found[0]
                break
    finally:
        running.terminate()
        running.wait()


def inspector_pictures() -> dict[str, bytes]:
    """What happened in the work: a turn, what a replay under a new hook comes to, and on a phone."""
    from playwright.sync_api import sync_playwright

    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        make_repository(Path(directory) / "repository")
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        with inspector(Path(directory)) as address:
            page = browser.new_page(viewport={"width": 1200, "height": 980})
            page.add_init_script(KEPT)
            page.goto(f"{address}#/session/terminal%3Ashop/turn/1")
            page.select_option("#bars-shown", "decided")
            page.wait_for_selector(".call:has-text('git push')")
            page.wait_for_selector(".bars .row:has-text('no_push.py')")
            found["inspector-turn.png"] = page.screenshot()
            page.set_viewport_size({"width": 390, "height": 780})
            page.wait_for_timeout(300)  # the list is drawn anew in the next frame
            found["inspector-phone.png"] = page.screenshot()
            page.set_viewport_size({"width": 1200, "height": 860})
            page.emulate_media(color_scheme="dark")
            page.goto(f"{address}#/compare/terminal%3Ashop")
            page.click("text=Run the replay")
            page.wait_for_selector("#compared")
            page.check("text=Differences only")
            found["inspector-replay.png"] = page.screenshot()
        browser.close()
    return found


if __name__ == "__main__":
    for name, (arguments, width) in PICTURES.items():
        (IMAGES / name).write_text(picture(arguments, width))
        print(IMAGES / name)
    for name, svg in chat_pictures().items():
        (IMAGES / name).write_text(svg)
        print(IMAGES / name)
    for name, png in (page_pictures() | inspector_pictures()).items():
        (IMAGES / name).write_bytes(png)
        print(IMAGES / name)

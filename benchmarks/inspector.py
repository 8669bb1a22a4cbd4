"""How long the inspector's page takes until it can be used, with sessions of ten thousand events.

    python benchmarks/inspector.py                  # some twenty seconds
    python benchmarks/inspector.py --check          # exit code 1 when the threshold is missed
    python benchmarks/inspector.py --json result.json

*Usable* is: rows of the session stand on the page, one of them is clicked, and what was clicked on is
shown. The clock starts with the navigation and stops with the first frame in which the answer to the
click can be seen. The click is made by a script in the page, in the frame in which the rows are first
drawn, so that no hand is waited for. *Hooks* is when the bars of hooks are there as well, which are
read from the trace: told, and not tested.

The page is served by `hookline inspect`, a process of its own, to a real Chromium. Each round has an
empty browser cache and opens a session that nobody opened before. The screens:

- turns: a session of 1,450 turns, opened as a link in the list of sessions does; a turn is clicked on.
- events: the same, all its 10,000 events; one of them is clicked on.
- one turn: a session that is a single turn of 10,000 events; a bar of its timeline is clicked on.
- bare: a picture of a few bytes from the same server, until it is drawn. What the browser and the
  server take for any page at all, in turns with the others.

Sessions are traced in full, with three hooks for each tool call. Trust the best round; the median tells
how busy the machine is.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress

LIMIT = 1.0
EVENTS = 10_000
TURNS = 1_450
CALLS = 105  # in one answer of the model, where a turn is long
LONG_ANSWERS = 48
SCREENS = {
    "turns": ("#/session/turns", "main .list .row .name", ".timeline .bars .row .name"),
    "events": ("#/session/events/events", "main .list .row .name", ".detail article"),
    "one turn": ("#/session/one%20turn/turn/1", ".timeline .bars .row .name", ".detail article"),
}
"""The address after the page's own, a row that is clicked on, and what the click is answered with."""
BARE = "/static/icon.svg"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

TOKEN = "the-token-of-the-benchmark"

# When the first row is drawn, click on it; when the answer is there, wait for the frame that shows it.
# A task of its own after a frame's callbacks runs when that frame was drawn.
WATCH = """(([row, answer]) => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  }));
  const found = (selector) => new Promise((done) => {
    const look = () => document.querySelector(selector);
    if (look()) return done(look());
    const watching = new MutationObserver(() => {
      if (!look()) return;
      watching.disconnect();
      done(look());
    });
    watching.observe(document, { childList: true, subtree: true });
  });
  window.measured = (async () => {
    const first = await found(row);
    const rows = await drawn();
    first.isConnected ? first.click() : document.querySelector(row).click();
    await found(answer);
    const usable = await drawn();
    await found(".bar-of[data-kind=hook]");
    return { rows, usable, hooks: await drawn() };
  })();
})"""

BARE_WATCH = """window.measured = new Promise((done) => addEventListener("load", () =>
  requestAnimationFrame(() => setTimeout(() => done(performance.now())))))"""


# --- What is looked at ---


async def record(home: Path) -> None:
    """Have the sessions, in an app that traces everything."""
    from hookline.events import ToolCallEvent
    from hookline.hooks import hookimpl
    from hookline.models import Models, ScriptedModel
    from hookline.models.script import Call, Turn
    from hookline.policy import Policy
    from hookline.runtime.app import Hookline
    from hookline.tools import Tool, tool

    def look_up(word: str) -> str:
        """Look a word up."""
        return f"{word} is a word. " * 8

    class House:
        """The kind of plugin that people write."""

        @hookimpl
        def register_tools(self) -> list[Tool]:
            return [tool(registry=None, side_effects="none")(look_up)]

        @hookimpl
        def before_tool_call(self, arguments: dict[str, Any]) -> dict[str, Any]:
            return {**arguments, "word": arguments["word"].lower()}

        @hookimpl
        def tool_call(self, event: ToolCallEvent) -> None:
            """Look at the call."""

        @hookimpl
        def tool_result(self, event: Any) -> None:
            """Look at the result."""

    async def run(session: str, turns: list[Turn | str], times: int) -> None:
        models = Models()
        models.add(ScriptedModel(turns, repeat=True, record=False))
        app = Hookline(
            home=home, workspace=home, model="scripted", models=models,
            policy=Policy(default="auto"),
            overrides={"trace": {"level": "full", "session_records": 40_000, "session_bytes": 2**25}},
        )  # fmt: skip
        app.load_hooks(packages=False)
        app.hooks.add(House(), name="house")
        async with app.running():
            for number in range(times):
                if number % 20 == 19:  # as compaction does, so that the model's context stays short
                    await (await app.tape(session)).anchor("so far", summary="Words were looked up.")
                await app.process({"content": f"Question {number}", "session_id": session})
                progress(f"having {session}: turn {number + 1} of {times}")
            entries = len(await app.store().outline(session))
            assert entries >= EVENTS, f"{session} has {entries} events"

    call = Turn("I look.", tool_calls=[Call("look_up", {"word": "Hook"})])
    for session in ("turns", "events"):
        await run(session, [call, "It is a word."], TURNS)
    many = [Call("look_up", {"word": f"Word {number}"}) for number in range(CALLS)]
    await run("one turn", [*[Turn(tool_calls=many)] * LONG_ANSWERS, "All are words."], 1)


# --- Looking ---


@contextmanager
def inspecting(home: Path) -> Generator[str]:
    """`hookline inspect`, and its address."""
    command = [sys.executable, "-m", "hookline", "inspect", "--port", "0"]
    given = {**os.environ, "HOOKLINE_HOME": str(home), "NO_COLOR": "1"}
    given["HOOKLINE_GATEWAY__TOKEN"] = TOKEN
    with subprocess.Popen(command, env=given, cwd=home, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            said = process.stderr.readline()
            found = re.search(r"http://\S+", said)
            assert found, said
            yield found[0]
        finally:
            process.terminate()


@asynccontextmanager
async def browsing() -> AsyncGenerator[Any]:
    from playwright.async_api import async_playwright

    flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        await browser.close()


async def look(browser: Any, address: str, screen: str) -> dict[str, float]:
    """Open a screen in a browser that knows nothing yet; seconds since the navigation."""
    fragment, *selectors = SCREENS[screen]
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    page.set_default_timeout(30_000)
    kept = f"sessionStorage.setItem('hookline.token', '{TOKEN}')"
    await page.add_init_script(f"{kept}; {WATCH}({json.dumps(selectors)})")
    await page.goto(address + fragment)
    async with asyncio.timeout(30):
        found = await page.evaluate("window.measured")
    nodes = await page.evaluate("document.getElementsByTagName('*').length")
    await context.close()
    return {**{name: value / 1e3 for name, value in found.items()}, "elements": nodes}


async def bare(browser: Any, address: str) -> dict[str, float]:
    """Open a page with next to nothing on it."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    await page.add_init_script(BARE_WATCH)
    await page.goto(address + BARE)
    found = await page.evaluate("window.measured")
    await context.close()
    return {"usable": found / 1e3}


async def measure(home: Path, rounds: int) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ("bare", *SCREENS)}
    async with browsing() as browser:
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            with inspecting(home) as address:  # a new one: it has read no session yet
                found["bare"].append(await bare(browser, address))
                for screen in SCREENS:
                    found[screen].append(await look(browser, address, screen))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--home", type=Path, help="keep what is recorded there, and use it again")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("needs the browser chromium; scripts/system-packages installs it")
    about = environment(["hookline", "playwright"], options.rounds)
    print_environment(about)
    with tempfile.TemporaryDirectory() as place:
        home = options.home or Path(place)
        if not (home / "tape.db").exists():
            asyncio.run(record(home))
        found = asyncio.run(measure(home, options.rounds))
    heads = "".join(f"{head:>17}" for head in ("rows s", "usable s", "hooks s"))
    print(f"\n{'screen':10}{heads} {'elements':>9}   (best, median)")
    for name, rounds in found.items():
        cells = "".join(f"{cell(rounds, part):>17}" for part in ("rows", "usable", "hooks"))
        print(f"{name:10}{cells} {rounds[0].get('elements', ''):>9}")
    checks = [
        Check(f"{name}, best round", min(each["usable"] for each in found[name]), LIMIT, unit="s")
        for name in SCREENS
    ]
    passed = print_outcomes(checks)
    if options.json:
        said = {"environment": about, "rounds": found, "checks": [each.as_json() for each in checks]}
        options.json.write_text(json.dumps(said, indent=2))
    if options.check and not passed:
        sys.exit(1)


def cell(rounds: list[dict[str, float]], part: str) -> str:
    """The best round and the one in the middle."""
    times = [each[part] for each in rounds if part in each]
    return f"{min(times):.3f}, {statistics.median(times):.3f}" if times else ""


if __name__ == "__main__":
    main()

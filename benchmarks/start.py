"""What a cold start costs: Hookline's imports and commands beside pluggy, typer and other frameworks.

Run it from the checkout, with the peers of the `bench` extra installed:

    python benchmarks/start.py                        # about a minute
    python benchmarks/start.py --rounds 5
    python benchmarks/start.py --check                # exit code 1 when a threshold is missed
    python benchmarks/start.py --json result.json

Each row is a new interpreter, from its start to its end, with bytecode cached for all; the first time,
which fills the cache, is not counted. Each round runs every row, in a new random order. Trust the
minimum and the ratios. The ratio of two imports leaves the interpreter's own start out of both sides,
which is the harder test.

A command of Hookline looks for plugins among the packages that are installed: where there are many, as
with all peers beside it, that is a part of what is measured. In one row fifty more are installed, each
with a manifest; two of them say that they have commands.

One row is a whole first run of an `Agent` against a server on loopback: two model calls and a tool. The
rows `first request` end when the first model request arrives: the import, an agent with one tool, and
the connection, in Hookline and in other frameworks.
"""

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio
from server import serving

NOTHING = "python -c pass"
FIRST_RUN = "Agent, from import to answer"
AGENT = """
from hookline import Agent

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

print(Agent("openai:gpt-x", tools=[add]).run_sync("What is 190019 plus 230023?").text)
"""
TOOL = """
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""
REQUESTS = {
    "hookline": """
from hookline import Agent
Agent("openai:gpt-x", tools=[add]).run_sync("hi")
""",
    "pydantic_ai": """
from pydantic_ai import Agent
Agent("openai-chat:gpt-x", tools=[add]).run_sync("hi")
""",
    "langchain": """
from langchain.agents import create_agent
create_agent("openai:gpt-x", tools=[add]).invoke({"messages": [{"role": "user", "content": "hi"}]})
""",
    "agents": """
from agents import Agent, Runner, function_tool
Runner.run_sync(Agent(name="a", model="gpt-x", tools=[function_tool(add)]), "hi")
""",
    "strands": """
from strands import Agent, tool
from strands.models.openai import OpenAIModel
Agent(OpenAIModel(model_id="gpt-x"), tools=[tool(add)], callback_handler=None)("hi")
""",
}
"""Programs that make an agent with a tool and ask a model, by the module that they need."""
PLUGINS = 50
WITH_PLUGINS = f"hookline --help, {PLUGINS} plugins"


@dataclass
class Start:
    """One row: a command, and the seconds it took each time."""

    name: str
    arguments: list[str]
    module: str = ""  # without it there is nothing to measure
    distribution: str = ""
    every: int = 1  # it takes part in every so many rounds
    plugins: bool = False  # the fifty plugins are installed
    to_request: bool = False  # it ends when a model request arrives
    seconds: list[float] = field(default_factory=list[float])

    @property
    def available(self) -> bool:
        return not self.module or find_spec(self.module) is not None

    @property
    def best(self) -> float | None:
        return min(self.seconds, default=None)

    def run(self, settings: dict[str, str], site: str) -> float:
        if self.to_request:
            return first_request(self.arguments, settings)
        if self.plugins:
            settings = {**settings, "PYTHONPATH": site}
        started = perf_counter()
        done = subprocess.run(
            [sys.executable, *self.arguments], env=settings, capture_output=True, text=True, check=False
        )
        elapsed = perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"{self.name} failed: {done.stderr or done.stdout}")
        return elapsed

    def as_json(self, nothing: float | None) -> dict[str, Any]:
        if not self.seconds:
            return {"what": self.name, "unavailable": "not installed"}
        return {
            "what": self.name,
            "min_ms": min(self.seconds) * 1e3,
            "median_ms": statistics.median(self.seconds) * 1e3,
            "over_interpreter_ms": None if nothing is None else (min(self.seconds) - nothing) * 1e3,
        }


def first_request(arguments: list[str], settings: dict[str, str]) -> float:
    """Start a program, and end it when its first model request arrives: the seconds until then."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(120)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
        started = perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**settings, **quiet, "OPENAI_BASE_URL": url},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(120)
                while not connection.recv(65536).startswith(b"POST"):
                    pass
                return perf_counter() - started
        finally:
            process.kill()
            process.wait()


def asking(module: str, distribution: str, *, every: int = 4) -> Start:
    code = f"{TOOL}{REQUESTS[module]}"
    return Start(f"first request, {module}", ["-c", code], module, distribution, every, to_request=True)


def importing(module: str, distribution: str, code: str = "", *, every: int = 1) -> Start:
    code = code or f"import {module}"
    return Start(code, ["-c", code], module, distribution, every)


def command(*arguments: str) -> Start:
    """What the installed `hookline` does, without depending on where it was installed."""
    code = "from hookline.cli import main; main()"
    return Start(" ".join(("hookline", *arguments)), ["-c", code, *arguments], "hookline", "hookline")


def starts() -> list[Start]:
    return [
        Start(NOTHING, ["-c", "pass"]),
        importing("pluggy", "pluggy"),
        importing("hookline", "hookline"),
        importing("hookline", "hookline", "from hookline import Hooks"),
        importing("hookline", "hookline", "import hookline.runtime.app"),
        Start(FIRST_RUN, ["-c", AGENT], "aiohttp", "hookline"),
        asking("hookline", "hookline", every=1),
        asking("pydantic_ai", "pydantic-ai-slim"),
        asking("langchain", "langchain"),
        asking("agents", "openai-agents"),
        asking("strands", "strands-agents"),
        importing("typer", "typer"),
        command("--help"),
        replace(command("--help"), name=WITH_PLUGINS, plugins=True),
        command("hooks"),
        importing("strands", "strands-agents", every=4),  # slow, and only to compare
        importing("pydantic_ai", "pydantic-ai-slim", every=4),
    ]


def install_plugins(site: Path) -> str:
    """Fifty packages with a plugin and a manifest each, of which two add commands."""
    for number in range(PLUGINS):
        name, has_commands = f"fake{number:02}", number < 2
        package, about = site / f"hookline_{name}", site / f"hookline_{name}-1.0.dist-info"
        package.mkdir(parents=True)
        about.mkdir()
        (package / "__init__.py").touch()
        said = {"name": name, "order": number, "provides": ["cli" if has_commands else "tool"]}
        (package / "manifest.py").write_text(f"def manifest():\n    return {said!r}\n")
        hook = "register_cli_commands(app):\n    app.command({name!r})(lambda: None)"
        (package / "plugin.py").write_text(
            "from hookline import hookimpl\n\n@hookimpl\ndef "
            + (hook.format(name=name) if has_commands else "system_prompt():\n    return 'hello'")
            + "\n"
        )
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: hookline-{name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(
            f"[hookline]\n{name} = hookline_{name}.plugin\n\n"
            f"[hookline.manifest]\n{name} = hookline_{name}.manifest:manifest\n"
        )
    return str(site)


def measure(rows: list[Start], rounds: int) -> None:
    rows = [row for row in rows if row.available]
    with tempfile.TemporaryDirectory() as directory, serving() as server:
        # A checkout may have no bytecode and an environment may forbid it; an installed package has it.
        settings = {
            **os.environ,
            "PYTHONPYCACHEPREFIX": f"{directory}/cache",
            "HOOKLINE_HOME": f"{directory}/home",
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "none",
        }
        settings.pop("PYTHONDONTWRITEBYTECODE", None)
        site = install_plugins(Path(directory, "site"))
        for number in range(rounds + 1):
            progress(f"round {number} of {rounds}" if number else "compiling")
            for row in random.sample(rows, len(rows)):
                if number == 0:
                    row.run(settings, site)
                elif number % row.every == 1 % row.every:
                    row.seconds.append(row.run(settings, site))
    progress("")


def checks(rows: list[Start]) -> list[Check]:
    best = {row.name: row.best for row in rows}
    nothing = best[NOTHING] or 0.0

    def over(name: str) -> float | None:
        found = best[name]
        return None if found is None else max(0.0, found - nothing)

    peers = [best[f"first request, {name}"] for name in REQUESTS if name != "hookline"]
    fastest = min((peer for peer in peers if peer is not None), default=None)
    return [
        Check(
            "import, an agent and the first model request, whole, against the fastest peer",
            ratio(best["first request, hookline"], fastest),
            1 / 3,
        ),
        Check(
            "import hookline against import pluggy, without the interpreter's start",
            ratio(over("import hookline"), over("import pluggy")),
            3.0,
        ),
        Check(
            "hookline --help against python -c 'import typer', whole",
            ratio(best["hookline --help"], best["import typer"]),
            2.0,
        ),
        Check(
            f"hookline --help with {PLUGINS} plugins, two with commands, against without",
            ratio(best[WITH_PLUGINS], best["hookline --help"]),
            1.5,
        ),
    ]


def print_rows(rows: list[Start]) -> None:
    nothing = rows[0].best
    print("A new interpreter from start to end: milliseconds, and how much of it is not Python's own.")
    print(f"{'':32}{'min':>9}{'median':>9}{'over':>9}")
    for row in rows:
        found = row.as_json(nothing)
        if "unavailable" in found:
            print(f"{row.name:32}{found['unavailable']:>17}")
            continue
        print(
            f"{row.name:32}{found['min_ms']:>9.1f}{found['median_ms']:>9.1f}"
            f"{found['over_interpreter_ms']:>9.1f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="starts of each row (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    rows = starts()
    about = environment((row.distribution for row in rows), options.rounds)
    measure(rows, options.rounds)
    outcomes = checks(rows)
    print_environment(about)
    print_rows(rows)
    if options.json:
        found = {
            **about,
            "starts": [row.as_json(rows[0].best) for row in rows],
            "checks": [check.as_json() for check in outcomes],
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

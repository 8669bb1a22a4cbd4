"""What a reload of hook files costs, in a running app with an open session.

    python benchmarks/reload.py                       # a few seconds
    python benchmarks/reload.py --files 100 --rounds 50
    python benchmarks/reload.py --check               # exit code 1 when the threshold is missed
    python benchmarks/reload.py --json result.json

Each round changes every file and reloads: the files are read, hashed and judged where they are a
project's, compiled, imported and attached, old handlers go, open sessions are told, and the first
dispatch after it, which is compiled anew, is made. Every file has ten handlers and imports a sibling.
The last row has a tool in every file, whose schema is most of what it costs. Trust the minimum.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from common import Check, environment, print_environment, print_outcomes

from hookline.events import AgentEndEvent
from hookline.models import ScriptedModel
from hookline.plugins.project import project_items
from hookline.runtime.app import Hookline

FILE = """
from hookline.events import ToolCallEventResult, TurnEndEvent

from ._shared import note

ROUND = {round}


async def on_end(event):
    note(len(event.messages))


def on_call(event, ctx):
    if event.tool_name == "rm":
        return ToolCallEventResult(block=True, reason="no")


def before(tool_name, arguments):
    return None


hooks = [
    ("agent_end", on_end),
    ("agent_start", note),
    (TurnEndEvent, note),
    ("turn_start", note),
    ("message_end", note),
    ("tool_call", on_call, {{"when": "shell"}}),
    ("tool_call", on_call, {{"guard": True}}),
    ("tool_execution_end", note),
    ("before_tool_call", before),
    ("session_start", note),
]
"""
TOOL = '''
from hookline import tool


@tool
def tool_{number}(text: str, times: int = 1) -> str:
    """Say something."""
    return text * times
'''
SHARED = "def note(event):\n    return None\n"
LIMIT = 100.0


def write(folder: Path, files: int, number: int, *, tools: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_shared.py").write_text(SHARED)
    for each in range(files):
        text = FILE.format(round=number) + (TOOL.format(number=each) if tools else "")
        (folder / f"file_{each:03}.py").write_text(text)


async def measure(files: int, rounds: int, *, project: bool, tools: bool) -> list[float]:
    """Milliseconds of each reload."""
    with tempfile.TemporaryDirectory() as place:
        workspace, home = Path(place, "work"), Path(place, "home")
        folder = (
            workspace / ".hookline" / "hooks" if project else home / "profiles" / "default" / "hooks"
        )
        workspace.mkdir()
        write(folder, files, 0, tools=tools)
        app = Hookline(home=home, workspace=workspace)
        app.load_hooks(packages=False)
        model = ScriptedModel(["Hello."])
        app.models.add(model)
        app.model = model.name
        took: list[float] = []
        async with app.running():
            await app.process({"content": "hello"})
            for number in range(1, rounds + 2):
                write(folder, files, number, tools=tools)
                if project:
                    app.trust.grant(project_items(workspace))
                started = perf_counter()
                done = await app.hook_files.reload()
                await app.hooks.emit(AgentEndEvent())
                took.append((perf_counter() - started) * 1000)
                assert not done.problems, done
                assert len(done.files) >= files, done  # the shipped ones count too
        return took[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--check", action="store_true", help="fail when a threshold is missed")
    options = parser.parse_args()
    about = environment(["pluggy", "pydantic"], options.rounds)
    print_environment(about)
    print(f"{options.files} hook files, milliseconds    {'min':>8} {'median':>8} {'max':>8}")
    rows: dict[str, dict[str, float]] = {}
    for name, project, tools in (
        ("profile", False, False),
        ("project, trusted", True, False),
        ("profile, with tools", False, True),
    ):
        took = asyncio.run(measure(options.files, options.rounds, project=project, tools=tools))
        row = {"min": min(took), "median": statistics.median(took), "max": max(took)}
        rows[name] = row
        print(f"{name:<31} {row['min']:>8.1f} {row['median']:>8.1f} {row['max']:>8.1f}")
    checks = [
        Check(f"{options.files} files, {name}", row["min"], LIMIT, unit="ms")
        for name, row in rows.items()
        if options.files == 20
    ]
    passed = print_outcomes(checks)
    if options.json:
        result = {"environment": about, "files": options.files, "milliseconds": rows}
        result["checks"] = [check.as_json() for check in checks]
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.check and not passed:
        sys.exit(1)


if __name__ == "__main__":
    main()

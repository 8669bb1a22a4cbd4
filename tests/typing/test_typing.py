"""Types are a feature: a checker accepts what is right and points at what is wrong."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GOOD, BAD = ("good.py", "good_agent.py"), ("bad.py", "bad_agent.py")
ROOT = HERE.parents[1]
STRICT = ("start", "evals", "side-by-side", "from-pydantic-ai")
"""The pages about `Agent`, on which everything is annotated."""
UNANNOTATED = {"start_1.py"}
"""The shortest program there is: its handler has no annotation."""
WRONG = {"differences_1.py", "gateway_3.py"}
"""A deliberate mistake, and a channel that is left out."""


def programs() -> dict[str, str]:
    """The Python in the pages of the documentation, and our examples."""
    found: dict[str, str] = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if page.name != "hooks.md":  # generated, and each example is checked with its hook
            blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
            found |= {f"{page.stem}_{number}.py": text for number, text in enumerate(blocks, start=1)}
    examples = [*(ROOT / "examples").glob("*.py"), *(ROOT / "examples").rglob("*_hookline.py")]
    return found | {f"example_{path.stem}.py": path.read_text() for path in examples}


PROGRAMS = {name: text for name, text in programs().items() if name not in WRONG}


def is_strict(name: str) -> bool:
    """Whether a program must be annotated, too."""
    agent = name.rpartition("_")[0] in STRICT or name.endswith("_hookline.py")
    return agent and name not in UNANNOTATED


@pytest.fixture(scope="module")
def findings(tmp_path_factory) -> dict[str, dict[int, str]]:
    folder = tmp_path_factory.mktemp("typing")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    for name in (*GOOD, *BAD):
        shutil.copy(HERE / name, folder)
    for name, source in PROGRAMS.items():
        (folder / name).write_text(source)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True, check=False)
    found: dict[str, dict[int, str]] = {name: {} for name in (*GOOD, *BAD, *PROGRAMS)}
    for diagnostic in json.loads(done.stdout)["generalDiagnostics"]:
        line = diagnostic["range"]["start"]["line"] + 1
        rule = diagnostic.get("rule", "syntax")
        name = Path(diagnostic["file"]).name
        follows = rule.startswith(("reportUnknown", "reportUntyped"))  # from a mistake
        missing = rule == "reportMissingParameterType" and name in PROGRAMS and not is_strict(name)
        if not follows and not missing:
            found[name][line] = rule
    return found


def expected(path: Path) -> dict[int, str]:
    lines = enumerate(path.read_text().splitlines(), start=1)
    marks = ((number, re.search(r"# error: (\w+)", line)) for number, line in lines)
    return {number: mark[1] for number, mark in marks if mark}


@pytest.mark.parametrize("name", GOOD)
def test_a_correct_program_passes_strict_checking(name, findings):
    assert findings[name] == {}


def test_every_example_of_the_documentation_passes_strict_checking(findings):
    assert len(PROGRAMS) > 80
    assert {name: findings[name] for name in PROGRAMS if findings[name]} == {}


@pytest.mark.parametrize("name", BAD)
def test_every_mistake_is_reported_on_its_line_and_nothing_else(name, findings):
    assert findings[name] == expected(HERE / name)


def test_there_are_enough_mistakes():
    assert sum(len(expected(HERE / name)) for name in BAD) >= 50

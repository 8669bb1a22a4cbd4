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
PAGE = (HERE.parents[1] / "docs" / "start.md").read_text()
PROGRAMS = {
    f"start_{number}.py": source
    for number, source in enumerate(re.findall(r"```python\n(.*?)```", PAGE, re.S), start=1)
}
"""The programs of the page `Start here`."""


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
        if not rule.startswith(("reportUnknown", "reportUntyped")):  # what follows from a mistake
            found[Path(diagnostic["file"]).name][line] = rule
    return found


def expected(path: Path) -> dict[int, str]:
    lines = enumerate(path.read_text().splitlines(), start=1)
    marks = ((number, re.search(r"# error: (\w+)", line)) for number, line in lines)
    return {number: mark[1] for number, mark in marks if mark}


@pytest.mark.parametrize("name", [*GOOD, *PROGRAMS])
def test_a_correct_program_passes_strict_checking(name, findings):
    assert findings[name] == {}


@pytest.mark.parametrize("name", BAD)
def test_every_mistake_is_reported_on_its_line_and_nothing_else(name, findings):
    assert findings[name] == expected(HERE / name)


def test_there_are_enough_mistakes():
    assert sum(len(expected(HERE / name)) for name in BAD) >= 50

"""Types are a feature: a checker accepts what is right and points at what is wrong."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def findings(tmp_path_factory) -> dict[str, dict[int, str]]:
    folder = tmp_path_factory.mktemp("typing")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    for name in ("good.py", "bad.py"):
        shutil.copy(HERE / name, folder)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True, check=False)
    found: dict[str, dict[int, str]] = {"good.py": {}, "bad.py": {}}
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


def test_a_right_plugin_passes_strict_checking(findings):
    assert findings["good.py"] == {}


def test_every_mistake_is_reported_on_its_line_and_nothing_else(findings):
    assert findings["bad.py"] == expected(HERE / "bad.py")

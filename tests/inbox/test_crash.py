"""The crash suite with few kills; `python benchmarks/crash.py` has many."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..effort import EFFORT

KILLS = 3 * EFFORT
SUITE = Path(__file__).parents[2] / "benchmarks" / "crash.py"


@pytest.mark.slow
def test_nothing_is_lost_or_made_twice_when_a_gateway_is_killed_again_and_again(tmp_path):
    result = tmp_path / "result.json"
    done = subprocess.run(
        [sys.executable, SUITE, "--kills", str(KILLS), "--sessions", "3", "--messages", "20",
         "--json", result], capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(result.read_text())
    assert (report["kills"], report["faults"]) == (KILLS, [])

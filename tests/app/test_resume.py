"""A process that is killed (-9) in the middle of a turn continues it, by the tape's rules."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("crashing.py")

BEFORE_THE_CALL_IS_KEPT = (
    "turn_start model_call tool_execution_start before_tool_call tool_call authorize_action"
).split()
BEFORE_THE_TOOL = ["around_before"]
AFTER_THE_TOOL = (
    "tool around_after after_tool_call tool_result tool_execution_end tool_result_persist"
).split()
AFTER_THE_RESULT = (
    "turn_end agent_end on_turn_end output save_state render_outbound dispatch_outbound"
).split()


def run(home: Path, kind: str, point: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(home), kind, *([point] if point else [])]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def killed_and_resumed(home: Path, kind: str, point: str) -> dict:
    died = run(home, kind, point)
    assert died.returncode == -signal.SIGKILL, died.stderr
    resumed = run(home, kind)
    assert resumed.returncode == 0, resumed.stderr
    return json.loads(resumed.stdout)


@pytest.mark.parametrize("point", BEFORE_THE_CALL_IS_KEPT)
def test_a_call_that_had_not_started_is_made(tmp_path, point):
    done = killed_and_resumed(tmp_path, "writes", point)
    assert (done["output"], done["runs"], done["told"]) == ("Done.", 1, ["counted"])
    assert (done["channel"], done["last"]) == ("test", "completed")


@pytest.mark.parametrize("point", BEFORE_THE_TOOL + AFTER_THE_TOOL)
def test_a_call_with_side_effects_that_may_have_run_is_not_repeated(tmp_path, point):
    done = killed_and_resumed(tmp_path, "writes", point)
    assert done["output"] == "Done."
    assert done["runs"] == (0 if point in BEFORE_THE_TOOL else 1)
    assert "interrupted" in done["told"][0]
    assert "around_tool_call" not in done["fired"]


@pytest.mark.parametrize("kind", ["reads", "idempotent"])
@pytest.mark.parametrize("point", ["around_before", "tool", "tool_result_persist"])
def test_a_call_that_does_no_harm_is_made_again(tmp_path, kind, point):
    done = killed_and_resumed(tmp_path, kind, point)
    assert (done["output"], done["told"], done["system"]) == ("Done.", ["counted"], "Only this.")
    assert done["runs"] == (1 if point == "around_before" else 2)


@pytest.mark.parametrize("point", AFTER_THE_RESULT)
def test_finished_steps_are_not_made_again(tmp_path, point):
    done = killed_and_resumed(tmp_path, "writes", point)
    assert (done["output"], done["runs"], done["told"]) == ("Done.", 1, ["counted"])
    never = {"resolve_session", "input", "build_prompt", "on_turn_start", "agent_start", "tool_call"}
    assert never.isdisjoint(done["fired"])
    if point not in ("turn_end",):
        assert "model_call" not in done["fired"]
    assert done["last"] == "completed"


def test_nothing_to_resume_is_said(tmp_path):
    assert json.loads(run(tmp_path, "reads").stdout)["output"] is None

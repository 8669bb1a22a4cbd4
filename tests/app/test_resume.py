"""A process that is killed (-9) in the middle of a turn continues it, by the tape's rules."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., Any]]:
    """Runs the program in a process of its own; they are forks of one, which has imported all."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None

        def run(home: Path, *arguments: str) -> Any:
            print(json.dumps([str(home), *arguments]), file=program.stdin, flush=True)
            return SimpleNamespace(**json.loads(program.stdout.readline()))

        yield run


@pytest.fixture
def killed_and_resumed(run, tmp_path) -> Callable[[str, str], dict[str, Any]]:
    def killed_and_resumed(kind: str, point: str) -> dict[str, Any]:
        assert run(tmp_path, kind, point).code == -signal.SIGKILL
        resumed = run(tmp_path, kind)
        assert resumed.code == 0
        return json.loads(resumed.said)

    return killed_and_resumed


@pytest.mark.parametrize("point", BEFORE_THE_CALL_IS_KEPT)
def test_a_call_that_had_not_started_is_made(killed_and_resumed, point):
    done = killed_and_resumed("writes", point)
    assert (done["output"], done["runs"], done["told"]) == ("Done.", 1, ["counted"])
    assert (done["channel"], done["last"]) == ("test", "completed")


@pytest.mark.parametrize("point", BEFORE_THE_TOOL + AFTER_THE_TOOL)
def test_a_call_with_side_effects_that_may_have_run_is_not_repeated(killed_and_resumed, point):
    done = killed_and_resumed("writes", point)
    assert done["output"] == "Done."
    assert done["runs"] == (0 if point in BEFORE_THE_TOOL else 1)
    assert "interrupted" in done["told"][0]
    assert "around_tool_call" not in done["fired"]


@pytest.mark.parametrize("kind", ["reads", "idempotent"])
@pytest.mark.parametrize("point", ["around_before", "tool", "tool_result_persist"])
def test_a_call_that_does_no_harm_is_made_again(killed_and_resumed, kind, point):
    done = killed_and_resumed(kind, point)
    assert (done["output"], done["told"], done["system"]) == ("Done.", ["counted"], "Only this.")
    assert done["runs"] == (1 if point == "around_before" else 2)


@pytest.mark.parametrize("point", AFTER_THE_RESULT)
def test_finished_steps_are_not_made_again(killed_and_resumed, point):
    done = killed_and_resumed("writes", point)
    assert (done["output"], done["runs"], done["told"]) == ("Done.", 1, ["counted"])
    never = {"resolve_session", "input", "build_prompt", "on_turn_start", "agent_start", "tool_call"}
    assert never.isdisjoint(done["fired"])
    if point not in ("turn_end",):
        assert "model_call" not in done["fired"]
    assert done["last"] == "completed"


def test_nothing_to_resume_is_said(run, tmp_path):
    assert json.loads(run(tmp_path, "reads").said)["output"] is None

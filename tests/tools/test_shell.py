"""The shell: real commands, their output, their end, and nothing left of them."""

import asyncio
import os
import re
import time
from pathlib import Path

import pytest

from hookline.ext.tools import builtin_tools
from hookline.tools import Registry, ToolArgumentError, ToolError, model_content

shell = Registry(builtin_tools()).get("shell")


def alive(pid_file: Path) -> bool:
    """Whether the process that wrote its id there runs still.

    Ids come again soon where many processes are started: one that began later is another.
    """
    try:
        stat = Path(f"/proc/{int(pid_file.read_text())}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, *_, ticks = stat.rpartition(")")[2].split()[:20]
    up = float(Path("/proc/uptime").read_text().split()[0])
    began = time.time() - up + int(ticks) / os.sysconf("SC_CLK_TCK")
    return state != "Z" and began < pid_file.stat().st_mtime + 1


async def until(condition, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_output_of_both_kinds_and_the_exit_code(call):
    assert await call(shell, command="echo out; echo err >&2") == "out\nerr\n[exit code 0]"
    assert await call(shell, command="exit 3") == "[exit code 3]"
    assert await call(shell, command="kill -9 $$") == "[ended by SIGKILL]"
    missing = await call(shell, command="no-such-command")
    assert "not found" in missing
    assert missing.endswith("[exit code 127]")


async def test_it_runs_in_the_workspace(call, workspace):
    assert await call(shell, command="pwd -P") == f"{workspace.resolve()}\n[exit code 0]"


async def test_output_is_reported_as_it_comes_and_the_result_is_whole(call, reports):
    task = asyncio.create_task(call(shell, command="echo one; sleep 0.5; echo two"))
    await until(lambda: reports)
    assert reports == ["one\n"]
    assert await task == "one\ntwo\n[exit code 0]"
    assert reports == ["one\n", "two\n"]


async def test_a_command_that_wants_input_gets_none(call):
    assert await call(shell, command="cat; read x; echo \"got '$x'\"") == "got ''\n[exit code 0]"
    assert "[exit code 0]" not in await call(shell, command="read x < /dev/tty")


async def test_binary_output_is_replaced_by_its_size(call, reports):
    result = await call(shell, command="head -c 100000 /dev/urandom")
    assert result == "[binary output, 100,000 bytes, not shown]\n[exit code 0]"
    for report in reports:
        assert model_content(report) == report


async def test_a_character_cut_in_two_by_a_pause_comes_whole(call, reports):
    command = r"printf 'gr\303'; sleep 0.2; printf '\274n'"
    assert await call(shell, command=command) == "grün\n[exit code 0]"
    assert "".join(reports) == "grün"


async def test_a_huge_output_is_cut_in_the_middle_and_costs_little(call, reports):
    result = await call(shell, command="echo first; yes | head -c 50000000; echo last")
    assert result.startswith("first\ny\n")
    assert re.search(
        r'last\n\[the whole is kept: read_output\(id="[^"]+".*\]\n\[exit code 0\]$', result
    )
    assert "characters left out" in result
    assert len(result) <= 50_000
    assert sum(map(len, reports)) <= 1_100_000


async def test_past_its_time_the_command_is_ended_and_what_it_printed_is_told(call):
    began = time.monotonic()
    with pytest.raises(ToolError, match="longer than 1 s and was ended; it printed:\nworking"):
        await call(shell, command="echo working; sleep 60", timeout=1)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("timeout", [0, -1, 1e9, "soon"])
async def test_a_time_that_is_none_is_refused(call, timeout):
    with pytest.raises(ToolArgumentError, match="timeout: got"):
        await call(shell, command="true", timeout=timeout)


async def test_a_command_with_a_nul_is_refused(call):
    with pytest.raises(ToolError, match="NUL"):
        await call(shell, command="echo a\0b")


async def test_cancelling_ends_the_whole_group(call, workspace):
    task = asyncio.create_task(call(shell, command="sh -c 'echo $$ > child; sleep 60' & sleep 60"))
    await until(lambda: (workspace / "child").exists() and (workspace / "child").read_text().strip())
    assert alive(workspace / "child")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(workspace / "child"))


async def test_a_command_that_ignores_being_asked_is_ended_all_the_same(call, workspace):
    command = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.1; done"
    began = time.monotonic()
    with pytest.raises(ToolError, match="longer than"):
        await call(shell, command=command, timeout=0.3)
    assert not alive(workspace / "pid")
    assert time.monotonic() - began < 30


async def test_cancelling_twice_still_ends_it(call, workspace):
    command = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done"
    task = asyncio.create_task(call(shell, command=command))
    await until(lambda: (workspace / "pid").exists() and (workspace / "pid").read_text().strip())
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(workspace / "pid"))


async def test_what_is_left_in_the_background_is_ended_and_does_not_hold_the_call(call, workspace):
    command = "sh -c 'echo $$ > pid; sleep 60' & until [ -s pid ]; do sleep 0.05; done; echo started"
    began = time.monotonic()
    result = await call(shell, command=command)
    assert result == "started\n[exit code 0]"
    assert time.monotonic() - began < 30
    await until(lambda: not alive(workspace / "pid"))


async def test_a_command_that_closes_its_output_is_waited_for(call, workspace):
    result = await call(shell, command="exec >&- 2>&-; sleep 0.3; touch done")
    assert result == "[exit code 0]"
    assert (workspace / "done").exists()


async def test_no_descriptor_is_left_open(call):
    await call(shell, command="true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        await call(shell, command="echo x")
    await asyncio.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


async def test_a_workspace_that_is_gone_is_told(call, workspace):
    workspace.rmdir()
    with pytest.raises(ToolError, match=r"the workspace .* is not a folder"):
        await call(shell, command="true")


async def test_many_commands_at_once(call):
    results = await asyncio.gather(*(call(shell, command=f"echo {n}") for n in range(30)))
    assert results == [f"{n}\n[exit code 0]" for n in range(30)]

"""Commands in the background: real processes, their output, and nothing left of them."""

import asyncio
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from hookline.ext.tools import builtin_tools, close_jobs, jobs
from hookline.ext.tools.ring import Ring
from hookline.tools import Registry, ToolError

from .test_shell import alive, until

tools = Registry(builtin_tools())
shell, shell_output, shell_kill, shell_jobs = map(
    tools.get, ["shell", "shell_output", "shell_kill", "shell_jobs"]
)


@pytest.fixture(autouse=True)
def _no_jobs():
    yield
    close_jobs()


@pytest.fixture
def start(call):
    async def start(command: str) -> str:
        answer = await call(shell, command=command, background=True)
        return re.fullmatch(r'\[(job-\d+) is running; shell_output\(job="\1"\) .*\]', answer)[1]

    return start


async def test_output_is_read_on_from_where_it_was(call, start, workspace):
    job = await start("echo one; while [ ! -e go ]; do sleep 0.05; done; echo two")
    first = await call(shell_output, job=job, wait=5)
    assert re.fullmatch(r"one\n\[running for \d s; go on with since=4\]", first)
    (workspace / "go").touch()
    second = await call(shell_output, job=job, since=4, wait=5)
    assert second.startswith("two\n[")
    await until(lambda: not jobs.find_job("s1", job).running)
    assert await call(shell_output, job=job, since=8) == "[exit code 0; go on with since=8]"
    assert await call(shell_output, job=job) == "one\ntwo\n[exit code 0; go on with since=8]"


async def test_a_command_that_wants_input_gets_none(call, start):
    job = await start("cat; read x; echo \"got '$x'\"")
    await until(lambda: not jobs.find_job("s1", job).running)
    assert (await call(shell_output, job=job)).startswith("got ''\n[exit code 0")


async def test_jobs_are_listed_and_belong_to_their_session(call, start, context):
    job = await start("sleep 60")
    assert re.fullmatch(rf"{job}: 'sleep 60' \[running for \d s, 0 bytes\]", await call(shell_jobs))
    other = replace(context, session_id="s2")
    assert await shell_jobs._invoke(shell_jobs.validate({}), other, print) == "[no jobs]"
    for tool in (shell_output, shell_kill):
        with pytest.raises(ToolError, match=f"no job '{job}' in this session; there are: none"):
            await tool._invoke(tool.validate({"job": job}), other, print)


async def test_killing_ends_the_whole_group(call, start, workspace):
    job = await start("sh -c 'echo $$ > child; sleep 60' & sleep 60")
    await until(lambda: (workspace / "child").exists() and (workspace / "child").read_text().strip())
    assert await call(shell_kill, job=job) == f"[{job} is ended: ended by SIGTERM]"
    await until(lambda: not alive(workspace / "child"))
    assert await call(shell_kill, job=job) == f"[{job} had ended: ended by SIGTERM]"


async def test_a_job_that_ignores_being_asked_is_ended_all_the_same(call, start, workspace):
    job = await start("trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.1; done")
    await until(lambda: (workspace / "pid").exists() and (workspace / "pid").read_text().strip())
    assert await call(shell_kill, job=job) == f"[{job} is ended: ended by SIGKILL]"
    assert not alive(workspace / "pid")


async def test_what_a_job_leaves_behind_is_ended_with_it(call, start, workspace):
    job = await start("sh -c 'trap \"\" TERM; echo $$ > pid; sleep 60' & sleep 0.2; echo started")
    await until(lambda: not jobs.find_job("s1", job).running)
    await until(lambda: not alive(workspace / "pid"))
    assert (await call(shell_output, job=job)).startswith("started\n[exit code 0")


async def test_a_gigabyte_is_taken_in_bounded_room_and_its_end_is_kept(call, start):
    job = await start("yes 0123456789abcde | head -c 1000000000; echo the end")
    await until(lambda: not jobs.find_job("s1", job).running, seconds=60)
    ring = jobs.find_job("s1", job).output
    assert ring.total == 1_000_000_008
    assert ring._file.seek(0, 2) <= 16_000_000
    shown = await call(shell_output, job=job, since=999_999_000)
    assert "the end\n[exit code 0" in shown
    first = await call(shell_output, job=job)
    assert first.startswith("[984,000,008 bytes are no longer kept]\n")
    assert "there is more: go on with since=" in first
    assert len(first) <= 50_000


async def test_too_many_jobs_are_refused(start, monkeypatch):
    monkeypatch.setattr(jobs, "RUNNING", 2)
    await start("sleep 60")
    await start("sleep 60")
    with pytest.raises(ToolError, match="2 jobs are running already"):
        await start("sleep 60")


async def test_closing_ends_every_job_at_once(call, start, workspace):
    for n in range(4):
        await start(f"trap '' TERM; echo $$ > pid{n}; while :; do sleep 0.1; done")
    files = [workspace / f"pid{n}" for n in range(4)]
    await until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    began = time.monotonic()
    await asyncio.to_thread(close_jobs, "another session")
    assert all(map(alive, files))
    await asyncio.to_thread(close_jobs)
    assert time.monotonic() - began < 4
    assert not any(map(alive, files))
    assert await call(shell_jobs) == "[no jobs]"


@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)"])
async def test_jobs_end_with_the_process_however_it_ends(tmp_path, end):
    program = f"""
import os, time
from pathlib import Path
from hookline.ext.tools.jobs import start_job
start_job("s", "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", Path.cwd(), {{}})
while not (Path("pid").exists() and Path("pid").read_text().strip()):
    time.sleep(0.01)
{end}
"""
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert (tmp_path / "pid").exists()
    await until(lambda: not alive(tmp_path / "pid"), seconds=10)


async def test_a_character_cut_in_two_by_a_pause_comes_whole(call, start, workspace):
    job = await start(r"printf 'gr\303'; while [ ! -e go ]; do sleep 0.05; done; printf '\274n'")
    await until(lambda: jobs.find_job("s1", job).output.total == 3)
    first = await call(shell_output, job=job)
    assert re.fullmatch(r"gr\n\[running for \d s; there is more: go on with since=2\]", first)
    (workspace / "go").touch()
    await until(lambda: not jobs.find_job("s1", job).running)
    assert (await call(shell_output, job=job, since=2)).startswith("ün\n[exit code 0")


def test_a_ring_keeps_the_end_of_what_came():
    ring = Ring(10)
    for piece in (b"abc", b"defghijklmno", b"", b"pq"):
        ring.add(piece)
    assert ring.read(0, 100) == (7, b"hijklmnopq")
    assert ring.read(12, 3) == (12, b"mno")
    assert ring.read(99, 3) == (17, b"")
    ring.close()

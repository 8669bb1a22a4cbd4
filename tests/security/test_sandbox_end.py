"""Nothing that runs in the sandbox outlives the process that started it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from select import select
from time import monotonic

import pytest

from hookline.sandbox import scratch
from hookline.sandbox.sandbox import probe

pytestmark = pytest.mark.skipif(probe()[0] != "bubblewrap", reason=f"needs bubblewrap: {probe()[1]}")

STARTER = """
import os, sys
from pathlib import Path
from hookline.system.children.process import popen
from hookline.sandbox import Sandbox

workspace, mark = Path(sys.argv[1]), int(sys.argv[2])
box = Sandbox(workspace=workspace, home=workspace / "none")
box.active, box.launch(["/bin/true"], cwd=workspace, env={}).close()  # everything is imported now
while True:  # each child holds what `mark` is a copy of, for as long as it lives
    sys.stdin.readline()
    pid = os.fork()
    if pid == 0:
        os.write(1, b"%d\\n" % os.getpid())
        popen(["/bin/sh", "-c", "echo run; sleep 300"], cwd=workspace, stdout=mark, sandbox=box).wait()
    os.waitpid(pid, 0)
"""


def test_a_kill_at_any_moment_of_the_start_leaves_nothing(tmp_path: Path) -> None:
    """A starter is forked, says so, starts a child, and is killed at a random moment of that."""
    theirs, mark = os.pipe()
    line = [sys.executable, "-c", STARTER, str(tmp_path), str(mark)]
    chance, started = random.Random(15), 0
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(mark,), bufsize=0
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        try:
            for _ in range(30):
                starter.stdin.write(b"\n")
                pid = int(starter.stdout.readline())
                until = monotonic() + chance.uniform(0, 0.05)
                while monotonic() < until:
                    pass
                os.kill(pid, signal.SIGKILL)
            starter.stdin.write(b"")
        finally:
            starter.kill()
            starter.wait()
            os.close(mark)
    # the pipe ends when the last process that holds it has ended
    until = monotonic() + 20
    while select([theirs], [], [], max(0.0, until - monotonic()))[0]:
        said = os.read(theirs, 4096)
        if not said:
            break
        started += said.count(b"run")
    else:
        pytest.fail("a process holds the pipe still")
    os.close(theirs)
    assert started <= 30


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_child_that_runs_ends_with_the_process_that_started_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    theirs, mark = os.pipe()
    line = [sys.executable, "-c", STARTER, str(tmp_path), str(mark)]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(mark,), bufsize=0
    ) as starter:
        os.close(mark)
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write(b"\n")
        pid = int(starter.stdout.readline())
        assert os.read(theirs, 10) == b"run\n"
        os.kill(pid, number)
        starter.kill()
    assert select([theirs], [], [], 20)[0]
    assert os.read(theirs, 10) == b""
    os.close(theirs)


def test_what_a_killed_process_left_is_removed_and_what_a_live_one_uses_is_not(tmp_path: Path) -> None:
    program = (
        "import sys, tempfile; from pathlib import Path; tempfile.tempdir = sys.argv[1]\n"
        "from hookline.sandbox import Sandbox, scratch\n"
        "box = Sandbox(workspace=Path(sys.argv[1]), home=Path('/none'))\n"
        "(box.temporary('s') / 'file').touch(); print(scratch.own(), flush=True); sys.stdin.read()\n"
    )
    line = [sys.executable, "-c", program, str(tmp_path)]
    with (
        subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as live,
    ):
        assert killed.stdout is not None
        assert live.stdout is not None
        left, used = (Path(each.readline().decode().strip()) for each in (killed.stdout, live.stdout))
        killed.kill()
        killed.wait()
        assert left.exists()
        assert scratch.sweep(left.parent) == 1
        assert not left.exists()
        assert list(used.glob("tmp-*/file"))
        live.kill()

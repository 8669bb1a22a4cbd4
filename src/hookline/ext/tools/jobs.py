"""Jobs: commands that run in the background.

Each job is a process group. It ends with its first process, when it is killed, with `close_jobs()`,
and with this process however that ends.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from hookline.errors import ToolError
from hookline.system.children.process import popen, signal_group
from hookline.tools.process import GRACE, LINGER

from .ring import Ring

RUNNING = 20
"""Jobs that may run at once."""

KEPT = 50
"""Jobs whose output is kept; the oldest that ended make room."""

_CHUNK = 1 << 16
_jobs: dict[str, Job] = {}
_lock = Lock()
_numbers = count(1)


class Job:
    """A command in the background: its output so far, and how it ended."""

    def __init__(self, session: str, command: str, folder: Path, options: dict[str, Any]) -> None:
        self.id = f"job-{next(_numbers)}"
        self.session = session
        self.command = command
        self.began = time.monotonic()
        self.output = Ring()
        self.code: int | None = None
        self._ended = Event()
        ours, theirs = os.pipe()
        try:
            self._process = popen(
                ["/bin/sh", "-c", command], cwd=folder, stdout=theirs, stderr=theirs, **options
            )
        except BaseException:
            os.close(ours)
            self.output.close()
            raise
        finally:
            os.close(theirs)
        reading = Thread(target=self._read, args=(ours,), name="hookline:job-output", daemon=True)
        reading.start()
        Thread(target=self._wait, args=(reading,), name="hookline:job", daemon=True).start()

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return not self._ended.is_set()

    def kill(self) -> None:
        """Ask the group to end, then end it; return when it is gone."""
        _kill([self])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the group, if it is there."""
        if self.running:
            signal_group(self._process.pid, number)

    def wait(self, until: float) -> None:
        """Wait for the end, to a moment of the monotonic clock at most."""
        self._ended.wait(max(0.0, until - time.monotonic()))

    def _read(self, pipe: int) -> None:
        try:
            while data := os.read(pipe, _CHUNK):
                self.output.add(data)
        except (OSError, ValueError):
            pass  # the disk is full, or the output file was closed
        finally:
            os.close(pipe)

    def _wait(self, reading: Thread) -> None:
        pid = self._process.pid
        # not reaped yet, so the group's number cannot be reused before the group is killed
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        reading.join(LINGER)
        signal_group(pid, signal.SIGKILL)
        self.code = self._process.wait()
        reading.join(GRACE)
        self._ended.set()
        self.output.end()


def start_job(session: str, command: str, folder: Path, options: dict[str, Any]) -> Job:
    """Start a command in the background, with `options` of `popen`.

    Call it in a thread that lives as long as the command may run.
    """
    with _lock:
        if sum(job.running for job in _jobs.values()) >= RUNNING:
            raise ToolError(f"{RUNNING} jobs are running already; end one with shell_kill first")
        for old in [job for job in _jobs.values() if not job.running][: max(0, len(_jobs) - KEPT + 1)]:
            _jobs.pop(old.id).output.close()
        job = Job(session, command, folder, options)
        _jobs[job.id] = job
        return job


def find_job(session: str, name: str) -> Job:
    """A job of this session."""
    job = _jobs.get(name)
    if job is None or job.session != session:
        known = ", ".join(job.id for job in session_jobs(session)) or "none"
        raise ToolError(f"there is no job {name!r} in this session; there are: {known}")
    return job


def session_jobs(session: str) -> list[Job]:
    """The jobs of a session, running and ended."""
    return [job for job in [*_jobs.values()] if job.session == session]


def close_jobs(session: str | None = None) -> None:
    """End every job, or those of one session, and forget their output."""
    with _lock:
        chosen = [job for job in _jobs.values() if session in (None, job.session)]
        for job in chosen:
            del _jobs[job.id]
    _kill(chosen)
    for job in chosen:
        job.output.close()


def _kill(jobs: list[Job]) -> None:
    # without threads of its own: this also runs while the interpreter ends
    for number in (signal.SIGTERM, signal.SIGKILL):
        for job in jobs:
            job.signal(number)
        until = time.monotonic() + GRACE
        for job in jobs:
            job.wait(until)


atexit.register(close_jobs)
os.register_at_fork(after_in_child=_jobs.clear)  # they are the parent's

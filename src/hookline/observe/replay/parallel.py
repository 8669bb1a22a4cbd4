"""A backtest over several processes: each has an app of its own and judges some of the sessions.

Each reads the tape itself, with a connection of its own where it is in a database. Calls of one session
stay together and in order, since hooks may remember what they saw.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from queue import SimpleQueue
from signal import SIGTERM
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from hookline.errors import ReplayError
from hookline.system.children.process import PIPE, popen, python, signal_group
from hookline.tape.sqlite.reader import SessionSize

from .backtest import Tell, backtest
from .report import BacktestReport
from .share import read_frame, write_frame

if TYPE_CHECKING:
    from hookline.system.children.process import Child

    from .app import Setup
    from .traffic import Opens

WORTH: Final = 100_000
"""Entries that make another process worth starting."""


def backtest_parallel(
    setup: Setup,
    opens: Opens,
    sessions: Sequence[SessionSize],
    *,
    since: float = 0.0,
    jobs: int | None = None,
    tell: Tell | None = None,
) -> BacktestReport:
    """Judge the calls of sessions, by default on as many cores as useful."""
    started = perf_counter()
    if jobs is None:
        entries = sum(session.entries for session in sessions)
        jobs = min(os.cpu_count() or 1, entries // WORTH + 1)
    parts = shares(sessions, jobs)
    if len(parts) <= 1:
        report = judge_share(setup, opens, parts[0] if parts else [], since, tell)
    else:
        report = _together(setup, opens, parts, since, tell)
    report.elapsed = perf_counter() - started
    return report


def shares(sessions: Sequence[SessionSize], jobs: int) -> list[list[str]]:
    """Split the sessions into one part per job, each about equally long."""
    parts: list[list[str]] = [[] for _ in range(max(1, jobs))]
    lengths = [0] * len(parts)
    for session in sorted(sessions, key=lambda session: session.entries, reverse=True):
        shortest = lengths.index(min(lengths))
        parts[shortest].append(session.id)
        lengths[shortest] += session.entries
    return [part for part in parts if part]


def judge_share(
    setup: Setup, opens: Opens, sessions: Sequence[str], since: float, tell: Tell | None
) -> BacktestReport:
    """Judge some sessions in this process."""
    with opens() as reader:
        return asyncio.run(backtest(setup, reader, since=since, sessions=sessions, tell=tell))


def _together(
    setup: Setup, opens: Opens, parts: list[list[str]], since: float, tell: Tell | None
) -> BacktestReport:
    # Each process is this app once more, with our environment. A fork would share connections.
    workers = [
        popen(
            python("hookline.observe.replay.share"), env=os.environ, stdin=PIPE, stdout=PIPE, stderr=2
        )
        for _ in parts
    ]
    heard: SimpleQueue[Any] = SimpleQueue()
    listeners = [
        Thread(target=_listen, args=(worker, heard), name="hookline:backtest", daemon=True)
        for worker in workers
    ]
    report, missing = BacktestReport(), len(workers)
    try:
        for worker, part, listener in zip(workers, parts, listeners, strict=True):
            listener.start()
            assert worker.stdin is not None
            write_frame(worker.stdin, (setup, opens, part, since))
        while missing:
            said = heard.get()
            if isinstance(said, BacktestReport):
                report.add(said)
                missing -= 1
            elif isinstance(said, str):
                raise ReplayError(said)
            elif tell is not None:
                tell(said)
    except BrokenPipeError:
        raise ReplayError(_SILENT) from None
    finally:
        for worker, listener in zip(workers, listeners, strict=True):
            if missing:
                signal_group(worker.pid, SIGTERM)
            worker.wait()
            if listener.ident is not None:
                listener.join()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()
    return report


_SILENT = "a process of the backtest ended without a report"


def _listen(worker: Child, heard: SimpleQueue[Any]) -> None:
    """Forward the messages of a process until its report or its end."""
    assert worker.stdout is not None
    said: Any = None
    try:
        while not isinstance(said, BacktestReport | str):
            said = read_frame(worker.stdout)
            heard.put(said)
    except (EOFError, OSError, ValueError):
        heard.put(_SILENT)

"""A backtest over several processes: each has an app of its own and judges some of the sessions.

Each reads the tape itself, with a connection of its own where it is in a database. Calls of one session
stay together and in order, since hooks may remember what they saw.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from multiprocessing import get_context
from queue import Empty
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.tape.reader import SessionSize

from .backtest import Tell, backtest
from .errors import ReplayError
from .report import Report

if TYPE_CHECKING:
    from .app import Setup
    from .traffic import Opens

WORTH: Final = 100_000
"""Entries for which another process is worth its start."""


def backtest_parallel(
    setup: Setup,
    opens: Opens,
    sessions: Sequence[SessionSize],
    *,
    since: float = 0.0,
    jobs: int | None = None,
    tell: Tell | None = None,
) -> Report:
    """Judge the calls of sessions; by default on as many cores as it is worth."""
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
    """The sessions in as many parts as there are jobs, each about as long as the others."""
    parts: list[list[str]] = [[] for _ in range(max(1, jobs))]
    lengths = [0] * len(parts)
    for session in sorted(sessions, key=lambda session: session.entries, reverse=True):
        shortest = lengths.index(min(lengths))
        parts[shortest].append(session.id)
        lengths[shortest] += session.entries
    return [part for part in parts if part]


def judge_share(
    setup: Setup, opens: Opens, sessions: Sequence[str], since: float, tell: Tell | None
) -> Report:
    """Judge some sessions in this process."""
    with opens() as reader:
        return asyncio.run(backtest(setup, reader, since=since, sessions=sessions, tell=tell))


def _work(setup: Setup, opens: Opens, sessions: Sequence[str], since: float, told: Any) -> None:
    """What a process does: how far it is, and in the end its report or what went wrong."""
    try:
        told.put(judge_share(setup, opens, sessions, since, told.put))
    except HooklineError as error:
        told.put(str(error))
    except BaseException as error:
        told.put(error_text(error))


def _together(
    setup: Setup, opens: Opens, parts: list[list[str]], since: float, tell: Tell | None
) -> Report:
    context = get_context("spawn")  # a fork would share connections and locks
    told = context.Queue()
    workers = [
        context.Process(target=_work, args=(setup, opens, part, since, told), daemon=True)
        for part in parts
    ]
    for worker in workers:
        worker.start()
    report, missing = Report(), len(workers)
    try:
        while missing:
            try:
                said: Any = told.get(timeout=1.0)
            except Empty:
                if not any(worker.is_alive() for worker in workers) and told.empty():
                    raise ReplayError("a process of the backtest ended without a word") from None
                continue
            if isinstance(said, Report):
                report.add(said)
                missing -= 1
            elif isinstance(said, str):
                raise ReplayError(said)
            elif tell is not None:
                tell(said)
    finally:
        for worker in workers:
            if missing:
                worker.terminate()
            worker.join()
    return report

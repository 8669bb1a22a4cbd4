"""Threads for tools that are not async.

They are daemons: a tool that hangs is left behind when its call is cancelled, and never holds up
the exit, which the threads of an executor would. A few are kept for the next call.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any

KEPT = 8
"""Idle threads that wait for more work; above that a thread ends with its call."""

_idle: deque[_Worker] = deque()


async def in_thread(work: Callable[[], Any]) -> Any:
    """Run something in a thread with the caller's context variables, and await its result."""
    from asyncio import get_running_loop

    loop = get_running_loop()
    context = copy_context()
    arrived = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not arrived.done():
            arrived.set_result((value, error))

    def job() -> None:
        value, error = None, None
        try:
            value = context.run(work)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            pass  # the loop is closed: no one waits any more

    _worker().jobs.put(job)
    value, error = await arrived
    if error is None:
        return value
    try:
        raise error
    finally:
        del error  # its traceback leads here, which would keep the tool's frames alive


class _Worker(Thread):
    def __init__(self) -> None:
        super().__init__(name="hookline:tool", daemon=True)
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self) -> None:
        while True:
            job = self.jobs.get()
            job()
            del job  # what the call held is not kept until the next one
            if len(_idle) >= KEPT:
                return
            _idle.append(self)


def _worker() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
        return worker


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a child has none of these threads

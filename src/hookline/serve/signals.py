"""What signals mean to a gateway and to a worker."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn, Protocol

from .message_processor import told

log = logging.getLogger("hookline.serve")


def force(number: int) -> NoReturn:
    """End the process as a signal would: what is accepted is kept, and goes on at the next start."""
    log.warning("ended at once; what was under way goes on at the next start")
    sys.stderr.flush()
    os._exit(128 + number)


class Stoppable(Protocol):
    """What signals are for: a gateway or a worker."""

    def leave(self) -> None:
        """End in good order."""
        ...

    async def reload(self) -> str:
        """Read the settings and the hook files again."""
        ...


@contextmanager
def signals(house: Stoppable) -> Generator[None]:
    """SIGTERM and SIGINT end it in good order, and the second time at once; SIGHUP reloads."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        yield
        return
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            log.info("reloaded: %s", await house.reload())
        except Exception as error:
            log.error("not reloaded: %s", told(error))

    def on_hangup() -> None:
        task = loop.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    asked: list[int] = []

    def on_end(number: int) -> None:
        if asked:
            force(number)
        asked.append(number)
        house.leave()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_end, number)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)

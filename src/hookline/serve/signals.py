"""Signals of a gateway and a worker."""

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
    """End the process as a signal would. Accepted messages continue at the next start."""
    log.warning("ended at once; what was under way goes on at the next start")
    sys.stderr.flush()
    os._exit(128 + number)


class Stoppable(Protocol):
    """What signals control: a gateway or a worker."""

    def leave(self) -> None:
        """Stop gracefully."""
        ...

    async def reload(self) -> str:
        """Reload the settings and the hook files."""
        ...


@contextmanager
def signals(host: Stoppable) -> Generator[None]:
    """SIGTERM and SIGINT stop it gracefully, the second time immediately; SIGHUP reloads."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        yield
        return
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            log.info("reloaded: %s", await host.reload())
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
        host.leave()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_end, number)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)

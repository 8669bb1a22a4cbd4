"""Spares: processes that wait in their sandbox for the next event of a hook.

Setting up a sandbox takes ten times as long as a short command. So when a hook of a tool call has
ended, a process for its next run is started and waits for its input. It is used only if it is confined
exactly as a new one would be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from hookline.hooks import HooklineError

from .process import HookProcess

log = logging.getLogger("hookline")

DELAY = 0.002
"""Seconds until a spare is started: what waits for the hook's answer comes first."""

LIFE = 60.0
"""Seconds for which a spare waits."""


class Spares:
    """At most one waiting process for each hook."""

    def __init__(self) -> None:
        self._open = True
        self._processes: dict[str, HookProcess] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def take(self, name: str, profile: str) -> HookProcess | None:
        """The spare of a hook if it is as good as a new process of the profile."""
        self._cancel(name)
        process = self._processes.pop(name, None)
        if process is None or process.is_like_new(profile):
            return process
        process.end()
        return None

    def prepare(self, name: str, start: Callable[[], HookProcess]) -> None:
        """Start a spare soon, unless there is one, or they are not wanted any more."""
        if self._open and name not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(DELAY, partial(self._start, name, start))

    def close(self) -> None:
        """End all of them, and start no more: a hook that still runs may have been written anew."""
        self._open = False
        for name in list(self._timers):
            self._discard(name)

    def _start(self, name: str, start: Callable[[], HookProcess]) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._processes[name] = start()
        except (OSError, HooklineError) as error:  # the next run says so, if it lasts
            log.debug("command_hook.no_spare %s: %s", name, error)
            del self._timers[name]
        else:
            self._timers[name] = loop.call_later(LIFE, self._discard, name)

    def _discard(self, name: str) -> None:
        self._cancel(name)
        process = self._processes.pop(name, None)
        if process is not None:
            process.end()

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

"""Where agents run: a scope for each event loop, and a loop in the background for synchronous code."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, Final, TypeVar

from .agent_app import AgentApp, AgentParts

T = TypeVar("T")

_KEEPERS: Final[set[asyncio.Task[None]]] = set()
"""Strong references to the tasks below: an event loop has only weak ones."""


class LoopScope:
    """Keeps the app of an agent running in one event loop.

    The scope closes when it is told to, and when the loop ends: `asyncio.run` cancels its task then.
    """

    def __init__(self, parts: AgentParts) -> None:
        self.loop = asyncio.get_running_loop()
        self.app = parts.apps[self.loop] = parts.make(parts)
        self._parts = parts
        self._stop = asyncio.Event()
        self._opened: asyncio.Future[None] = self.loop.create_future()
        # A context of its own: the scope outlives the run that opens it.
        self._task = self.loop.create_task(self._keep(), context=Context())
        _KEEPERS.add(self._task)
        self._task.add_done_callback(_KEEPERS.discard)

    async def opened(self) -> AgentApp:
        """Wait until the app runs."""
        await asyncio.shield(self._opened)
        return self.app

    async def _keep(self) -> None:
        try:
            async with self.app.running():
                self._opened.set_result(None)
                try:
                    await self._stop.wait()
                except asyncio.CancelledError:
                    pass  # the loop ends: close the scope as if it had been told to
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)
        finally:
            self._parts.apps.pop(self.loop, None)

    @property
    def ended(self) -> bool:
        """Whether the app does not run any more, or its loop is gone."""
        return self._task.done() or self.loop.is_closed()

    def stop(self) -> None:
        """Close the scope soon; may be called from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._stop.set)

    async def close(self) -> None:
        """Close the scope and wait for that, from any event loop."""
        self.stop()
        if self.loop is asyncio.get_running_loop():
            await asyncio.wait([self._task])
        elif self.loop.is_running():
            done = asyncio.run_coroutine_threadsafe(asyncio.wait([self._task]), self.loop)
            await asyncio.wrap_future(done)


def stop_all(scopes: dict[asyncio.AbstractEventLoop, LoopScope]) -> None:
    """Close the scopes of an agent that no one refers to any more."""
    for scope in scopes.values():
        scope.stop()


class BackgroundLoop:
    """An event loop in a thread, which all synchronous calls of a process share."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="hookline-agents", daemon=True)
        self.thread.start()
        atexit.register(self.end)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=5))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def end(self) -> None:
        """Close everything that runs in it, at the end of the process."""
        if self.process == os.getpid() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result; an interruption cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_BACKGROUND: list[BackgroundLoop] = []
_LOCK = threading.Lock()


def background() -> BackgroundLoop:
    """The background loop of this process; one that a fork left behind is not used."""
    with _LOCK:
        if not _BACKGROUND or _BACKGROUND[0].process != os.getpid():
            _BACKGROUND[:] = [BackgroundLoop()]
        return _BACKGROUND[0]

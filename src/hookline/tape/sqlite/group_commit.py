"""Group commit: appends that come at the same time are one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from hookline.errors import TapeError

from ..entry import EntryRow
from ..placement import Expected
from .append import Appender
from .schema import transaction

Run: TypeAlias = Callable[[str, Callable[[sqlite3.Connection], None]], Awaitable[None]]
"""Does something with the connection, as soon as no other process is writing."""


AT_ONCE = 2
"""How many tasks write at once: a turn alone has two, the agent's and the one that waits for it."""


class _Waiting:
    """An append that waits for the next transaction."""

    __slots__ = ("done", "error", "expect", "rows")

    def __init__(self, rows: Sequence[EntryRow], expect: Expected, done: asyncio.Future[None]) -> None:
        self.rows = rows
        self.expect = expect
        self.done = done
        self.error: Exception | None = None


class _Group:
    """The appends of one event loop that will be one transaction."""

    __slots__ = ("loop", "task", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: list[_Waiting] = []
        self.task: asyncio.Task[None] | None = None


class Writers:
    """The tasks that append to one file.

    A commit costs several times what an insert does. The first tasks to append in a step of the event
    loop write at once; what others append in the same step is written together in the next. As long as
    several come together, all of them are. Either way an append is durable when it returns.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._appender = Appender()
        self._first: list[asyncio.Task[object] | None] = []
        self._group: _Group | None = None
        self._crowded = False

    async def append(self, rows: Sequence[EntryRow], expect: Expected) -> None:
        """Append all of these or none. Cancelled, it has appended nothing."""
        if self._crowded:
            return await self._with_others(rows, expect)
        first, task = self._first, asyncio.current_task()
        if task not in first:
            if len(first) == AT_ONCE:
                return await self._with_others(rows, expect)
            if not first:
                asyncio.get_running_loop().call_soon(first.clear)
            first.append(task)
        return await self._run("append to", lambda db: self._appender.append(db, rows, expect))

    async def _with_others(self, rows: Sequence[EntryRow], expect: Expected) -> None:
        loop = asyncio.get_running_loop()
        group = self._group
        if group is None or group.loop is not loop:
            group = self._group = _Group(loop)
            # A separate task: cancelling one waiter must not affect the others.
            group.task = loop.create_task(self._write(group), name="tape")
        waiting = _Waiting(rows, expect, loop.create_future())
        group.waiting.append(waiting)
        try:
            await waiting.done
        except asyncio.CancelledError as cancelled:
            if waiting.done.cancelled():  # then it will be passed over
                raise
            cancel_later(cancelled)  # it was written, and the caller must know
        if waiting.error is not None:
            raise waiting.error

    async def _write(self, group: _Group) -> None:
        if self._group is group:
            self._group = None
        self._first.clear()  # their loop may have ended before the step did
        self._crowded = len(group.waiting) > AT_ONCE
        failure: TapeError | None = None
        try:
            await self._run("append to", lambda db: self._append_all(db, group.waiting))
        except TapeError as error:
            failure = error
        except BaseException:
            for each in group.waiting:
                each.done.cancel()
            raise
        for each in group.waiting:
            each.error = failure or each.error
            if not each.done.cancelled():
                each.done.set_result(None)

    def _append_all(self, db: sqlite3.Connection, waiting: Sequence[_Waiting]) -> None:
        try:
            with transaction(db):
                for each in waiting:
                    if not each.done.cancelled():
                        self._append_one(db, each)
        except BaseException:
            self._appender.forget()  # the places that were given out are free again
            raise

    def _append_one(self, db: sqlite3.Connection, each: _Waiting) -> None:
        """Append for one of them; its error concerns it alone."""
        each.error = None
        try:
            self._appender.append(db, each.rows, each.expect)
        except sqlite3.Error:
            raise
        except Exception as error:
            each.error = error


def cancel_later(cancelled: asyncio.CancelledError) -> None:
    """Take a cancellation back, and let it come at the next chance."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    task.cancel(*cancelled.args)

"""Time limits: an answer that comes after the limit is never used.

An async implementation runs in a task of its own and is cancelled when its time is over. A synchronous
one runs in a daemon thread, which cannot be stopped: it is left behind with a warning, never holds up
the exit of the program, and when a few are left behind, the implementation fails at once instead of
starting another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from .errors import HookTimeout
from .implementation import is_awaitable

if TYPE_CHECKING:
    from asyncio import Task
    from concurrent.futures import Future

    from .implementation import Implementation

log = logging.getLogger("hookline.hooks")

GRACE = 0.25
"""Seconds in which a cancelled implementation may clean up before it is dropped."""
LEFT_BEHIND = 3
"""Threads of one implementation that may hang before it is refused another."""

_counting = Lock()


def limited(impl: Implementation, *, sync: bool) -> Callable[..., Any]:
    """Return the implementation's callable with its time limit around it."""
    limit = impl.timeout or 0.0

    async def call(*args: Any, **kwargs: Any) -> Any:
        from asyncio import wrap_future

        if impl.is_async:
            return await within(limit, impl.function(*args, **kwargs), impl)
        deadline = monotonic() + limit
        work = in_thread(impl, args, kwargs)
        try:
            value, error = await within(limit, wrap_future(work), impl)
        except BaseException:
            leave_behind(impl, work)
            raise
        if error is not None:
            raise error
        return await within(deadline - monotonic(), value, impl) if is_awaitable(value) else value

    def call_sync(*args: Any, **kwargs: Any) -> Any:
        from concurrent.futures import TimeoutError as NotDone

        work = in_thread(impl, args, kwargs)
        try:
            value, error = work.result(limit)
        except NotDone:
            leave_behind(impl, work)
            raise late(impl) from None
        if error is not None:
            raise error
        return value

    return call_sync if sync else call


async def within(limit: float, awaitable: Awaitable[Any], impl: Implementation) -> Any:
    """Await something for at most `limit` seconds."""
    from asyncio import create_task, wait

    async def answer() -> tuple[Any, float]:
        return await awaitable, monotonic()

    started = monotonic()
    task = create_task(answer())
    try:
        await wait({task}, timeout=max(limit, 0))
    except BaseException:  # the caller was cancelled
        await stop(task)
        raise
    if not task.done():
        await stop(task)
        raise late(impl)
    value, ended = task.result()
    if ended - started > limit:  # it blocked the event loop
        raise late(impl)
    return value


async def stop(task: Task[Any]) -> None:
    """Cancel a task and wait a moment for its cleanup; one that ignores cancellation is dropped."""
    from asyncio import wait

    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # or it is logged
    task.cancel()
    await wait({task}, timeout=GRACE)
    if not task.done():
        with suppress(RuntimeError):  # it ignores that too
            cast("Coroutine[Any, Any, Any]", task.get_coro()).close()
        task.cancel()


def in_thread(impl: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
    """Start a call in a daemon thread; the future's result is `(value, error)`."""
    from concurrent.futures import Future

    if impl.left_behind >= LEFT_BEHIND:
        raise HookTimeout(
            f"{impl.name} is not called on hook {impl.spec.name!r}: "
            f"{impl.left_behind} earlier calls are still running past their limit"
        )
    work: Future[Any] = Future()
    work.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            outcome = (context.run(impl.function, *args, **kwargs), None)
        except BaseException as error:
            outcome = (None, error)
        work.set_result(outcome)

    Thread(target=run, name=f"hookline:{impl.spec.name}:{impl.name}", daemon=True).start()
    return work


def leave_behind(impl: Implementation, work: Future[Any]) -> None:
    """Stop waiting for a thread; it ends when its function returns."""

    def count(change: int) -> None:
        with _counting:
            impl.left_behind += change

    count(1)
    work.add_done_callback(lambda _: count(-1))
    log.warning(
        "hook.left_behind hook=%s adapter=%s: still running after %g s",
        impl.spec.name,
        impl.name,
        impl.timeout,
    )


def late(impl: Implementation) -> HookTimeout:
    """Return the error for an answer that did not come in time."""
    return HookTimeout(f"{impl.name} did not answer hook {impl.spec.name!r} within {impl.timeout:g} s")

"""Time limits: an answer that comes after the limit is never used.

An async implementation is cancelled; one that swallows it is cancelled again, and in the end
dropped where it stands. A synchronous one runs
in a daemon thread, which cannot be stopped: it is left behind with a warning, and once a few
are left behind the implementation fails at once instead of adding another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from contextvars import copy_context
from threading import Event as Flag
from threading import Lock, Thread
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any

from .errors import HookTimeout
from .implementation import is_awaitable

if TYPE_CHECKING:
    from .implementation import Implementation

log = logging.getLogger("hookline.hooks")

CANCEL_AGAIN = 0.05
"""Seconds between cancellations of an implementation that swallowed the last one."""

STRIKES = 5
"""Cancellations that an implementation may swallow before it is dropped."""

LEFT_BEHIND = 3
"""Threads of one implementation that may hang before it is refused another."""

_counting = Lock()


def limited(impl: Implementation, *, sync: bool) -> Callable[..., Any]:
    """The implementation's callable with its time limit around it."""
    if sync:
        return _limited_sync(impl)
    return _limited_coroutine(impl) if impl.is_async else _limited_thread(impl)


def _limited_coroutine(impl: Implementation) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await within(_limit(impl), impl.function(*args, **kwargs), impl)

    return call


def _limited_thread(impl: Implementation) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        from asyncio import get_running_loop

        deadline = monotonic() + _limit(impl)
        loop = get_running_loop()
        arrived = loop.create_future()

        def deliver() -> None:
            def settle() -> None:
                if not arrived.done():
                    arrived.set_result(None)

            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        work = _Work(impl, args, kwargs, deliver)
        try:
            await within(_limit(impl), arrived, impl)
        except BaseException:
            work.leave_behind()
            raise
        value = work.answer()
        if is_awaitable(value):
            return await within(deadline - monotonic(), value, impl)
        return value

    return call


def _limited_sync(impl: Implementation) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        done = Flag()
        work = _Work(impl, args, kwargs, done.set)
        if not done.wait(_limit(impl)):
            work.leave_behind()
            raise late(impl)
        return work.answer()

    return call


def _limit(impl: Implementation) -> float:
    assert impl.timeout is not None
    return impl.timeout


async def within(limit: float, awaitable: Awaitable[Any], impl: Implementation) -> Any:
    """Await something for so many seconds at most, in this task."""
    from asyncio import CancelledError, current_task, get_running_loop

    task = current_task()
    assert task is not None, "a time limit needs a running task"
    loop = get_running_loop()
    already_cancelling = task.cancelling()
    strikes = 0

    def strike() -> None:
        nonlocal strikes, timer
        strikes += 1
        task.cancel()
        timer = loop.call_later(CANCEL_AGAIN, strike)

    started = monotonic()
    timer = loop.call_later(max(limit, 0), strike)
    try:
        value = await _droppable(awaitable, lambda: strikes > STRIKES)
    except CancelledError as cancelled:
        if strikes and _forget(task, strikes) <= already_cancelling:
            raise late(impl) from cancelled
        raise
    except BaseException:
        if strikes:
            _forget(task, strikes)
        raise
    finally:
        timer.cancel()
    if strikes:
        _forget(task, strikes)
        raise late(impl)
    if monotonic() - started > limit:  # it blocked the loop, so that no timer could run
        raise late(impl)
    return value


@coroutine
def _droppable(awaitable: Awaitable[Any], given_up: Callable[[], bool]) -> Generator[Any, Any, Any]:
    """Drive an awaitable step by step, so that one that clings to its cancellation can be let go."""
    steps = awaitable.__await__()
    resume: Callable[[Any], Any] = steps.send  # pyright: ignore[reportAttributeAccessIssue]
    message: Any = None
    while True:
        try:
            waiting_for = resume(message)
        except StopIteration as stop:
            return stop.value
        try:
            message = yield waiting_for
            resume = steps.send  # pyright: ignore[reportAttributeAccessIssue]
        except BaseException as thrown:
            if isinstance(thrown, GeneratorExit) or given_up():
                _close(steps)
                raise
            message = thrown
            resume = steps.throw  # pyright: ignore[reportAttributeAccessIssue]


def _close(steps: Any) -> None:
    try:
        steps.close()
    except RuntimeError:
        pass  # it ignored that too; nothing runs it any more


def _forget(task: Any, strikes: int) -> int:
    """Take our own cancellations back; what remains is somebody else's."""
    remaining = 0
    for _ in range(strikes):
        remaining = task.uncancel()
    return remaining


def late(impl: Implementation) -> HookTimeout:
    """The error for an answer that did not come in time."""
    return HookTimeout(f"{impl.name} did not answer hook {impl.spec.name!r} within {impl.timeout:g} s")


class _Work:
    """One call in a daemon thread of its own, so that a hanging one never holds up the exit."""

    def __init__(
        self,
        impl: Implementation,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        deliver: Callable[[], object],
    ) -> None:
        if impl.left_behind >= LEFT_BEHIND:
            raise HookTimeout(
                f"{impl.name} is not called on hook {impl.spec.name!r}: "
                f"{impl.left_behind} earlier calls are still running past their limit"
            )
        self.impl = impl
        self.deliver = deliver
        self.value: Any = None
        self.error: BaseException | None = None
        self.finished = False
        self.abandoned = False
        context = copy_context()

        def run() -> None:
            try:
                self.value = context.run(impl.function, *args, **kwargs)
            except BaseException as error:
                self.error = error
            with _counting:
                self.finished = True
                if self.abandoned:
                    impl.left_behind -= 1
            deliver()

        Thread(target=run, name=f"hookline:{impl.spec.name}:{impl.name}", daemon=True).start()

    def answer(self) -> Any:
        """What the call returned, or what it raised."""
        if self.error is not None:
            raise self.error
        return self.value

    def leave_behind(self) -> None:
        """Stop waiting; the thread ends when its function does."""
        with _counting:
            if self.finished or self.abandoned:
                return
            self.abandoned = True
            self.impl.left_behind += 1
        log.warning(
            "hook.left_behind hook=%s adapter=%s: still running after %g s",
            self.impl.spec.name,
            self.impl.name,
            self.impl.timeout,
        )

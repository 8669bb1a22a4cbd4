"""Invoke: run a tool's function, whatever kind of function it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, replace
from inspect import isasyncgen, isasyncgenfunction, isawaitable, iscoroutinefunction, isgenerator
from threading import Event as Flag
from typing import Any

from hookline.errors import ToolError

from .context import ToolContext
from .threads import in_thread

Report = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a streaming tool yields to say: this is the result, and no more progress.

    An async generator cannot return a value, and its last chunk is seldom the whole answer.
    """

    value: Any


async def invoke(
    name: str,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    report: Report,
    *,
    on_loop: bool,
) -> Any:
    """Call a function `on_loop`, here, or in a thread; report what it yields.

    A tool can end its own call only: leaving the program or cancelling itself is an error of
    the tool.
    """
    from asyncio import CancelledError, current_task

    try:
        if on_loop:
            return await _finish(function(*args, **kwargs), report)
        return await _finish(await _in_thread(function, args, kwargs, report), report)
    except SystemExit as left:
        raise ToolError(f"the tool {name!r} tried to end the program (exit code {left.code})") from left
    except CancelledError as cancelled:
        task = current_task()
        if task is None or task.cancelling():
            raise
        raise ToolError(f"the tool {name!r} cancelled itself") from cancelled


async def _finish(value: Any, report: Report) -> Any:
    """Await what a function returned until it is a value."""
    while isawaitable(value):
        value = await value
    return await _drain(value, report) if isasyncgen(value) else value


def runs_on_the_loop(function: Callable[..., Any]) -> bool:
    """Whether a function is async; any other might block."""
    call = getattr(function, "__call__", function)  # noqa: B004  # an object may have an async __call__
    return any(kind(f) for f in (function, call) for kind in (iscoroutinefunction, isasyncgenfunction))


async def _drain(stream: AsyncGenerator[Any, Any], report: Report) -> Any:
    last: Any = None
    result: Result | None = None
    try:
        async for value in stream:
            if isinstance(value, Result):
                result = value
            else:
                report(value)
                last = value
    finally:
        await stream.aclose()
    return last if result is None else result.value


async def _in_thread(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], report: Report
) -> Any:
    """Run in a thread. One that is cancelled cannot be stopped: a generator ends at its next
    step, a plain function is left behind, and neither reports any more.
    """
    given_up = Flag()

    def report_on(value: Any) -> None:
        if not given_up.is_set():
            report(value)

    for key, value in kwargs.items():
        if isinstance(value, ToolContext):
            kwargs[key] = replace(value, report=report_on)
    args = [replace(a, report=report_on) if isinstance(a, ToolContext) else a for a in args]

    def work() -> Any:
        value = function(*args, **kwargs)
        return _exhaust(value, report_on, given_up) if isgenerator(value) else value

    try:
        return await in_thread(work)
    except BaseException:
        given_up.set()
        raise


def _exhaust(steps: Generator[Any, Any, Any], report: Report, given_up: Flag) -> Any:
    last: Any = None
    try:
        while not given_up.is_set():
            value = next(steps)
            if isinstance(value, Result):
                steps.close()
                return value.value
            report(value)
            last = value
    except StopIteration as stop:
        if isinstance(stop.value, Result):
            return stop.value.value
        return last if stop.value is None else stop.value
    finally:
        steps.close()
    return last

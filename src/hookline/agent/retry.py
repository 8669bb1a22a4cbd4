"""Asking a model again: after a passing failure, and once with less context when it did not fit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hookline.errors import CutOff
from hookline.events import RetryEndEvent, RetryStartEvent
from hookline.hookspecs import Hooks
from hookline.models import ModelFailed
from hookline.system.retry import RetryPolicy
from hookline.types import HookContext, StreamEvent

from .model_call import Emit, ModelAnswer

Ask = Callable[[Emit], Awaitable[ModelAnswer]]


class Retry:
    """Retries if that may help: a transient failure, before any of the answer was shown.

    Shown text cannot be taken back: an answer that breaks off in the middle is reported.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._start = hooks[RetryStartEvent]
        self._end = hooks[RetryEndEvent]

    async def ask(self, ask: Ask, emit: Emit, ctx: HookContext, policy: RetryPolicy) -> ModelAnswer:
        """The answer, or the error of the last attempt."""
        shown = AnswerProgress(emit)
        failure: Exception
        try:
            return await ask(shown)
        except (ModelFailed, CutOff) as error:
            failure = error
        retries = (policy.attempts or 1) - 1
        for attempt in range(1, retries + 1):
            if shown.anything or not passing(failure):
                raise failure
            if self._start.live:
                await self._start.fire(RetryStartEvent(attempt, retries), ctx)
            await asyncio.sleep(delay(failure, attempt, policy))
            try:
                answer = await ask(shown)
            except Exception as error:
                await self._over(attempt, error, ctx)
                if not isinstance(error, ModelFailed | CutOff):
                    raise
                failure = error
            else:
                await self._over(attempt, None, ctx)
                return answer
        raise failure

    async def _over(self, attempt: int, error: Exception | None, ctx: HookContext) -> None:
        if self._end.live:
            await self._end.fire(RetryEndEvent(attempt, error is None, error), ctx)


class AnswerProgress:
    """Hands events on, and remembers whether any of the answer was among them."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.anything = False

    def __call__(self, event: StreamEvent) -> Awaitable[None]:
        """Hand one on."""
        self.anything = self.anything or event.kind in ("text", "reasoning", "tool_call")
        return self._emit(event)


def passing(error: Exception) -> bool:
    """Whether the same request may go through later."""
    return isinstance(error, CutOff) or (isinstance(error, ModelFailed) and error.transient)


def delay(error: Exception, failures: int, policy: RetryPolicy) -> float:
    """Seconds to wait: what the provider asked for, or what the policy says."""
    asked: float | None = getattr(error, "retry_after", None)
    return policy.delay(failures) if asked is None else min(asked, policy.max)

"""Budgets at the model: once a session has spent what it may, the next request does not go out.

The pack `budgets` judges tool calls. A model that calls no tools spends tokens, money and time as well;
so where the pack is in use, this gate stands before every request to a provider.
"""

from __future__ import annotations

from collections.abc import Callable

from hookline.events import ModelCallEvent, ModelCallEventResult
from hookline.hooks import hookimpl
from hookline.types import HookContext

from .policy import Policy

PLUGIN = "budgets"


class BudgetGate:
    """Denies model calls of a session that has used up its budget. A failure denies."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._policy = policy

    @hookimpl(guard=True)
    async def model_call(self, event: ModelCallEvent, ctx: HookContext) -> ModelCallEventResult | None:
        """Withhold the request from the provider, and say what is used up."""
        name = await self._policy().used_up(ctx.session_id)
        if name is None:
            return None
        return ModelCallEventResult(block=True, reason=f"the budget of {name} is used up")

"""Model calls and the choice of model."""

import logging
from collections import Counter

from hookline.events import (
    ModelCallEvent,
    ModelCallEventResult,
    ModelResultEvent,
    ModelResultEventResult,
    ModelSelectEvent,
    ThinkingLevelSelectEvent,
)
from hookline.hooks import hookimpl
from hookline.types import HookContext

log = logging.getLogger(__name__)


class Budget:
    """Limits the tokens of each session."""

    def __init__(self, tokens: int = 200_000) -> None:
        self.tokens = tokens
        self.spent: Counter[str] = Counter()

    @hookimpl(guard=True)
    def model_call(self, event: ModelCallEvent, ctx: HookContext) -> ModelCallEventResult | None:
        """Refuse a request once the budget is spent."""
        if self.spent[ctx.session_id] >= self.tokens:
            return ModelCallEventResult(block=True, reason=f"{self.tokens} tokens are spent")
        return None

    @hookimpl
    def model_result(self, event: ModelResultEvent, ctx: HookContext) -> ModelResultEventResult | None:
        """Count the tokens, and mark an answer that was cut off."""
        used = event.usage.get("input_tokens", 0) + event.usage.get("output_tokens", 0)
        self.spent[ctx.session_id] += used
        if event.finish_reason == "length":
            return ModelResultEventResult(content=f"{event.content} […]")
        return None

    @hookimpl(when="*-large*")
    def model_select(self, event: ModelSelectEvent, ctx: HookContext) -> None:
        """Warn of the price."""
        ctx.notify(f"{event.model} costs more than {event.previous_model or 'the default'}.")

    @hookimpl
    def thinking_level_select(self, event: ThinkingLevelSelectEvent) -> None:
        """Log the change, which the bill will show."""
        log.info("thinking %s, was %s", event.level, event.previous_level)

"""Noticing that an agent goes in circles: the same call, with the same result, again and again."""

from __future__ import annotations

from collections import Counter
from json import JSONEncoder

from hookline.hookspecs import Hooks
from hookline.tools.runner import ToolOutcome
from hookline.types import HookContext

WARN_AT = 3
"""How often a call may return the same result before a warning, and before each further one."""

_encode = JSONEncoder(sort_keys=True, default=str).encode


class LoopWatch:
    """Counts the calls of one run that brought nothing new."""

    def __init__(self, hooks: Hooks) -> None:
        self._warning = hooks["on_loop_warning"]
        self._seen: Counter[tuple[str, str, str]] = Counter()

    async def look(self, outcomes: list[ToolOutcome], ctx: HookContext) -> None:
        """Record the outcomes of one model turn, and warn about repetitions."""
        for outcome in outcomes:
            call = outcome.call
            arguments = _encode(dict(call.arguments))
            key = (call.name, arguments, str(outcome.content))
            self._seen[key] += 1
            count = self._seen[key]
            if count >= WARN_AT and self._warning.live:
                pattern = f"{call.name} {arguments}"
                await self._warning.fire(call.name, pattern, count, ctx.agent_id, ctx.session_id)

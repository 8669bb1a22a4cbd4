"""The timeline of a run: when the model and the tools worked, noted as the journal is written."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any

from hookline.agent.journal import TapeJournal

from .run_record import RunStep

if TYPE_CHECKING:
    from hookline.hooks import Ruling
    from hookline.tape import Tape
    from hookline.types import Message, ToolCall, ToolResultContent

    from .run_record import RunRecord


class TimedJournal(TapeJournal):
    """A journal that also notes its times in the record of a run."""

    def __init__(self, tape: Tape, record: RunRecord, model: str) -> None:
        super().__init__(tape)
        self._record, self._model = record, model
        self._since = record.began
        """When the model could start: after the prompt, or after the last result of a tool."""
        self._calls: dict[str, int] = {}

    def assistant(self, message: Message, usage: dict[str, Any]) -> Awaitable[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The model answered."""
        now = time()
        tokens = usage.get("output_tokens")
        self._note(RunStep("model", self._model, self._since, now, tokens=tokens))
        self._since = now
        return super().assistant(message, usage)

    def tool_call(self, call: ToolCall, requested: Any, rulings: list[Ruling]) -> Awaitable[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A tool is about to run."""
        self._calls[call.id] = len(self._record.steps)
        now = time()
        self._note(RunStep("tool", call.name, now, now, call_id=call.id))
        return super().tool_call(call, requested, rulings)

    def tool_result(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, result: ToolResultContent, *, ran: bool, terminate: bool, rulings: list[Ruling]
    ) -> Awaitable[None]:
        """A tool call has its result."""
        now, steps, call_id = time(), self._record.steps, result.tool_call_id
        at = self._calls.pop(call_id, None)
        if at is None:  # it was refused
            self._note(RunStep("tool", result.name, self._since, now, "denied", call_id))
        else:
            state = "ok" if not result.is_error else "failed" if ran else "denied"
            steps[at] = replace(steps[at], end=now, state=state)
        self._since = now
        return super().tool_result(result, ran=ran, terminate=terminate, rulings=rulings)

    def _note(self, step: RunStep) -> None:
        self._record.steps.append(step)

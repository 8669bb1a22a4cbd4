"""The compactor: makes room in a context, through `session_before_compact` and `session_compact`.

What to summarise and what to keep is planned in `compaction`; this module asks the handlers, then the
model, and writes the anchor. Nothing is deleted: the anchor carries the summary.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from hookline.errors import Blocked, CutOff
from hookline.events import CompactionResult, SessionBeforeCompactEvent, SessionCompactEvent
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.hookspecs import Hooks
from hookline.models import Model, ModelRequest
from hookline.tape import Entry, Tape
from hookline.types import HookContext, Message

from .model_call import ModelCall

if TYPE_CHECKING:
    from .compaction import Preparation

log = logging.getLogger("hookline")

LEFT_OUT = "Earlier parts of this conversation did not fit and were left out."
SUMMARISE = (
    "You write down what a conversation between a user and an agent came to, for an agent that will "
    "go on with it and knows nothing else of it. Keep goals, decisions, names, paths and open ends. "
    "Be brief."
)


@dataclass(frozen=True, slots=True)
class Compacting:
    """When a context is compacted, and how much of it stays, in tokens."""

    enabled: bool = True
    reserve: int = 16_384
    """The room left for the answer."""
    keep: int = 20_000
    """How much of the recent conversation stays whole."""
    window: int | None = None
    """The size of the context, where the model does not say or says too much."""

    def window_of(self, model: Model) -> int | None:
        """How much fits."""
        return self.window or model.context_window

    def kept_by(self, model: Model) -> int:
        """How much stays whole: in a small context no more than a third of it."""
        window = self.window_of(model)
        return min(self.keep, window // 3) if window else self.keep


class Compactor:
    """Compacts the branch of a tape."""

    def __init__(self, hooks: Hooks, model_turn: ModelCall) -> None:
        self._before = hooks[SessionBeforeCompactEvent]
        self._after = hooks[SessionCompactEvent]
        self._model_turn = model_turn

    def is_due(self, model: Model, messages: list[Message], settings: Compacting) -> bool:
        """Whether the next request would come near the model's limit."""
        window = settings.window_of(model)
        if window is None or not settings.enabled:
            return False
        from .compaction import estimate_messages

        return estimate_messages(messages) > window - min(settings.reserve, window // 4)

    async def make_room(
        self, tape: Tape, model: Model, ctx: HookContext, settings: Compacting, why: str
    ) -> Entry | None:
        """Compact in the middle of a turn. If no summary can be made, the older part is left out."""
        try:
            return await self.compact(tape, model, ctx, settings)
        except Blocked as blocked:
            ctx.notify(str(blocked))
            return None
        except HooklineError as error:
            log.warning("compaction.failed session=%s: %s", tape.session_id, error_text(error))
        preparation = await self._prepare(tape, settings.kept_by(model))
        if preparation is None:
            return None
        return await tape.anchor(why, summary=LEFT_OUT, keep_from=preparation.first_kept_entry_id)

    async def compact(
        self,
        tape: Tape,
        model: Model,
        ctx: HookContext,
        settings: Compacting,
        instructions: str | None = None,
    ) -> Entry | None:
        """Replace the older part with a summary; None if there is nothing to compact.

        Raises `Blocked` if a handler cancels; then nothing changes.
        """
        from .compaction import apply, check

        preparation = await self._prepare(tape, settings.kept_by(model))
        if preparation is None:
            return None
        supplied: CompactionResult | None = None
        if self._before.live:
            entries = await tape.context_entries()
            event = SessionBeforeCompactEvent(preparation, entries, instructions)
            verdict = await self._before.fire(event, ctx)
            if verdict.denied:
                raise Blocked("compaction", verdict.reason or "cancelled", verdict.decided_by)
            supplied = verdict.supplied.get("compaction")
        if supplied is not None:
            check(supplied, await tape.context_entries())
        result = supplied or await self._summarise(preparation, model, ctx, instructions)
        entry = await apply(tape, result)
        if self._after.live:
            await self._after.fire(SessionCompactEvent(entry, supplied is not None), ctx)
        return entry

    async def _prepare(self, tape: Tape, keep: int) -> Preparation | None:
        """What to leave out: at least half, because the caller needs room."""
        from .compaction import estimate_tokens, plan

        entries = await tape.context_entries()
        return plan(entries, keep_tokens=min(keep, sum(map(estimate_tokens, entries)) // 2))

    async def _summarise(
        self, preparation: Preparation, model: Model, ctx: HookContext, instructions: str | None
    ) -> CompactionResult:
        from .compaction import summary_request

        summary = await self.ask(summary_request(preparation, instructions), model, ctx)
        return CompactionResult(summary, preparation.first_kept_entry_id, preparation.tokens_before)

    async def ask(self, messages: list[Message], model: Model, ctx: HookContext) -> str:
        """Have the model write a summary: a call like any other, which every model gate sees."""
        request = ModelRequest(
            model=model.name,
            messages=messages,
            system=SUMMARISE,
            request_id=uuid4().hex,
            session_id=ctx.session_id,
        )
        answer = await self._model_turn.aside(model, request, ctx)
        if not answer.text.strip():
            raise CutOff(f"{model.name} wrote no summary")
        return answer.text.strip()

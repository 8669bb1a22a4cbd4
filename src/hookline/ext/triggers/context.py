"""The context given to triggers, and the results they get back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hookline.hookspecs import TriggerEvent

if TYPE_CHECKING:
    from hookline.config import Config
    from hookline.runtime.app import Hookline
    from hookline.runtime.turn import TurnResult

    from .clock import Clock
    from .ledger import LedgerState, TriggerLedger


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of an event in this process."""

    state: LedgerState
    result: TurnResult | None = None
    error: Exception | None = None
    due: float = 0.0
    """When to try again, if it failed and may be retried."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What emitting an event came to: whether it was taken, and how to wait for its turn."""

    event: TriggerEvent
    taken: bool
    """False: the event is known already, and `state` says how far it is."""
    state: LedgerState
    turn: asyncio.Task[Settled] | None = None

    async def settled(self) -> Settled:
        """Wait for the end of the turn. Cancelling the wait does not cancel the turn."""
        if self.turn is None:
            return Settled(self.state)
        return await asyncio.shield(self.turn)


class Emit(Protocol):
    """Takes an event: when it returns, the event is recorded, and its turn follows."""

    def __call__(
        self, event: TriggerEvent, *, again: bool = False, mark: float | None = None
    ) -> Awaitable[Receipt]:
        """Take an event; `again` takes one that waits or failed, `mark` see `Ledger.claim`."""
        ...


class FailureReport(Protocol):
    """Reports a trigger's failure outside any turn."""

    def __call__(self, trigger: str, error: Exception) -> Awaitable[None]:
        """Tell `on_error(stage="trigger")`, and the log."""
        ...


@dataclass(frozen=True, slots=True)
class ServeContext:
    """What serving hands to triggers, as `deps["context"]`."""

    app: Hookline
    config: Config
    clock: Clock
    emit: Emit
    ledger: TriggerLedger
    report: FailureReport

    def deps(self) -> dict[str, Any]:
        """What the hooks get."""
        return {"context": self, "app": self.app, "emit": self.emit}

"""The ledger: every event of a trigger, recorded before its turn starts, and who has it in hand.

It is not part of the tape: the idempotency key must be unique across all sessions and processes before
a turn starts, and its rows change their state. It is a file of the home (`SQLiteLedger`), or it lies
beside tapes in PostgreSQL (`PostgresLedger`), where the processes of several machines share it.

| state | meaning |
|---|---|
| `queued` | waits in the table of a queue trigger |
| `started` | a process took it and makes its turn |
| `failed` | its turn failed, and it may be tried again |
| `done` | its turn is over |
| `dead` | its turn failed for the last time, or no turn can be made of it |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from hookline.hookspecs import TriggerEvent
from hookline.tape.open import postgres_of

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from .clock import Clock

State: TypeAlias = Literal["queued", "started", "failed", "done", "dead"]

KEPT: Final = 100_000
"""How many events of a trigger are remembered; older ones that are over are forgotten."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event and what became of it."""

    event: TriggerEvent
    state: State
    owner: str = ""
    tries: int = 0
    note: str = ""
    """Why it failed."""


class Ledger(Protocol):
    """The events of all triggers; several processes may use it at once."""

    look_every: float | None
    """Seconds between two looks for events of owners who are gone; None: looked for at the start alone.

    Where it is a number an owner may be away for a moment, and is gone who is away at two looks.
    """

    async def close(self) -> None:
        """Let go of everything."""
        ...

    # --- owners -------------------------------------------------------------------------------

    async def join(self, owner: str) -> None:
        """Let others know that an owner lives, until it leaves or this process ends."""
        ...

    async def leave(self) -> None:
        """Let others take over what the owner who joined still has."""
        ...

    async def is_present(self, owner: str) -> bool:
        """Whether an owner lives, as far as can be seen."""
        ...

    async def owners(self) -> list[str]:
        """Those who took events and did not settle them."""
        ...

    # --- events -------------------------------------------------------------------------------

    async def claim(
        self, event: TriggerEvent, owner: str, *, again: bool = False, mark: float | None = None
    ) -> tuple[bool, EventRecord]:
        """Take an event, all or nothing; False where somebody has it or had it, and its record.

        `again` takes one that waits or that failed. With a `mark`, the trigger's mark moves there too,
        and an event is not taken once the mark is there or further.
        """
        ...

    async def enqueue(self, event: TriggerEvent) -> bool:
        """Let an event wait in its trigger's table; False where its id is known already."""
        ...

    async def waiting(self, trigger: str) -> TriggerEvent | None:
        """The event that waited longest, of those that are due."""
        ...

    async def settle(
        self, event: TriggerEvent, owner: str, state: State, note: str = "", *, after: float = 0.0
    ) -> bool:
        """Say what became of an event that an owner has; False where another has taken it over.

        One that failed is due again `after` some seconds.
        """
        ...

    async def bury(self, event: TriggerEvent, note: str) -> None:
        """Make a dead letter of an event that nobody has in hand: no turn can be made of it."""
        ...

    async def unfinished(self, owner: str) -> list[EventRecord]:
        """The events that an owner took and did not settle."""
        ...

    async def take_over(self, record: EventRecord, owner: str) -> EventRecord | None:
        """Take an unfinished event from an owner who is gone; None where another was faster."""
        ...

    async def find(self, trigger: str, event_id: str) -> EventRecord | None:
        """One event's record."""
        ...

    async def dead(self, trigger: str) -> list[EventRecord]:
        """The dead letters of a trigger, the oldest first."""
        ...

    async def revive(self, trigger: str, event_id: str) -> bool:
        """Let a dead letter wait again, as if it had never been tried."""
        ...

    async def counts(self, trigger: str) -> dict[str, int]:
        """How many events of a trigger are in each state."""
        ...

    async def forget(self, trigger: str, keep: int = KEPT) -> None:
        """Forget the oldest events that are over, beyond those that are kept."""
        ...

    # --- marks --------------------------------------------------------------------------------

    async def mark(self, trigger: str, now: float) -> float:
        """How far a trigger has come in time; from now on, where it was never seen."""
        ...

    async def move_mark(self, trigger: str, at: float, *, back: bool = False) -> None:
        """Move a trigger's mark forward, or `back` where the clock had been wrong."""
        ...


def ledger_of(app: Hookline, clock: Clock) -> Ledger:
    """The ledger of a running app: beside its tapes where those are in PostgreSQL, or in its home."""
    store = postgres_of(app.store())
    if store is not None:
        from .postgres_ledger import PostgresLedger

        return PostgresLedger(store)
    from .sqlite_ledger import SQLiteLedger

    return SQLiteLedger(app.home, clock)

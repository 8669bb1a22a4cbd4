"""`Recovery`: the events of processes that are gone have their turns here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from hookline.hooks.errors import error_text
from hookline.hookspecs import TriggerEvent
from hookline.types import Envelope

from .errors import TriggerError
from .ledger import EventRecord, TriggerLedger

if TYPE_CHECKING:
    from .clock import Clock
    from .turns import Turns

log = logging.getLogger("hookline.ext.triggers")

TAKEN_OVER = 5
"""How often an event is taken over from a process that ended: it may be what ends them."""


class Recovery:
    """Looks for events that nobody works on: at the start, and on a shared ledger ever again."""

    def __init__(
        self,
        turns: Turns,
        ledger: TriggerLedger,
        clock: Clock,
        envelope_of: Callable[[TriggerEvent], Envelope],
    ) -> None:
        self._turns = turns
        self._ledger = ledger
        self._clock = clock
        self._envelope_of = envelope_of
        self._away: list[str] = []
        """The owners who were not there at the last look; nobody where it failed."""

    async def run(self) -> None:
        """Look again and again, where others may end while this process lives; until cancelled."""
        told = ""
        while self._ledger.look_every is not None:
            await self._clock.sleep_until(self._clock.now() + self._ledger.look_every)
            try:
                await self._turns.give_up_lost()
                await self.look_at_own()
                await self.look()
                told = ""
            except Exception as error:  # a database that is away is told of once
                self._away = []  # after an outage everybody may need a moment to be there again
                if (text := error_text(error)) != told:
                    log.warning("trigger.recovery_failed: %s", text)
                told = text

    async def look(self) -> None:
        """Take over what those left who are gone."""
        before, self._away = self._away, []
        away = [
            owner
            for owner in await self._ledger.owners()
            if owner != self._turns.owner and not await self._ledger.is_present(owner)
        ]
        # On a shared ledger a connection may break, and is there again in a moment.
        is_shared = self._ledger.look_every is not None
        for owner in away:
            if owner in before or not is_shared:
                await self._take_over(owner)
        self._away = away

    async def look_at_own(self) -> None:
        """Take up what is this process's own, where the answer of the ledger was lost."""
        await self._take_over(self._turns.owner)

    async def _take_over(self, owner: str) -> None:
        for record in await self._ledger.unfinished(owner):
            if self._turns.has(record.event):
                continue
            taken = await self._ledger.take_over(record, self._turns.owner)
            if taken is not None:
                await self._go_on(taken)

    async def _go_on(self, record: EventRecord) -> None:
        event = record.event
        if record.tries > TAKEN_OVER + (self._turns.retry_policy(event.trigger).attempts or 1):
            note = f"{TAKEN_OVER + 1} processes ended in the middle of it"
            await self._ledger.settle(event, self._turns.owner, "dead", note)
            return
        try:
            envelope = self._envelope_of(event)
        except TriggerError as error:  # the settings have changed since
            await self._ledger.settle(event, self._turns.owner, "dead", str(error))
        else:
            log.info("trigger.taken_over trigger=%s id=%s", event.trigger, event.id)
            self._turns.start(record, envelope, recovered=True)

"""The cron trigger: one turn for each moment of a schedule, exactly once.

A moment is claimed in the ledger before its turn starts, so only one of several processes fires it.
The ledger also records how far the trigger has come, so missed moments are known at the next start.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import Field

from hookline.hookspecs import TriggerEvent

from .schedule import Schedule
from .settings import TriggerSettings
from .template import Template
from .trigger import RunningTrigger

log = logging.getLogger("hookline.ext.triggers")

SET_BACK = 3 * 3600.0
"""Seconds by which a clock must have gone back to have been wrong before. Less is waited for."""


class CronSettings(TriggerSettings):
    """`type = "cron"`."""

    schedule: str
    """Minute, hour, day of the month, month, day of the week."""
    timezone: str = "UTC"
    missed: Literal["once", "skip"] = "once"
    """What to do about moments that passed while nothing ran: one turn for all of them, or none."""
    grace: float = Field(default=60.0, ge=0)
    """Seconds by which a moment may be late and is not missed."""

    def check(self) -> None:
        """Refuse a schedule that cannot be read, and a message whose fields a moment does not have."""
        schedule = Schedule(self.schedule, self.timezone)
        sample = payload_of("", schedule, 0.0, missed=False)
        for template in (self.message, self.session or "", self.chat):
            Template(template).fill(sample)


class CronTrigger(RunningTrigger[CronSettings]):
    """Fires at the moments of its schedule."""

    form: ClassVar[type[Any]] = CronSettings

    @cached_property
    def schedule(self) -> Schedule:
        """The moments."""
        return Schedule(self.settings.schedule, self.settings.timezone)

    async def set_up(self) -> None:
        """From the first start on, every moment counts."""
        await self.context.ledger.mark(self.name, self.context.clock.now())

    def payload_by_hand(self) -> dict[str, Any]:
        """As if now were a moment."""
        return payload_of(self.name, self.schedule, self.context.clock.now(), missed=False)

    async def run(self) -> None:
        """Wait for each moment, and look what came meanwhile."""
        clock, ledger = self.context.clock, self.context.ledger
        while True:
            now = clock.now()
            mark = await ledger.mark(self.name, now)
            if mark - now > SET_BACK:
                log.warning("trigger.clock_set_back trigger=%s", self.name)
                await ledger.move_mark(self.name, now, back=True)
                mark = now
            moment = self.schedule.latest(mark, now)
            if moment is not None:
                await self._came(moment, now)
            await clock.sleep_until(self.schedule.next(max(moment or mark, now)))

    async def _came(self, moment: float, now: float) -> None:
        missed = now - moment > self.settings.grace
        if missed and self.settings.missed == "skip":
            log.warning("trigger.missed trigger=%s moment=%s", self.name, self.schedule.local(moment))
            await self.context.ledger.move_mark(self.name, moment)
            return
        event = TriggerEvent(
            self.name,
            payload_of(self.name, self.schedule, moment, missed=missed),
            id=datetime.fromtimestamp(moment, UTC).isoformat(),
            time=now,
        )
        await self.context.emit(event, mark=moment)


def payload_of(name: str, schedule: Schedule, moment: float, *, missed: bool) -> dict[str, Any]:
    """The values that a message template can use for a moment."""
    local = schedule.local(moment)
    return {
        "trigger": name,
        "time": local,
        "date": local[:10],
        "schedule": schedule.expression,
        "timezone": str(schedule.zone),
        "missed": missed,
    }

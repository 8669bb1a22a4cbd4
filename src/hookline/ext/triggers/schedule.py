"""Schedules: the moments of a cron expression in a time zone.

`cronsim` reads the expressions as Debian's cron does, also where the clocks change: a job at a fixed
time that is skipped runs right after the gap, one whose time comes twice runs at the first of the two,
and one that runs every so often keeps to real time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from .errors import MissingTriggerLibrary, TriggerError

LONGEST = 1000
"""Characters of an expression."""

NEAR = 2 * 86400.0
"""Seconds back in which the latest moment is looked for first."""


class Schedule:
    """The moments of one expression, in seconds since 1970."""

    def __init__(self, expression: str, zone: str = "UTC") -> None:
        try:
            from cronsim import CronSim, CronSimError
        except ImportError:
            raise MissingTriggerLibrary("cron", "cronsim", "triggers") from None
        self.expression = expression
        self.zone = zone_of(zone)
        self._cron = CronSim
        if len(expression) > LONGEST:
            raise TriggerError(
                f"a schedule may have {LONGEST} characters; this one has {len(expression):,}"
            )
        if len(expression.split()) != 5:
            raise TriggerError(
                f"schedule {expression!r} must have five fields: "
                "minute, hour, day of the month, month, day of the week"
            )
        try:
            self.next(datetime.now(UTC).timestamp())
        except (CronSimError, ValueError) as error:
            raise TriggerError(
                f"schedule {expression!r} cannot be read: {str(error).lower()}"
            ) from None
        except StopIteration:
            raise TriggerError(f"schedule {expression!r} never comes") from None

    def after(self, moment: float) -> Iterator[float]:
        """The moments after one, in order, none of them twice."""
        local = datetime.fromtimestamp(moment, self.zone)
        last = moment
        for found in self._cron(self.expression, local):
            # Where the clocks change, several local times may be one moment, or one that is over.
            if (at := found.timestamp()) > last:
                last = at
                yield at

    def next(self, moment: float) -> float:
        """The first moment after one."""
        for found in self.after(moment):
            return found
        raise StopIteration

    def latest(self, after: float, until: float) -> float | None:
        """The last moment in a time that has passed, if there was any."""
        for start in (max(after, until - NEAR), after):
            found = None
            for moment in self.after(start):
                if moment > until:
                    break
                found = moment
            if found is not None or start == after:
                return found
        return None

    def local(self, moment: float) -> str:
        """A moment as a clock on the wall shows it there, with its offset."""
        return datetime.fromtimestamp(moment, self.zone).isoformat()


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise TriggerError(
            f"timezone {name!r} is unknown: write it as in Europe/Berlin, America/New_York or UTC"
        ) from None

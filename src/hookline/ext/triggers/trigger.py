"""`Trigger`: a plugin on the four hooks, for one section of the settings."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar, Generic, TypeVar

from hookline.hooks import hookimpl
from hookline.hooks.errors import error_text
from hookline.hookspecs import Route

from .context import ServeContext
from .settings import TriggerSettings

log = logging.getLogger("hookline.ext.triggers")

S = TypeVar("S", bound=TriggerSettings)

PAUSE = 5.0
"""Seconds before a trigger that failed begins again."""


class Trigger(Generic[S]):
    """One trigger, as its section has it. It is registered as the plugin `trigger:<name>`."""

    form: ClassVar[type[Any]] = TriggerSettings
    """The settings that its section may have."""

    def __init__(self, name: str, settings: S) -> None:
        self.name = name
        self.settings = settings
        self.context: ServeContext

    @property
    def plugin_name(self) -> str:
        """The name under which the trigger is a plugin, and a channel."""
        return f"trigger:{self.name}"

    @hookimpl
    async def trigger_init(self, deps: dict[str, Any]) -> None:
        """Keep what serving hands over."""
        self.context = deps["context"]
        await self.set_up()

    @hookimpl
    def trigger_routes(self) -> list[Route]:
        """The routes of the trigger; most have none."""
        return self.routes()

    @hookimpl
    async def trigger_start(self, deps: dict[str, Any]) -> None:
        """Begin to emit events."""
        await self.begin()

    @hookimpl
    async def trigger_stop(self, deps: dict[str, Any]) -> None:
        """Emit no more."""
        await self.end()

    async def set_up(self) -> None:
        """Prepare, and refuse what cannot work."""

    def routes(self) -> list[Route]:
        """What the server is to mount."""
        return []

    async def begin(self) -> None:
        """Begin to emit."""

    async def end(self) -> None:
        """Emit no more events, and release all resources."""

    def payload_by_hand(self) -> Any:
        """The default payload of an event that a person fires by hand."""
        return {}

    async def enqueue(self, payload: Any, event_id: str | None) -> tuple[str, bool]:
        """Put an event where the trigger finds it: its id, and whether it is new."""
        raise NotImplementedError

    async def revive(self, event_id: str) -> bool:
        """Requeue a dead letter. Return False if there is none with this id."""
        raise NotImplementedError


class RunningTrigger(Trigger[S]):
    """A trigger with a background task. A failure is reported and the task restarts."""

    pause = PAUSE
    _task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Emit events, until cancelled."""
        raise NotImplementedError

    async def begin(self) -> None:
        """Start the task."""
        self._task = asyncio.create_task(self._forever(), name=self.plugin_name)

    async def end(self) -> None:
        """Stop the task, and wait until it has stopped."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _forever(self) -> None:
        told = ""
        while True:
            try:
                await self.run()
                return
            except Exception as raised:
                error = _first(raised)
                # report a broker outage once, not at every attempt
                if (text := error_text(error)) != told:
                    await self.context.report(self.name, error)
                told = text
            await asyncio.sleep(self.pause)


def _first(error: Exception) -> Exception:
    """The error of one of several workers; the others were stopped for it."""
    failed: tuple[Exception, ...] = getattr(error, "exceptions", ())
    return failed[0] if failed else error

"""`Triggers`: runs the triggers of an app, and makes a turn of each of their events.

    triggers = Triggers(app)
    async with app.running():
        await triggers.start()
        ...                              # mount triggers.routes()
        await triggers.stop()

An event is in the ledger before its turn starts. Its id is the idempotency key: whatever happens, and
however often it comes, it makes one turn. A turn that was cut off goes on at the next start, or on
another machine of those that share the tape.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hookline.hooks.errors import error_text
from hookline.hookspecs import Route, TriggerEvent
from hookline.runtime.delivery import to_session
from hookline.runtime.turn import TurnResult
from hookline.types import Envelope, address_of, field_of

from .clock import Clock, SystemClock
from .context import Receipt, ServeContext
from .dispatcher import DispatchResult, Lifecycle
from .errors import TriggerError, TriggersStopping, UnknownTrigger
from .ledger import TriggerLedger, ledger_of
from .recovery import Recovery
from .settings import TriggerSettings, configured
from .template import Template
from .trigger import Trigger
from .turns import Process, Turns

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

log = logging.getLogger("hookline.ext.triggers")

DRAIN = 20.0
"""Seconds that running turns get to finish when triggers are stopped."""


class Triggers:
    """The triggers of one app: those in the settings and those from plugins.

    Their records are stored with the tape, so the app must be running when they are used.
    """

    def __init__(self, app: Hookline, *, clock: Clock | None = None) -> None:
        self.app = app
        self.clock = clock or SystemClock()
        self.configured: dict[str, Trigger[Any]] = {t.name: t for t in configured(app.config)}
        """The triggers that the settings name."""
        self._routes: list[Route] = []
        self._broken: set[str] = set()
        """The plugins whose `trigger_init` failed: nothing more is asked of them."""
        self._attached = ExitStack()
        self._recovering: asyncio.Task[None] | None = None
        self._stopping = False

    @cached_property
    def ledger(self) -> TriggerLedger:
        """Where events are recorded: with the tapes in PostgreSQL, or in the home."""
        return ledger_of(self.app, self.clock)

    @cached_property
    def context(self) -> ServeContext:
        """What triggers are handed."""
        app = self.app
        return ServeContext(app, app.config, self.clock, self.emit, self.ledger, self.report)

    @cached_property
    def turns(self) -> Turns:
        """The turns that are made here."""
        return Turns(self.app, self.ledger, self.clock, self.settings_of)

    @cached_property
    def recovery(self) -> Recovery:
        """Takes over the events of processes that are gone."""
        return Recovery(self.turns, self.ledger, self.clock, self.envelope_of)

    # --- lifecycle ----------------------------------------------------------------------------

    async def start(self, process: Process | None = None) -> list[DispatchResult]:
        """Start every trigger inside the app's running scope. Failures are reported, not raised.

        By default envelopes go straight to the app. A cluster passes `process`: its workers run the
        turns, one for each message however often it is delivered, and it waits for them.
        """
        if process is not None:
            self.turns.process, self.turns.elsewhere = process, True
        self._stopping = False
        await self.turns.open()
        hooks = self.app.hooks
        if process is None:  # workers send their own output
            self._attached.callback(hooks.register("dispatch_outbound", self.answer))
        for trigger in self.configured.values():
            hooks.add(trigger, name=trigger.plugin_name)
            self._attached.callback(hooks.remove, trigger.plugin_name)
            await self.ledger.forget(trigger.name)
        results = await self._dispatch("trigger_init")
        self._broken = {result.plugin_name for result in results if not result.success}
        await self._collect_routes()
        await self.recovery.look()
        self._recovering = asyncio.create_task(self.recovery.run(), name="triggers:recovery")
        return [*results, *await self._dispatch("trigger_start")]

    async def close(self) -> None:
        """Release what was opened without starting a trigger."""
        await self.turns.close()
        await self.ledger.close()

    async def stop(self, drain: float = DRAIN) -> list[DispatchResult]:
        """Stop every trigger; turns get some seconds to finish, and are parked after that."""
        results = await self._dispatch("trigger_stop")
        self._stopping = True
        if self._recovering is not None:
            self._recovering.cancel()
            await asyncio.wait([self._recovering])
        await self.turns.drain(drain)
        await self.close()
        self._attached.close()
        self._routes, self._broken = [], set()
        return results

    def routes(self) -> list[Route]:
        """The routes that triggers want mounted; known once they are started."""
        return [*self._routes]

    async def drained(self) -> None:
        """Wait until no turn of a trigger is in flight."""
        await self.turns.drain()

    async def _dispatch(self, hook: Lifecycle) -> list[DispatchResult]:
        return await self._told(hook, deps=self.context.deps())

    async def _collect_routes(self) -> None:
        for result in await self._told("trigger_routes"):
            for given in result.result or ():
                from starlette.routing import BaseRoute, Router

                if isinstance(given, BaseRoute):
                    self._routes.append(given)
                elif isinstance(given, Router):
                    self._routes += given.routes
                else:
                    wrong = TriggerError(f"trigger_routes must give routes or routers, not {given!r}")
                    await self.report(result.plugin_name, wrong)

    async def _told(self, hook: str, **arguments: Any) -> list[DispatchResult]:
        """Call a hook of the eligible triggers, and report those that failed."""
        pm = self.app.hooks.pm
        left_out = [pm.get_plugin(name) for name in self._broken]
        call = pm.subset_hook_caller(hook, [plugin for plugin in left_out if plugin is not None])
        results: list[DispatchResult] = await call(**arguments)
        for result in results:
            if not result.success and result.error is not None:
                result.error.add_note(f"in {hook} of {result.plugin_name}")
                await self.report(result.plugin_name.removeprefix("trigger:"), result.error)
        return results

    async def report(self, trigger: str, error: Exception) -> None:
        """Report a failure outside any turn."""
        log.error("trigger.failed trigger=%s: %s", trigger, error_text(error))
        log.debug("trigger.failed trigger=%s", trigger, exc_info=error)
        on_error = self.app.hooks["on_error"]
        if on_error.live:
            await on_error.fire("trigger", error, None, "main")

    # --- events -------------------------------------------------------------------------------

    async def emit(
        self, event: TriggerEvent, *, again: bool = False, mark: float | None = None
    ) -> Receipt:
        """Take an event: record it, and let its turn follow. One that is known makes no other."""
        if self._stopping:
            raise TriggersStopping
        envelope = self.envelope_of(event)
        taken, record = await self.turns.take(event, again=again, mark=mark)
        if not taken:
            return Receipt(event, False, record.state)
        return Receipt(event, True, "started", self.turns.start(record, envelope))

    async def fire(self, name: str, payload: Any = None, message: str | None = None) -> TurnResult:
        """Make a turn of a trigger now, whatever it waits for."""
        trigger = self.trigger(name)
        trigger.context = self.context
        given = trigger.payload_by_hand() if payload is None else payload
        receipt = await self.emit(TriggerEvent(name, given, message=message))
        settled = await receipt.settled()
        if settled.error is not None:
            raise settled.error
        if settled.result is None:
            raise TriggerError(
                f"the turn of trigger {name!r} was cut off; it goes on at the next start"
            )
        return settled.result

    async def enqueue(self, name: str, payload: Any, event_id: str | None = None) -> tuple[str, bool]:
        """Put an event into the queue of a trigger: its id, and whether it is new."""
        trigger = self.trigger(name)
        trigger.context = self.context
        try:
            return await trigger.enqueue(payload, event_id)
        except NotImplementedError:
            raise TriggerError(
                f"trigger {name!r} is a {trigger.settings.type}, which has no queue; "
                f"`hookline triggers fire {name}` makes a turn of it"
            ) from None

    async def revive(self, name: str, event_id: str) -> None:
        """Let a dead letter of a queue in the home wait again."""
        trigger = self.trigger(name)
        trigger.context = self.context
        try:
            found = await trigger.revive(event_id)
        except NotImplementedError:
            raise TriggerError(
                f"trigger {name!r} has no queue in the home, where an event could wait again; "
                "send it anew"
            ) from None
        if not found:
            raise TriggerError(f"trigger {name!r} has no dead letter {event_id!r}")

    def trigger(self, name: str) -> Trigger[Any]:
        """A trigger of the settings, by name."""
        if name not in self.configured:
            raise UnknownTrigger(name, self.configured)
        return self.configured[name]

    def settings_of(self, name: str) -> TriggerSettings:
        """A trigger's settings; a plugin's trigger may have none."""
        found = self.configured.get(name)
        return found.settings if found else TriggerSettings()

    def envelope_of(self, event: TriggerEvent) -> dict[str, Any]:
        """The inbound message that an event becomes."""
        if event.trigger not in self.configured and event.message is None:
            raise UnknownTrigger(event.trigger, self.configured)
        settings = self.settings_of(event.trigger)
        content = event.message
        if content is None:
            content = Template(settings.message).fill(event.payload)
        channel = f"trigger:{event.trigger}"
        session = event.session or channel
        if event.session is None and settings.session:
            session = Template(settings.session).fill(event.payload)
        envelope: dict[str, Any] = {
            "content": content,
            "channel": channel,
            "chat_id": Template(settings.chat).fill(event.payload),
            "sender_id": channel,
            "session_id": session,
            "message_id": f"{channel}/{event.id}",
        }
        return {**envelope, "answer_to": settings.channel} if settings.channel else envelope

    async def answer(self, message: Envelope) -> bool:
        """Send the output of a trigger's turn to the channel it names, or to its session's channel."""
        source, chat_id = address_of(message)
        kind, _, name = source.partition(":")
        if kind != "trigger":
            return False
        outbound = {
            "content": field_of(message, "content", ""),
            "session_id": field_of(message, "session_id"),
        }
        channel = self.settings_of(name).channel
        if channel is not None:
            outbound |= {"channel": channel, "chat_id": chat_id}
        else:
            outbound = await to_session(self.app, outbound)
            if "channel" not in outbound:
                return False
        sent = any(await self.app.hooks["dispatch_outbound"].fire(outbound))
        if not sent:
            log.warning("trigger.answer_not_sent trigger=%s channel=%s", name, outbound["channel"])
        return sent

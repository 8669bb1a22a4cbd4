"""`Gateway`: runs channels and processes their messages through the app."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from hookline.agent.journal import CutOffTurn, cut_off_turn
from hookline.channel import NOWHERE, Channel, Note, Question, finished
from hookline.errors import ConfigError, GatewayError, GatewayStopping
from hookline.events import (
    ChannelConnectEvent,
    ChannelDisconnectEvent,
    GatewayErrorEvent,
    GatewayStartupEvent,
    GatewayStopEvent,
    MessageCancelEvent,
)
from hookline.hooks import HooklineError
from hookline.hooks.errors import suggestion
from hookline.runtime.delivery import to_session
from hookline.runtime.gateway_channel import ChannelSpec, GatewayChannel, WholeAnswers, channel_spec
from hookline.runtime.inbox import Fate, Inbox, fates_of, key_of
from hookline.tape.entry import TURN
from hookline.tape.open import postgres_of
from hookline.types import Envelope, address_of, check_envelope

from .approvals import GatewayApprovals, refused_by
from .commands import ChannelCommands
from .intake import Intake, with_id
from .limits import Limiter
from .message_channel import Outgoing
from .message_processor import MessageProcessor, told
from .metrics import Metrics
from .settings import GatewaySettings, has_triggers, settings_of, worker_settings_of
from .users import Admissions, Users

if TYPE_CHECKING:
    from fastapi import APIRouter
    from starlette.routing import BaseRoute

    from hookline.ext.triggers import Triggers
    from hookline.runtime.app import Hookline
    from hookline.tape.postgres.store import PostgresStore

    from .clustered import Cluster
    from .worker import Worker

log = logging.getLogger("hookline.serve")

GOING_DOWN = "the gateway is going down; send it again later"


class Gateway:
    """Runs the enabled channels and processes their messages through the app."""

    kept = "the gateway is going down; the message is kept, and answered after the next start"

    def __init__(
        self,
        app: Hookline,
        *,
        enabled: Sequence[str] | None = None,
        settings: GatewaySettings | None = None,
        inbox: Inbox | None = None,
    ) -> None:
        self.app = app
        self.settings = settings or settings_of(app.config)
        self.intake = Intake(app, inbox)
        """Stores messages from acceptance to outcome."""
        self.approvals = GatewayApprovals(app, self.settings.approvals_per_minute, self.audit)
        self.metrics = Metrics()
        self.limiter = Limiter(self.settings.requests_per_minute, self.settings.burst)
        """Counts each user's requests, over HTTP and WebSocket."""
        self.routers: list[APIRouter] = []
        """Routers for operators, besides the channels'; add them before the server is created."""
        self.open_routes: list[BaseRoute] = []
        """Routes of triggers, known while the gateway runs. They need no token: each has its own
        check."""
        self._users: Users | None = None
        self.admissions = Admissions()
        """What is open with each user's token."""
        self.ready = False
        """Whether all channels have started and messages are accepted."""
        self.leaving = asyncio.Event()
        """Set when the gateway should stop, or cannot continue."""
        self.error: HooklineError | None = None
        """Why it cannot continue."""
        self.channels: dict[str, GatewayChannel] = self._collect(enabled)
        self.answering = MessageProcessor(self, self.settings.debounce)
        self.cluster: Cluster | None = None
        """The queue to the workers, if the tapes are in PostgreSQL."""
        self.worker: Worker | None = None
        """The worker in this process, if any."""
        self.triggers: Triggers | None = None
        """Runs scheduled and event-driven turns, if any are configured."""
        self._slots = asyncio.Semaphore(self.settings.in_flight)
        self._open = asyncio.Event()
        self._stopping = False
        self._catching_up: asyncio.Task[None] | None = None
        self._attached = AsyncExitStack()

    @property
    def commands(self) -> ChannelCommands:
        """The slash commands of the gateway."""
        return self.answering.commands

    # --- users --------------------------------------------------------------------------------

    def users(self) -> Users:
        """Everyone who has a token."""
        if self._users is None:
            self._users = self.settings.users_of(self.app.home)
        return self._users

    def audit(self, record: dict[str, Any]) -> None:
        """Record a refused request in the log, and in the audit log if there is one."""
        refused_by(self.app, record)

    # --- channels -----------------------------------------------------------------------------

    def _collect(self, enabled: Sequence[str] | None) -> dict[str, GatewayChannel]:
        provided: dict[str, GatewayChannel] = {c.name: c for c in self.app.get_channels(self.handle)}
        found = self.app.plugins.gather("register_channels", channel_spec, lambda c: c.name, "channel")
        specs = {spec.name: spec for spec in found}
        tables = self.app.config.section("channels")
        wanted = enabled or self.settings.channels
        if wanted is None:
            off = self.app.plugins.disabled
            configured = [n for n, table in tables.items() if _is_enabled(table) and n not in off]
            default = [name for name, spec in specs.items() if spec.default]
            wanted = [*default, *configured, *provided]
        return {
            name: provided.get(name) or self._made(name, specs, provided)
            for name in dict.fromkeys(wanted)
        }

    def _made(
        self, name: str, specs: dict[str, ChannelSpec], provided: dict[str, GatewayChannel]
    ) -> GatewayChannel:
        if name not in specs:
            known = [*specs, *provided]
            raise ConfigError(
                f"unknown channel {name!r}{suggestion(name, known)}; there are {', '.join(known)}"
                f"{self.app.plugins.missing_note()}"
            )
        try:
            return specs[name].make(self)
        except ImportError as error:
            raise GatewayError(f"channel {name!r} needs a library that is missing: {error}") from None

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message, as its sender has it; `NOWHERE` if it has none."""
        channel = self.channels.get(address_of(message)[0])
        if channel is None:
            return NOWHERE
        reply_to = getattr(channel, "reply_to", None)  # a plugin's channel may have only `send`
        return reply_to(message) if reply_to is not None else WholeAnswers(channel)

    def is_debounced(self, message: Envelope) -> bool:
        """Whether a message may be merged with others that follow quickly."""
        return getattr(self.channels.get(address_of(message)[0]), "debounced", True)

    # --- the running scope ----------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Gateway]:
        """Run the app and its channels."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.app.running(Outgoing(self)))
            stack.push_async_callback(self.stop)
            await self.start()
            if has_triggers(self.app):
                await self._start_triggers(stack)
            yield self

    async def _start_triggers(self, stack: AsyncExitStack) -> None:
        """Start the triggers after the channels of their answers, and stop them before those."""
        self.app.plugins.check_loaded("triggers", "[triggers]")
        from hookline.ext.triggers import Triggers

        triggers = self.triggers = Triggers(self.app)
        stack.push_async_callback(triggers.stop, self.settings.drain)
        stack.callback(self.open_routes.clear)
        await triggers.start(self.cluster.process if self.cluster is not None else None)
        self.open_routes += triggers.routes()

    async def start(self) -> None:
        """Start the channels, then process messages. Unfinished messages come first."""
        app = self.app
        cut: list[tuple[str, CutOffTurn]] = []
        if postgres := postgres_of(app.store()):
            await self._join_cluster(postgres)
        else:
            await self.intake.open()
            self._attached.push_async_callback(self.intake.close)
            cut = await self._cut_off_turns()
        for name, channel in self.channels.items():
            try:
                await channel.start(self.handle)
            except Exception as error:
                raise GatewayError(f"channel {name!r} did not start: {told(error)}") from error
            await self._fire("channel:connect", ChannelConnectEvent(name))
        for session_id, turn in cut:
            await self._enter()
            self.answering.resume(session_id, turn)
        if self.intake.catching_up:
            resumed = {key_of(turn.envelope) for _, turn in cut}
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up(resumed))
        await self._fire("gateway:startup", GatewayStartupEvent([*self.channels]))
        self.ready = True
        self._open.set()

    async def _join_cluster(self, store: PostgresStore) -> None:
        """Accept messages for workers, and run a worker here unless the settings disable it."""
        try:
            from .clustered import Cluster
            from .worker import Worker
        except ImportError as error:
            raise GatewayError(
                f"a gateway with its tapes in PostgreSQL needs {error.name}: "
                "pip install 'hookline[gateway,postgres]'"
            ) from None
        self.cluster = Cluster(self, store)
        await self.cluster.open(self._attached)
        if self.settings.worker:
            made = worker_settings_of(self.app.config)
            self.worker = Worker(self.app, made, debounce=self.settings.debounce)
            await self._attached.enter_async_context(self.worker.running())

    async def drain(self) -> None:
        """Stop accepting messages, let running turns finish, and park those that take too long."""
        if not self._stopping:
            await self._fire("gateway:stop", GatewayStopEvent([*self.channels]))
        self._stopping, self.ready = True, False
        self._open.set()
        if self._catching_up is not None:
            self._catching_up.cancel()
        if self.worker is not None:
            await self.worker.drain()
        if self.cluster is not None:
            await self.cluster.drain(self.settings.drain)
        await self.answering.drain(self.settings.drain)

    async def stop(self) -> None:
        """Drain, then stop the channels."""
        await self.drain()
        for name, channel in self.channels.items():
            try:
                await channel.stop()
            except Exception as error:
                await self.failed(name, error)
            await self._fire("channel:disconnect", ChannelDisconnectEvent(name))
        await self._attached.aclose()

    def leave(self) -> None:
        """Ask the gateway's runner to stop it gracefully."""
        self.leaving.set()

    async def reload(self) -> str:
        """Reload the settings, the tokens and the hook files, and return a summary.

        Connections whose token is no longer valid are closed.
        """
        before = settings_of(self.app.config)
        self.app.config.reload()
        self.settings = self.settings.with_users_of(before, settings_of(self.app.config))
        self._users = self.settings.users_of(self.app.home)
        self.admissions.revoke(self._users)
        done = str(await self.app.hook_files.reload())
        self.commands.forget()
        return done

    # --- messages -----------------------------------------------------------------------------

    async def handle(self, envelope: Envelope) -> bool:
        """Accept a message, waiting while too many are in flight. Returns False if it was accepted
        before.
        """
        message = with_id(check_envelope(envelope))
        await self._open.wait()
        if self._stopping:
            raise GatewayStopping(GOING_DOWN)
        await self._enter()
        try:
            if self._stopping:
                raise GatewayStopping(GOING_DOWN)
            if self.cluster is not None:
                is_new = await self.cluster.accept(message)
                self.left(message)
                return is_new
            is_new = await self.intake.accept(message)
        except BaseException:
            self.left(message)
            raise
        if not is_new or self.intake.catching_up:
            self.left(message)
            return is_new
        self.answering.take(message, alone=not self.is_debounced(message))
        return True

    def session_of(self, message: Envelope) -> None:
        """Return nothing: the pipeline resolves the session."""

    async def _enter(self) -> None:
        """Wait until there is room for another message."""
        await self._slots.acquire()
        self.metrics.in_flight.inc()

    def left(self, message: Envelope) -> None:
        """Signal that there is room for another message."""
        self.metrics.in_flight.dec()
        self._slots.release()

    async def settled(self, message: Envelope, outcome: str, seconds: float) -> None:
        """Record the outcome of a message."""
        self.note(message, outcome, seconds)
        await self.intake.settle(message, outcome)

    def note(self, message: Envelope, outcome: str, seconds: float) -> None:
        """Count and log the outcome of a message."""
        name, chat_id = address_of(message)
        self.metrics.message(name, outcome, seconds)
        if log.isEnabledFor(logging.INFO):
            said = {"channel": name, "chat_id": chat_id, "outcome": outcome, "seconds": seconds}
            log.info("message.done channel=%s outcome=%s", name, outcome, extra={"fields": said})

    async def keeps(self, message: Envelope, error: Exception) -> bool:
        """Return False: a gateway that runs its own turns has no one to leave a message to."""
        return False

    async def deliver(self, outbound: Envelope) -> bool:
        """Pass an outbound envelope to its channel. Returns whether it was sent."""
        outbound = await to_session(self.app, outbound)
        channel = self.channels.get(address_of(outbound)[0])
        return channel is not None and await channel.send(outbound)

    async def notify(self, to: Envelope, note: Note) -> None:
        """Show a note in the chat of an address."""
        await finished(self.reply_to(to).notify(note))

    async def ask(self, to: Envelope, question: Question) -> str | None:
        """Ask in the chat of an address."""
        return await self.reply_to(to).ask(question)

    async def cancel(self, session_id: str, channel: str = "", chat_id: str = "") -> bool:
        """Stop a session's running turn. Returns whether there was one."""
        if self.cluster is not None:
            cancelled = await self.cluster.queue.cancel(session_id)
        else:
            cancelled = await self.app.cancel(session_id)
        if cancelled:
            await self._fire("message:cancel", MessageCancelEvent(channel, chat_id), session_id)
        return cancelled

    # --- cut-off turns ----------------------------------------------------------------------------

    async def _cut_off_turns(self) -> list[tuple[str, CutOffTurn]]:
        """The interrupted turns of these channels, latest first."""
        found: list[tuple[str, CutOffTurn]] = []
        since = time.time() - self.settings.resume * 3600
        store = self.app.store()
        # On tapes shared with other machines, a turn without an end may still be running there.
        looked_for = self.settings.resume and self.intake.is_with_the_tape
        for info in await self.app.sessions.list() if looked_for else ():
            if info.updated < since:
                break
            last = await store.entries(info.id, kinds={TURN}, limit=1, newest_first=True)
            if not last or last[0].payload["status"] != "started":
                continue
            cut = await cut_off_turn(await self.app.tape(info.id))
            if cut is None or not cut.envelope or address_of(cut.envelope)[0] not in self.channels:
                continue
            if not await self.intake.is_elsewhere(cut.envelope):
                found.append((info.id, cut))
        return found

    async def _catch_up(self, resumed: set[str]) -> None:
        """Finish every message that an earlier process accepted."""
        fates: dict[str, dict[str, Fate]] = {}
        async for waiting in self.intake.backlog():
            is_ours = address_of(waiting.envelope)[0] in self.channels
            if is_ours and key_of(waiting.envelope) not in resumed:
                session_id = await self.app.pipeline.resolve_session(waiting.envelope)
                if session_id not in fates:
                    fates[session_id] = await fates_of(self.app.store(), session_id, waiting.accepted)
                fate: Fate | None = fates[session_id].get(waiting.envelope["message_id"])
                await self._enter()
                await self.answering.take_up(waiting.envelope, session_id, fate)

    # --- events ---------------------------------------------------------------------------------

    async def failed(self, channel: str, error: Exception) -> None:
        """Report a failure; everything else continues."""
        log.error("message.failed channel=%s error=%s", channel, told(error))
        log.debug("message.failed", exc_info=error)
        self.metrics.failed(channel)
        await self._fire("gateway:error", GatewayErrorEvent(channel, error))

    async def _fire(self, name: str, event: Any, session_id: str = "") -> None:
        hook = self.app.hooks[name]
        if hook.live:
            await hook.fire(event, self.app.context(session_id))


def _is_enabled(table: Any) -> bool:
    """Whether a table `[channels.<name>]` enables its channel."""
    return isinstance(table, dict) and cast("dict[str, Any]", table).get("enabled", True) is not False

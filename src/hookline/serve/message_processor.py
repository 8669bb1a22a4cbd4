"""`MessageProcessor`: passes accepted messages through the app, each to exactly one outcome.

A gateway processes the messages it accepts; in a cluster, workers do. Both use this class.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from hookline.agent.journal import CutOffTurn, cut_off_turn
from hookline.errors import TapeCorrupt, TapeDenied, TapeUnavailable
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.runtime.inbox import key_of, keys_of
from hookline.runtime.turn import TurnResult
from hookline.runtime.user_commands import configured_models, written
from hookline.system.log_redaction import without_secrets
from hookline.types import Envelope, address_of, content_of, field_of

from .chat_locks import ChatLocks
from .commands import ChannelCommands
from .debounce import Debounce
from .message_channel import MessageChannel, Post
from .outcomes import outcome_of

if TYPE_CHECKING:
    from hookline.runtime.inbox import Fate

TRIGGER = "trigger:"
"""The prefix of the channel of a trigger's messages."""
TOGETHER = "taken together with the next message"
"""Why a message has no answer of its own."""
OUT_OF_ORDER = "messages cannot be kept at the moment; try again later"
"""What users see when a store fails."""
STORE = (TapeUnavailable, TapeDenied, TapeCorrupt)
"""Errors of the store, whose texts contain its address."""
SETTLING = 5.0
"""Seconds for parked turns to record where they stopped."""


class MessageHost(Post, Protocol):
    """The owner of the messages: a gateway or a worker."""

    kept: str
    """What the sender sees if the message is answered later, elsewhere."""

    def session_of(self, message: Envelope) -> str | None:
        """The session of a message, if it is already known."""
        ...

    def left(self, message: Envelope) -> None:
        """Stop working on a message without an outcome."""
        ...

    async def settled(self, message: Envelope, outcome: str, seconds: float) -> None:
        """Record the outcome of a message."""
        ...

    async def keeps(self, message: Envelope, error: Exception) -> bool:
        """Whether a message is retried after an error that it did not cause."""
        ...

    async def cancel(self, session_id: str, channel: str = "", chat_id: str = "") -> bool:
        """Stop a session's running turn. Returns whether there was one."""
        ...


class MessageProcessor:
    """Passes the messages of a host through its app."""

    def __init__(self, host: MessageHost, debounce: float) -> None:
        self._host = host
        self._app = host.app
        self._app.sessions.models = partial(configured_models, host.app)
        self.commands = ChannelCommands(host)
        """The slash commands."""
        self._tasks: dict[asyncio.Task[None], Envelope] = {}
        self._locks = ChatLocks()
        self._debounced = debounce > 0
        self._debounce = Debounce(debounce, self._spawn, self._joined)
        self._parking = False

    async def drain(self, seconds: float) -> None:
        """Let running turns finish, and park those that take longer than `seconds`."""
        self._debounce.flush()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=seconds)
        self._parking = True  # from now on nothing new starts
        if self._tasks:
            await self._park()

    async def _park(self) -> None:
        """Stop everything that runs or waits so that it continues later."""
        await self._stop([*self._tasks], [*self._app.sessions.runs])
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=SETTLING)
        for task in self._tasks:
            task.cancel()

    async def park(self, session_id: str) -> None:
        """Stop all other work on a session so that it continues later."""
        others = {
            task
            for task, message in self._tasks.items()
            if task is not asyncio.current_task() and self._host.session_of(message) == session_id
        }
        await self._stop(others, [session_id])
        if others:
            await asyncio.wait(others, timeout=SETTLING)

    async def _stop(self, tasks: Iterable[asyncio.Task[None]], sessions: list[str]) -> None:
        """Cancel what only waits, and park what runs."""
        running = {field_of(run.envelope, "message_id") for run in self._app.sessions.runs.values()}
        for task in tasks:
            if field_of(self._tasks[task], "message_id") not in running:
                task.cancel()
        for session_id in sessions:
            if "/" not in session_id:  # a subagent stops with its parent
                await self._app.park(session_id)

    # --- messages -----------------------------------------------------------------------------

    def take(self, message: Envelope, *, alone: bool = False) -> None:
        """Answer a message, merged with those that follow quickly unless it is `alone`."""
        if alone or not self._debounced:
            self._spawn(message)
        elif written(content_of(message)):
            self._debounce.pass_by(message)
        else:
            self._debounce.add(message)

    async def take_up(self, message: Envelope, session_id: str, fate: Fate | None) -> None:
        """Run a message's turn, continue it, or only record its end, depending on the tape."""
        if fate is None:
            self._run(self._process(message), message)
        elif fate == "started" and (cut := await self._cut_off(session_id, message)):
            if key_of(message) == key_of(cut.envelope):
                self._run(self._resume(session_id, cut), message)
            else:  # it is settled with the message it was merged into
                self._host.left(message)
        else:
            known = (
                "cancelled" if fate == "started" else fate
            )  # someone moved the session to another branch
            try:
                await self._host.settled(message, outcome_of(known), 0.0)
            finally:
                self._host.left(message)

    def resume(self, session_id: str, cut: CutOffTurn) -> None:
        """Continue an interrupted turn, and answer where its message came from."""
        self._run(self._resume(session_id, cut), cut.envelope)

    def _spawn(self, message: Envelope) -> None:
        self._run(self._process(message), message)

    def _joined(self, message: Envelope) -> None:
        """Settle a message that was merged into the following one, when that one is settled."""
        result = TurnResult("", outcome="steered", stopped=TOGETHER)
        self._run(MessageChannel(self._host, message).end(result), message)

    def _run(self, work: Any, message: Envelope) -> None:
        if self._parking:  # it came too late; the next owner takes it
            work.close()
            self._host.left(message)
            return
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = message

        def over(task: asyncio.Task[None]) -> None:
            del self._tasks[task]
            self._host.left(message)

        task.add_done_callback(over)

    async def _process(self, message: Envelope) -> None:
        """Process one message to exactly one outcome, whatever happens."""
        channel, began = MessageChannel(self._host, message), time.monotonic()
        is_trigger = address_of(message)[0].startswith(TRIGGER)  # a trigger's event gives no commands
        outcome = "failed"
        try:
            async with self._locks.enter(message) as leave:
                result = await self._app.process(
                    message,
                    channel,
                    session_id=self._host.session_of(message),
                    command=None if is_trigger else self.commands.run,
                    on_placed=leave,
                )
            outcome = result.outcome
        except Exception as error:
            await self._host.failed(address_of(message)[0], error)
            if await self._host.keeps(message, error):
                return
            await channel.fail(told_sender(error))
        except asyncio.CancelledError:
            await channel.fail(self._host.kept)
        await self._settle(message, outcome, began)

    async def _cut_off(self, session_id: str, message: Envelope) -> CutOffTurn | None:
        """The unfinished turn of a message, or of the message it was merged into."""
        cut = await cut_off_turn(await self._app.tape(session_id))
        return cut if cut is not None and key_of(message) in keys_of(cut.envelope or {}) else None

    async def _resume(self, session_id: str, cut: CutOffTurn) -> None:
        message: Envelope = cut.envelope
        channel, began = MessageChannel(self._host, message), time.monotonic()
        outcome = "failed"
        try:
            result = await self._app.resume(session_id, channel)
            outcome = result.outcome if result else "handled"
        except Exception as error:
            await self._host.failed(address_of(message)[0], error)
            if await self._host.keeps(message, error):
                return
            await channel.fail(told_sender(error))
        await self._settle(message, outcome, began)

    async def _settle(self, message: Envelope, outcome: str, began: float) -> None:
        if not self._parking:  # the tape knows what is parked, and the next owner reads it
            await self._host.settled(message, outcome, time.monotonic() - began)


def told_sender(error: Exception) -> str:
    """An error as the sender sees it. The store's address and details are for the log."""
    return OUT_OF_ORDER if isinstance(error, STORE) else told(error)


def told(error: Exception) -> str:
    """The text of an error, without secrets."""
    return without_secrets(str(error) if isinstance(error, HooklineError) else error_text(error))

"""Answering: accepted messages go through the app, and each comes to exactly one outcome.

A gateway answers what it accepts; in a cluster, workers do. Both answer the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from hookline.agent.journal import CutOffTurn, cut_off_turn
from hookline.errors import TapeCorrupt, TapeDenied, TapeFull, TapeLocked, TapeReadOnly, TapeUnavailable
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.runtime.inbox import key_of, keys_of
from hookline.runtime.turn import TurnResult
from hookline.runtime.user_commands import configured_models, written
from hookline.system.log_redaction import without_secrets
from hookline.types import Envelope, address_of, content_of, field_of

from .chat_locks import Entrances
from .commands import ChannelCommands
from .debounce import Debounce
from .message_channel import MessageChannel, Post
from .outcomes import outcome_of

if TYPE_CHECKING:
    from hookline.runtime.inbox import Fate

TRIGGER = "trigger:"
"""How the channel of a trigger's messages begins."""
TOGETHER = "taken together with the next message"
"""Why a message has no answer of its own."""
OUT_OF_ORDER = "messages cannot be kept at the moment; try again later"
"""What people are told of a store that fails."""
STORE = (TapeUnavailable, TapeReadOnly, TapeFull, TapeLocked, TapeDenied, TapeCorrupt)
"""Errors that are the store's, and say where it is."""
SETTLING = 5.0
"""Seconds that parked turns get to write down where they stopped."""


class House(Post, Protocol):
    """Whoever answers messages: a gateway, or a worker."""

    kept: str
    """What the sender of a message is told that is answered later, elsewhere."""

    def session_of(self, message: Envelope) -> str | None:
        """The session of a message, where that is known already."""
        ...

    def left(self, message: Envelope) -> None:
        """Nothing more is done on behalf of a message."""
        ...

    async def settled(self, message: Envelope, outcome: str, seconds: float) -> None:
        """A message came to its outcome."""
        ...

    async def keeps(self, message: Envelope, error: Exception) -> bool:
        """Whether a message is taken up again after an error, which was not its own."""
        ...

    async def cancel(self, session_id: str, channel: str = "", chat_id: str = "") -> bool:
        """Stop a session's running turn; whether there was one."""
        ...


class Answering:
    """Takes messages through the app of a house."""

    def __init__(self, house: House, debounce: float) -> None:
        self._house = house
        self._app = house.app
        self._app.sessions.models = partial(configured_models, house.app)
        self.commands = ChannelCommands(house)
        """What may be asked with a slash."""
        self._tasks: dict[asyncio.Task[None], Envelope] = {}
        self._entrances = Entrances()
        self._debounced = debounce > 0
        self._debounce = Debounce(debounce, self._spawn, self._joined)
        self._parking = False

    async def drain(self, seconds: float) -> None:
        """Let what runs finish, and park what takes longer than some seconds."""
        self._debounce.flush()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=seconds)
        self._parking = True  # from now on nothing is begun
        if self._tasks:
            await self._park()

    async def _park(self) -> None:
        """Stop what still runs so that it goes on later, and so does what only waits."""
        await self._stop([*self._tasks], [*self._app.runs])
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=SETTLING)
        for task in self._tasks:
            task.cancel()

    async def park(self, session_id: str) -> None:
        """Stop whatever else is done for a session, so that it goes on later."""
        others = {
            task
            for task, message in self._tasks.items()
            if task is not asyncio.current_task() and self._house.session_of(message) == session_id
        }
        await self._stop(others, [session_id])
        if others:
            await asyncio.wait(others, timeout=SETTLING)

    async def _stop(self, tasks: Iterable[asyncio.Task[None]], sessions: list[str]) -> None:
        """Cancel what only waits, and park what runs."""
        running = {field_of(run.envelope, "message_id") for run in self._app.runs.values()}
        for task in tasks:
            if field_of(self._tasks[task], "message_id") not in running:
                task.cancel()
        for session_id in sessions:
            if "/" not in session_id:  # a subagent stops with its parent
                await self._app.park(session_id)

    # --- messages -----------------------------------------------------------------------------

    def take(self, message: Envelope, *, alone: bool = False) -> None:
        """Answer a message, together with those that follow quickly unless it stands `alone`."""
        if alone or not self._debounced:
            self._spawn(message)
        elif written(content_of(message)):
            self._debounce.pass_by(message)
        else:
            self._debounce.add(message)

    async def take_up(self, message: Envelope, session_id: str, fate: Fate | None) -> None:
        """Make a message's turn, continue it, or only note that it is over: as the tape says."""
        if fate is None:
            self._run(self._process(message), message)
        elif fate == "started" and (cut := await self._cut_off(session_id, message)):
            if key_of(message) == key_of(cut.envelope):
                self._run(self._resume(session_id, cut), message)
            else:  # it is done with when the message is that it became part of
                self._house.left(message)
        else:
            known = "cancelled" if fate == "started" else fate  # somebody left it for another branch
            try:
                await self._house.settled(message, outcome_of(known), 0.0)
            finally:
                self._house.left(message)

    def resume(self, session_id: str, cut: CutOffTurn) -> None:
        """Continue a turn that was cut off, and answer where its message came from."""
        self._run(self._resume(session_id, cut), cut.envelope)

    def _spawn(self, message: Envelope) -> None:
        self._run(self._process(message), message)

    def _joined(self, message: Envelope) -> None:
        """A message became part of the one that followed it, and is done with when that one is."""
        result = TurnResult("", outcome="steered", stopped=TOGETHER)
        self._run(MessageChannel(self._house, message).end(result), message)

    def _run(self, work: Any, message: Envelope) -> None:
        if self._parking:  # it came too late, and is taken up by whoever goes on
            work.close()
            self._house.left(message)
            return
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = message

        def over(task: asyncio.Task[None]) -> None:
            del self._tasks[task]
            self._house.left(message)

        task.add_done_callback(over)

    async def _process(self, message: Envelope) -> None:
        """One message to its end: exactly one outcome, whatever happens."""
        channel, began = MessageChannel(self._house, message), time.monotonic()
        is_trigger = address_of(message)[0].startswith(TRIGGER)  # an event gives no commands
        outcome = "failed"
        try:
            async with self._entrances.enter(message) as leave:
                result = await self._app.process(
                    message,
                    channel,
                    session_id=self._house.session_of(message),
                    command=None if is_trigger else self.commands.run,
                    on_placed=leave,
                )
            outcome = result.outcome
        except Exception as error:
            await self._house.failed(address_of(message)[0], error)
            if await self._house.keeps(message, error):
                return
            await channel.fail(told_sender(error))
        except asyncio.CancelledError:
            await channel.fail(self._house.kept)
        await self._settle(message, outcome, began)

    async def _cut_off(self, session_id: str, message: Envelope) -> CutOffTurn | None:
        """The turn of a message, or of those that it became part of, where that has no end."""
        cut = await cut_off_turn(await self._app.tape(session_id))
        return cut if cut is not None and key_of(message) in keys_of(cut.envelope or {}) else None

    async def _resume(self, session_id: str, cut: CutOffTurn) -> None:
        message: Envelope = cut.envelope
        channel, began = MessageChannel(self._house, message), time.monotonic()
        outcome = "failed"
        try:
            result = await self._app.resume(session_id, channel)
            outcome = result.outcome if result else "handled"
        except Exception as error:
            await self._house.failed(address_of(message)[0], error)
            if await self._house.keeps(message, error):
                return
            await channel.fail(told_sender(error))
        await self._settle(message, outcome, began)

    async def _settle(self, message: Envelope, outcome: str, began: float) -> None:
        if not self._parking:  # the tape knows what is parked, and whoever goes on asks it
            await self._house.settled(message, outcome, time.monotonic() - began)


def told_sender(error: Exception) -> str:
    """An error as a sender is told it: where the store is, and what ails it, is for the log."""
    return OUT_OF_ORDER if isinstance(error, STORE) else told(error)


def told(error: Exception) -> str:
    """The message of an error, without secrets."""
    return without_secrets(str(error) if isinstance(error, HooklineError) else error_text(error))

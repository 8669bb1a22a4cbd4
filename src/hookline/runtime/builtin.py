"""The builtin plugin: the default stages of a turn, on the same hooks as every other plugin.

It renders nothing. If no plugin renders, the pipeline itself returns the answer to the message's
channel, so a plugin that renders replaces the answer instead of adding to it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import TYPE_CHECKING

from hookline.hooks import hookimpl
from hookline.system.recent import Recent
from hookline.tape.entry import STATE
from hookline.types import AsyncStreamEvents, Envelope, Prompt, State, TextPart, address_of, field_of

if TYPE_CHECKING:
    from hookline.tape import TapeContext, TapeStore

    from .app import Hookline

log = logging.getLogger("hookline")

REMEMBERED = ("file_stamps", "todo")
"""What the builtin tools keep in a session's state."""

SYSTEM_PROMPT = (
    "You are a helpful assistant working in the user's workspace. Answer briefly and plainly. "
    "Use the tools you are given when they help, and say so when something cannot be done."
)


class BuiltinPlugin:
    """The default behaviour, used when no other plugin answers."""

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self._kept: Recent[str, State] = Recent()
        """What tools remember of a session, as it is on the tape."""

    @hookimpl
    def resolve_session(self, message: Envelope) -> str | None:
        """The session that the message names, or the one of its channel and chat."""
        named = field_of(message, "session_id")
        if named:
            return str(named)
        return ":".join(address_of(message))

    @hookimpl
    async def load_state(self, message: Envelope, session_id: str) -> State:
        """The initial state of a turn, with what tools saved in the session."""
        if session_id not in self._kept:
            last = await (await self.app.tape(session_id)).last(STATE)
            self._kept[session_id] = dict(last.payload) if last else {}
        kept = deepcopy(self._kept[session_id])
        return {"session_id": session_id, "workspace": str(self.app.workspace), **kept}

    @hookimpl
    def build_prompt(self, message: Envelope) -> Prompt:
        """The message's text and attachments."""
        from .attachments import prompt_of

        said = prompt_of(message)
        carried = [p for p in field_of(message, "parts") or () if not isinstance(p, TextPart)]
        if not carried:
            return said
        return [*([TextPart(said)] if isinstance(said, str) else said), *carried]

    @hookimpl
    def system_prompt(self) -> str:
        """Who the agent is."""
        return SYSTEM_PROMPT

    @hookimpl
    async def run_model_stream(
        self, prompt: Prompt, session_id: str, state: State
    ) -> AsyncStreamEvents:
        """Run the agent in the turn that holds the session."""
        return await self.app.pipeline.start_run(prompt, session_id, state)

    @hookimpl
    async def save_state(self, session_id: str, state: State) -> None:
        """Save the tools' state if it changed; the rest of the turn is on the tape already."""
        kept = {name: state[name] for name in REMEMBERED if name in state}
        run = self.app.sessions.run(session_id)
        if run is not None and kept != self._kept.get(session_id, {}):
            await run.tape.append(STATE, kept)
            self._kept[session_id] = deepcopy(kept)

    @hookimpl
    async def dispatch_outbound(self, message: Envelope) -> bool:
        """Pass the envelope to the channel of the current message."""
        return bool(await self.app.channels.current().send(message))

    @hookimpl
    def on_error(self, stage: str, error: Exception) -> None:
        """Log it; the door tells the person."""
        log.debug("turn.failed stage=%s", stage, exc_info=error)

    @hookimpl
    async def provide_tape_store(self) -> AsyncIterator[TapeStore]:
        """The store that `[tape]` names, or one SQLite file in the home, open for the scope."""
        from hookline.tape.open import open_store

        settings = None
        if self.app.config.section("tape"):
            from hookline.tape.settings import TapeSettings

            settings = self.app.config.settings("tape", TapeSettings)
        store = await open_store(self.app.home, settings)
        try:
            yield store
        finally:
            await store.close()

    @hookimpl
    def build_tape_context(self) -> TapeContext:
        """The default: everything since the last anchor."""
        from hookline.tape import TapeContext

        return TapeContext()

"""The channels of an app: the one of the current message, and what is shown on it from anywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from hookline.channel import Channel, Note, Question, Router, started
from hookline.turn_context import here
from hookline.types import Envelope, HookContext, StreamEvent

if TYPE_CHECKING:
    import asyncio

    from .app import Hookline


class AppChannels:
    """Finds the channel that something belongs to, and reaches it from any thread."""

    def __init__(self, app: Hookline, loop: Callable[[], asyncio.AbstractEventLoop | None]) -> None:
        self._app = app
        self._loop = loop

    def current(self) -> Channel:
        """Return the channel of the current message, or the app's own outside of messages."""
        place = here()
        return self._app.channel if place is None or place.channel is None else place.channel

    def of(self, message: Envelope) -> Channel:
        """Return the channel of a message that came without one."""
        own = self._app.channel
        return own.to(message) if isinstance(own, Router) else own

    def notify(self, channel: Channel, note: Note) -> None:
        """Show a note on a channel, from any thread."""
        self._on_loop(partial(channel.notify, note))

    async def ask(self, ctx: HookContext, question: Question) -> str | None:
        """Ask the person at a channel; the question is stored until it is answered."""
        from hookline.policy.approval_flow import Approving, ask

        return await ask(Approving(self._app.approvals), self._app.hooks, ctx, question)

    def show_progress(self, step: str, done: int, total: int) -> None:
        """Show on the current channel how far a step is, such as a download."""
        channel = self.current()
        if channel.streams:
            data = {"step": step, "done": done, "total": total}
            self._on_loop(partial(channel.stream, StreamEvent("progress", data)))

    def _on_loop(self, show: Callable[[], Any]) -> None:
        """Call a method of a channel in the event loop of the running scope."""
        from asyncio import get_running_loop

        loop = self._loop()
        try:
            is_here = loop is None or get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here or loop is None:
            started(show)
        else:
            loop.call_soon_threadsafe(started, show)

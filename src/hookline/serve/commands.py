"""Slash commands of channels: a message `/name …` is executed and answered without a turn."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from hookline.errors import UnknownSession
from hookline.hooks import HooklineError
from hookline.runtime import user_commands as slash
from hookline.runtime.user_commands import (
    SlashCommand,
    configured_models,
    plugin_commands,
    session_commands,
    written,
)
from hookline.runtime.user_tools import arguments_of, call_tool
from hookline.types import Envelope, HookContext, Identity, address_of, content_of, field_of

from .frames import plain_text
from .users import Role

if TYPE_CHECKING:
    from .message_processor import MessageHost

log = logging.getLogger("hookline.serve")

NEW = "new"
"""The name of the anchor that `/new` sets."""


def role_of(message: Envelope) -> Role:
    """The role of a message's sender; a channel that assigns no roles has users."""
    return "operator" if field_of(message, "role") == "operator" else "user"


class ChannelCommands:
    """All commands of channels: built-in ones, those of plugins, and tools."""

    def __init__(self, host: MessageHost) -> None:
        self._host = host
        self._brought: dict[str, SlashCommand] | None = None

    def forget(self) -> None:
        """Reload the plugins' commands on next use: some may have changed."""
        self._brought = None

    def names(self, role: Role) -> list[tuple[str, str]]:
        """The commands available to a role, with a line of help each."""
        allowed = self._allowed(self._known("", {}), role)
        return slash.names(self._host.app, allowed, tools=role == "operator")

    @staticmethod
    def _allowed(known: dict[str, SlashCommand], role: Role) -> dict[str, SlashCommand]:
        return {n: c for n, c in known.items() if role == "operator" or not c.operator}

    async def run(self, session_id: str, message: Envelope) -> str | None:
        """Execute a message that is a command and return the reply to its sender."""
        command = written(content_of(message))
        if command is None:
            return None
        app = self._host.app

        async def call(name: str, arguments: str) -> str:
            given = arguments_of(app.tools.get(name), arguments)
            outcome = await call_tool(app, session_id, name, given, identity=Identity.of(message))
            return plain_text(outcome.content) or "(nothing)"

        try:
            known, role = self._known(session_id, message), role_of(message)
            allowed = self._allowed(known, role)
            is_there = command[0] in known or command[0] in app.tools
            if role != "operator" and is_there and command[0] not in allowed:
                return f"only an operator may give /{command[0]}; see role in [gateway.users]"
            await app.sessions.open(session_id)
            ctx = app.context(session_id, Identity.of(message))
            return await slash.run(ctx, allowed, *command, call)
        except HooklineError as error:  # unknown, mistyped or not possible now: the reply says so
            return str(error)

    def _known(self, session_id: str, message: Envelope) -> dict[str, SlashCommand]:
        if self._brought is None:
            self._brought, wrong = plugin_commands(self._host.app)
            for line in wrong:
                log.error("%s", line)
        models = partial(configured_models, self._host.app)
        own = [*self._own(session_id, message), *session_commands(models)]
        return {command.name: command for command in own} | self._brought

    def _own(self, session_id: str, message: Envelope) -> list[SlashCommand]:
        async def help_(ctx: HookContext, arguments: str) -> str:
            return "\n".join(f"/{name}: {text}" for name, text in self.names(role_of(message)))

        async def new(ctx: HookContext, arguments: str) -> str:
            try:
                await ctx.app.sessions.handoff(session_id, NEW)
            except UnknownSession:
                return "this session is new"
            return "a new beginning: what was said before is on record, and out of the agent's sight"

        async def cancel(ctx: HookContext, arguments: str) -> str:
            stopped = await self._host.cancel(session_id, *address_of(message))
            return "stopped" if stopped else "nothing is running"

        return [
            SlashCommand("help", "Show the commands.", help_, False),
            SlashCommand("new", "Begin anew in this session.", new, False),
            SlashCommand("cancel", "Stop the running turn.", cancel, False),
        ]

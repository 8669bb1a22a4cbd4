"""The slash commands of a chat: its own, those of plugins, and the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.runtime import user_commands as slash
from hookline.runtime.user_commands import plugin_commands, session_commands
from hookline.text.printable import printable

if TYPE_CHECKING:
    from .session import Chat


class ChatCommands:
    """Every command of a chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.gather()

    def gather(self) -> None:
        """Gather them, again where plugins may have changed."""
        from .builtin import builtin_commands
        from .sessions import branch_commands

        chat = self._chat
        brought, wrong = plugin_commands(chat.app)
        self.wrong = [printable(line) for line in wrong]
        shared = session_commands()
        own = [*builtin_commands(chat, self), *branch_commands(chat), *shared]
        self.known = {command.name: command for command in own} | brought

    def names(self) -> list[tuple[str, str]]:
        """Everything that may follow a slash, with a line of help."""
        return slash.names(self._chat.app, self.known)

    async def run(self, name: str, arguments: str) -> None:
        """Run a command or a tool and show its result."""
        chat = self._chat
        ctx = chat.app.context(chat.session_id, channel=chat)
        shown = await slash.run(ctx, self.known, name, arguments, chat.call_tool)
        if shown:
            chat.view.say(shown)

"""The slash commands that come with the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.runtime.user_commands import SlashCommand
from hookline.runtime.user_tools import usage
from hookline.text.printable import printable

from .view import one_line

if TYPE_CHECKING:
    from hookline.types import HookContext

    from .commands import ChatCommands
    from .session import Chat


def builtin_commands(chat: Chat, commands: ChatCommands) -> list[SlashCommand]:
    """Commands about the chat itself."""
    app = chat.app

    def help_(ctx: HookContext, arguments: str) -> str:
        width = max(len(name) for name, _ in commands.names()) + 2
        lines = [f"/{name:<{width}}{one_line(text, 60)}" for name, text in commands.names()]
        return "\n".join([*lines, "", KEYS])

    def tools(ctx: HookContext, arguments: str) -> str:
        told = [f"{usage(tool)}\n    {first_line(tool.description)}" for tool in app.tools]
        return "\n".join(told) or "there are no tools"

    def hooks(ctx: HookContext, arguments: str) -> None:
        from ..hooks import show_hooks

        show_hooks(app.hooks, arguments.strip() or None)

    def show(ctx: HookContext, arguments: str) -> str:
        last = chat.view.last_result()
        return "no tool has been called yet" if last is None else printable(last) or "(nothing)"

    async def session(ctx: HookContext, arguments: str) -> str:
        messages = await app.store().entries(chat.session_id, kinds=["message"])
        counted = [f"{len(messages)} messages", f"{chat.tokens:,} tokens", *chat.costs()]
        return f"session {chat.session_id}: {', '.join(counted)}"

    async def reload(ctx: HookContext, arguments: str) -> str:
        done = str(await app.hook_files.reload())
        commands.gather()
        return "\n".join([done, *commands.wrong])

    def clear(ctx: HookContext, arguments: str) -> None:
        chat.view.clear()

    def exit_(ctx: HookContext, arguments: str) -> None:
        chat.leaving = True

    return [
        SlashCommand("help", "Show the commands and keys.", help_),
        SlashCommand("tools", "Show the tools with their arguments.", tools),
        SlashCommand("hooks", "Show every hook, or one in detail: /hooks NAME.", hooks),
        SlashCommand("show", "Show the last tool result whole.", show),
        SlashCommand("session", "Show the session, its tokens and cost.", session),
        SlashCommand("reload", "Read the hook files and skills again; the conversation stays.", reload),
        SlashCommand("clear", "Wipe the screen; the conversation stays.", clear),
        SlashCommand("exit", "Leave.", exit_),
    ]


KEYS = """Enter sends; Alt-Enter, or a backslash before Enter, makes a new line.
Tab completes commands and, after an @, files of the workspace; @path sends the file along.
!command runs it in your shell and tells the agent; !!command keeps it from the agent.
Ctrl-C stops an answer or wipes the line; on an empty line it leaves, as Ctrl-D does."""


def first_line(text: str) -> str:
    """The first line of a description."""
    return text.splitlines()[0] if text else ""

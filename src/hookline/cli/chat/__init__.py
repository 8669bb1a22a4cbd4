"""`hookline chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Latest, Model, Workspace, configure

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline chat`."""

    @cli.command()
    def chat(
        model: Model = None,
        workspace: Workspace = None,
        session_id: Annotated[
            str | None, typer.Option("--session", help="The session; by default this folder's own.")
        ] = None,
        latest: Latest = False,
    ) -> None:
        """Talk to the agent in the terminal."""
        configure(app, model, workspace, ask=True)
        start(app, session_id, latest=latest)


def start(app: Hookline, session_id: str | None = None, *, latest: bool = False) -> None:
    """Chat until the person leaves; on a pipe or a dumb terminal, in plain lines."""
    from hookline.errors import BadInput

    from .. import INTERRUPTED, TERMINATED

    if session_id is not None and not session_id.strip():
        raise BadInput("--session needs the name of a session")
    if latest and session_id is not None:
        raise BadInput("--session and --continue each choose the session: give one of them")
    app.models.get(app.model)  # report an unknown one before anything is typed
    app.policy  # noqa: B018  # so is a policy that cannot be used
    try:
        asyncio.run(talk(app, session_id, latest=latest))
    except asyncio.CancelledError:
        raise typer.Exit(TERMINATED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


async def talk(app: Hookline, session_id: str | None, *, latest: bool = False) -> None:
    """The chat, for a terminal or for plain pipes."""
    from ..terminal import diverted, guarded
    from .session import Chat

    end_when_asked()
    if is_plain():
        from .plain import LineReader, Plain

        with guarded():
            plain = Plain()
            with diverted(plain.printed):
                await Chat(app, session_id, plain, latest=latest).run(LineReader())
        return
    from ..console import console
    from .completion import ChatCompleter
    from .history import ChatHistory
    from .keys import Keyboard, private, unechoed
    from .screen import Screen

    no_color = bool(os.environ.get("NO_COLOR"))
    screen = Screen(console(color_system=None if no_color else "auto"))
    chat = Chat(app, session_id, screen, latest=latest)
    completer = ChatCompleter(chat.commands.names, lambda: app.workspace, chat.choices)
    redactor = app.safeguards.redactor
    redact = redactor.text if redactor is not None else None
    history = ChatHistory(private(app.home / "chat_history"), redact)
    keyboard = Keyboard(screen, history, completer, chat.status)
    screen.note("/help shows the commands, Ctrl-D leaves")
    with guarded(), diverted(screen.printed):
        await chat.run(keyboard, unechoed)


def is_plain() -> bool:
    """Whether escape codes would do harm or would not be seen."""
    return os.environ.get("TERM", "") in ("dumb", "unknown", "") or not (
        sys.stdin.isatty() and sys.stdout.isatty()
    )


def end_when_asked() -> None:
    """Let SIGTERM, and a terminal that was closed, end the chat in good order."""
    task = asyncio.current_task()
    if task is not None and sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)

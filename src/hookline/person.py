"""What a person does beside talking: calls a tool, runs a shell command; through every gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hookline.catalog.events.misc import UserBashEvent

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.tape import Tape
    from hookline.tools.runner import ToolOutcome

SHELL = "shell"


async def call_tool(
    app: Hookline,
    session_id: str,
    name: str,
    arguments: Mapping[str, Any],
    *,
    source: str = "command",
    channel: str = "",
) -> ToolOutcome:
    """Call a tool for a person; the call and its result are on the session's tape.

    By default a policy asks nothing of one who types at this machine's `terminal`.
    """
    from hookline.agent.journal import TapeJournal
    from hookline.tools.runner import Caller, Requested

    await app.sessions.open(session_id)
    async with writing(app, session_id) as tape:
        caller = Caller(
            app.context(session_id),
            TapeJournal(tape),
            app.workspace,
            {"message": {"channel": channel}},
            timeout=app.limits.tool_seconds,
            source=source,
        )
        call = Requested(f"{source}_{uuid4().hex[:12]}", name, arguments)
        return await app.runner.run(call, caller)


async def run_shell(
    app: Hookline,
    session_id: str,
    command: str,
    *,
    exclude_from_context: bool = False,
    channel: str = "",
) -> ToolOutcome:
    """Run a person's shell command; the agent learns of it, unless it is kept out of the context."""
    await app.sessions.open(session_id)
    hook = app.hooks["user_bash"]
    if hook.live:
        event = UserBashEvent(command, exclude_from_context, str(app.workspace))
        await hook.fire(event, app.context(session_id))
    given = {"command": command}
    outcome = await call_tool(app, session_id, SHELL, given, source="shell", channel=channel)
    if not exclude_from_context:
        said = f"I ran `{command}` myself:\n\n{outcome.content}"
        async with writing(app, session_id) as tape:
            message = {"role": "user", "content": said}
            await tape.append("message", {"message": message}, meta={"user_bash": command})
    return outcome


@asynccontextmanager
async def writing(app: Hookline, session_id: str) -> AsyncGenerator[Tape]:
    """A session's tape to write on: that of the running turn, or an idle session's own."""
    run = app.runs.get(session_id)
    if run is not None:
        yield run.tape
        return
    async with app.lanes.of(session_id).turn():
        yield await app.tape(session_id)

"""A person's own tool calls and shell commands, which pass every gate."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hookline.errors import BadInput, Blocked
from hookline.events import UserBashEvent
from hookline.hooks import Verdict
from hookline.tools.arguments import parse
from hookline.types import NOBODY, Content, Identity, ToolCall

from .confinement import OUTSIDE
from .turn import ActiveTurn

if TYPE_CHECKING:
    from hookline.tape import Tape
    from hookline.tools.runner import ToolOutcome
    from hookline.tools.tool import Tool

    from .app import Hookline

SHELL = "shell"
PAIR = re.compile(r"(\w+)=(.*)", re.DOTALL)


async def call_tool(
    app: Hookline,
    session_id: str,
    name: str,
    arguments: Mapping[str, Any],
    *,
    source: str = "command",
    identity: Identity = NOBODY,
) -> ToolOutcome:
    """Call a tool for a user; the call and its result are on the session's tape.

    The default policy does not ask a user who types at this machine's `terminal`.
    """
    from hookline.agent.journal import TapeJournal
    from hookline.tools.arguments import ArgumentLimits
    from hookline.tools.runner import Requested, ToolCaller

    await app.sessions.open(session_id)
    limits = app.limits
    async with writing(app, session_id, identity) as tape:
        caller = ToolCaller(
            app.context(session_id, identity),
            TapeJournal(tape, identity, source, dict(arguments)),
            app.workspace,
            timeout=limits.tool_seconds,
            source=source,
            identity=identity,
            limits=ArgumentLimits(limits.argument_size, limits.argument_depth),
        )
        call = Requested(f"{source}_{uuid4().hex[:12]}", name, arguments)
        return await app.runner.run(call, caller)


async def run_shell(
    app: Hookline,
    session_id: str,
    command: str,
    *,
    exclude_from_context: bool = False,
    identity: Identity = NOBODY,
) -> ToolOutcome:
    """Run a user's shell command; the agent sees it, unless it is kept out of the context."""
    await app.sessions.open(session_id)
    hook = app.hooks[UserBashEvent]
    if hook.live:
        event = UserBashEvent(command, exclude_from_context, str(app.workspace))
        verdict = await hook.fire(event, app.context(session_id, identity))
        command = verdict.event.command
        if not verdict.allowed:
            raise Blocked("the command", verdict.reason, verdict.decided_by)
        if "output" in verdict.supplied:
            return await _taken_over(app, session_id, verdict, identity)
    given: dict[str, Any] = {"command": command}
    known = app.tools.get(SHELL).spec.input_schema.get("properties", {})
    if identity.channel == "terminal" and OUTSIDE in known:  # exactly what they typed
        given[OUTSIDE] = True
    outcome = await call_tool(app, session_id, SHELL, given, source="shell", identity=identity)
    if not exclude_from_context:
        await _tell_agent(app, session_id, command, outcome.content, identity)
    return outcome


async def _taken_over(
    app: Hookline, session_id: str, verdict: Verdict[Any], identity: Identity
) -> ToolOutcome:
    """The output that a handler of `user_bash` returned instead of running a command."""
    from hookline.tools.runner import ToolOutcome

    event: UserBashEvent = verdict.event
    output = str(verdict.supplied["output"])
    if not event.exclude_from_context:
        await _tell_agent(app, session_id, event.command, output, identity)
    call = ToolCall(f"shell_{uuid4().hex[:12]}", SHELL, {"command": event.command}, "main", session_id)
    return ToolOutcome(call, output, bool(verdict.supplied.get("is_error")))


async def _tell_agent(
    app: Hookline, session_id: str, command: str, output: Content, identity: Identity
) -> None:
    """Show a user's command and its output to the agent."""
    async with writing(app, session_id, identity) as tape:
        message = {"role": "user", "content": f"I ran `{command}` myself:\n\n{output}"}
        await tape.append("message", {"message": message}, meta={"user_bash": command})


@asynccontextmanager
async def writing(app: Hookline, session_id: str, identity: Identity) -> AsyncGenerator[Tape]:
    """Open a session's tape for writing: alongside its agent, or else as soon as it is idle."""
    if app.sessions.run(session_id) is not None:
        yield await app.tape(session_id)
        return
    turn = ActiveTurn(channel=app.channels.current(), session_id=session_id, identity=identity)
    async with app.sessions.queue(session_id).hold(turn):
        yield await app.tape(session_id)


# --- a tool's arguments, as a person writes them ---------------------------------------------------


def arguments_of(tool: Tool, written: str) -> dict[str, Any]:
    """The arguments as they were written: an object, `key=value` pairs, or the one that is needed."""
    written = written.strip()
    if written.startswith("{"):
        given, fault = parse(written)
        if fault is not None:
            raise BadInput(f"/{tool.name}: {fault}")
        return given
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    pairs = pairs_of(written)
    if pairs is not None:
        return {key: value_of(value, properties.get(key, {})) for key, value in pairs.items()}
    required: list[str] = tool.parameters.get("required", [])
    if len(required) == 1:
        return {required[0]: value_of(written, properties.get(required[0], {}))}
    raise BadInput(f"write the arguments as key=value or as JSON: {usage(tool)}")


def pairs_of(written: str) -> dict[str, str] | None:
    """Parse `key=value` pairs, quoted as in a shell; None if the text is something else."""
    try:
        words = [PAIR.fullmatch(word) for word in shlex.split(written)]
    except ValueError:
        return None
    return {pair[1]: pair[2] for pair in words if pair} if all(words) else None


def value_of(written: str, schema: dict[str, Any]) -> Any:
    """A value as its schema wants it; text that is no JSON stays text, and the schema has its say."""
    if schema.get("type") == "string":
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def usage(tool: Tool) -> str:
    """How a tool is called."""
    required = tool.parameters.get("required", [])
    words = [f"{p}=…" if p in required else f"[{p}=…]" for p in tool.parameters.get("properties", {})]
    return " ".join([f"/{tool.name}", *words])

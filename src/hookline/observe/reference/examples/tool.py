"""Interception around tools and models, and the events of a tool call."""

import logging
import re
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from hookline.events import (
    ToolCallEvent,
    ToolCallEventResult,
    ToolExecutionEndEvent,
    ToolExecutionFailureEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResultEvent,
    ToolResultEventResult,
)
from hookline.hooks import hookimpl
from hookline.types import HookContext, ImagePart, Message, StreamEvent, ToolCall

log = logging.getLogger(__name__)
SECRET = re.compile(r"sk-\w{8,}")


class Workspace:
    """Keeps the agent in one directory, and secrets out of its sight."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home

    @hookimpl
    def bootstrap_files(self, agent_id: str) -> list[str]:
        """Add the project's notes for agents to the system prompt."""
        return [path.read_text() for path in sorted(self.home.glob("AGENT*.md"))]

    @hookimpl(when="fs_*")
    def before_tool_call(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Read relative paths from the workspace."""
        path = arguments.get("path")
        return {**arguments, "path": str(self.home / path)} if path else None

    @hookimpl(guard=True, when="shell")
    async def tool_call(self, event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult | None:
        """Refuse to delete everything; ask before deleting anything."""
        command = str(event.input.get("command", ""))
        if "rm -rf /" in command:
            return ToolCallEventResult(block=True, reason="this would delete everything")
        return ToolCallEventResult(ask=True, reason=command) if "rm " in command else None

    @hookimpl
    def after_tool_call(self, tool_name: str, result: Any) -> Any:
        """Cut long text before the model has to read it."""
        if isinstance(result, str) and len(result) > 20_000:
            return f"{result[:20_000]}\n[{tool_name}: cut, {len(result)} characters in all]"
        return None

    @hookimpl(guard=True)
    def tool_result(self, event: ToolResultEvent) -> ToolResultEventResult | None:
        """Mask keys. As a guard, nothing passes if it fails."""
        if isinstance(event.content, str) and SECRET.search(event.content):
            return ToolResultEventResult(content=SECRET.sub("[key]", event.content))
        return None

    @hookimpl(when="screenshot")
    def tool_result_persist(self, result: Any) -> Any:
        """Keep the size of a picture on the tape, not the picture."""
        size = sum(len(part.data) for part in result if isinstance(part, ImagePart))
        return f"[a picture of {size} bytes]" if size else None


class Patience:
    """Retries what fails by chance, and watches for going in circles."""

    @hookimpl
    async def around_tool_call(self, call: ToolCall, call_next: Callable[[], Awaitable[Any]]) -> Any:
        """Try a tool that timed out once more; it is authorised again."""
        try:
            return await call_next()
        except TimeoutError:
            return await call_next()

    @hookimpl
    async def around_model_call(
        self, request: Any, call_next: Callable[[Any], Awaitable[AsyncIterable[StreamEvent]]]
    ) -> AsyncIterable[StreamEvent]:
        """Let a small model answer short messages."""
        short = len(str(request.messages[-1]["content"])) < 80
        return await call_next(replace(request, model="local") if short else request)

    @hookimpl
    def on_loop_warning(self, tool_name: str, pattern: str, count: int, session_id: str) -> None:
        """Print where an agent got stuck."""
        log.warning("%s: %s repeats %s, %d times now", session_id, tool_name, pattern, count)


class Stopwatch:
    """Measures turns and tools."""

    def __init__(self) -> None:
        self.started: dict[str, float] = {}
        self.uses: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    @hookimpl
    def on_turn_start(self, agent_id: str, messages: list[Message]) -> None:
        """Take the time."""
        self.started[agent_id] = perf_counter()

    @hookimpl
    def on_turn_end(self, agent_id: str, response: str) -> None:
        """Say how long the turn took."""
        took = perf_counter() - self.started.pop(agent_id, perf_counter())
        log.info("%s: %d characters in %.1f s", agent_id, len(response), took)

    @hookimpl
    def tool_execution_start(self, event: ToolExecutionStartEvent) -> None:
        """Take the time of one call."""
        self.started[event.tool_call.id] = perf_counter()

    @hookimpl
    def tool_execution_update(self, event: ToolExecutionUpdateEvent, ctx: HookContext) -> None:
        """Show a long job's last line to the person."""
        content = event.partial_tool_result.content
        if isinstance(content, str) and content:
            ctx.notify(content.splitlines()[-1])

    @hookimpl
    def tool_execution_failure(self, event: ToolExecutionFailureEvent) -> None:
        """Count what breaks."""
        self.failures[event.tool_name] += 1

    @hookimpl
    def tool_execution_end(self, event: ToolExecutionEndEvent) -> None:
        """Count the call and say how long it took."""
        result = event.tool_result
        self.uses[result.name] += 1
        took = perf_counter() - self.started.pop(result.tool_call_id, perf_counter())
        log.info("%s took %.3f s", result.name, took)

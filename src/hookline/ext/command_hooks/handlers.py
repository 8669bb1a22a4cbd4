"""Handlers: our events as moments of the format, and its answers as our results.

| event | hook |
|---|---|
| `tool_call` | PreToolUse |
| `tool_result` | PostToolUse, PostToolUseFailure |
| `input` | UserPromptSubmit |
| `session_start`, `session_compact` | SessionStart |
| `session_shutdown` | SessionEnd |
| `agent_stop` | Stop, SubagentStop |
| `session_before_compact` | PreCompact |
| `notification` | Notification |
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hookline.events import (
    AgentStopEvent,
    AgentStopEventResult,
    InputEvent,
    InputEventResult,
    ModelCallEvent,
    ModelCallEventResult,
    NotificationEvent,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SessionCompactEvent,
    SessionShutdownEvent,
    SessionStartEvent,
    SessionStartResult,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEvent,
    ToolResultEventResult,
)
from hookline.types import Content, HookContext, TextPart

from . import names
from .answer import HookAnswer
from .dispatch import Asking
from .settings import CommandHook

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

SOURCES = {"startup": "startup", "new": "clear", "resume": "resume", "fork": "resume"}
REASONS = {"new": "clear", "resume": "resume", "fork": "resume"}


class Handlers:
    """One handler for each event; what must be remembered between them is kept by session and call."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._asking = Asking(app)
        self.broken: list[str] = []
        """What could not be read, where a failure is a deny: no tool runs until it is mended."""
        self._allowed: dict[tuple[str, str], dict[str, Any]] = {}
        """The arguments that a hook allowed, by call."""
        self._notes: dict[tuple[str, str], str] = {}
        """What hooks had to say about a call before it ran."""
        self._context: dict[str, list[str]] = {}
        """What hooks add to the next prompt of a session."""
        self._stopped: dict[str, tuple[str, str]] = {}
        """The turn of a session that a hook stopped, and why."""
        self._sent_back: dict[str, str] = {}
        """The turn of a session in which a Stop hook sent the agent back."""

    def use(self, hooks: Iterable[CommandHook]) -> None:
        """Have these hooks from now on."""
        self._asking.use(hooks)

    async def close(self) -> None:
        """Wait for hooks that run in the background."""
        await self._asking.close()

    def take_context(self, session_id: str) -> str:
        """What hooks add to a session's prompt, once."""
        return "\n\n".join(self._context.pop(session_id, ()))

    # --- tools ----------------------------------------------------------------------------------

    async def tool_call(self, event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult | None:
        """PreToolUse: allow, ask, deny, or another input."""
        if self.broken:
            told = f"hooks that may deny this cannot be read: {self.broken[0]}"
            return ToolCallEventResult(block=True, reason=told)
        if (stopped := self._why_stopped(ctx)) is not None:
            return ToolCallEventResult(block=True, reason=stopped)
        answers = await self._asking.ask(
            "PreToolUse",
            ctx,
            self._subjects(event.tool_name),
            self._about(event.tool_name, event.input, event.tool_call_id),
        )
        if not answers:
            return None
        self._stop(ctx, answers)
        if denied := [answer for answer in answers if answer.block or answer.stop]:
            return ToolCallEventResult(block=True, reason=_reason(denied, "a hook stopped the agent"))
        key = (ctx.session_id, event.tool_call_id)
        if context := _joined(answer.context for answer in answers):
            self._notes[key] = context
        changed = self._changed(event, answers)
        if asking := [answer for answer in answers if answer.permission == "ask"]:
            reason = _reason(asking, f"a hook wants approval for {event.tool_name}")
            return ToolCallEventResult(ask=True, reason=reason, input=changed)
        if any(answer.permission == "allow" for answer in answers):
            self._allowed[key] = deepcopy(event.input if changed is None else changed)
        return ToolCallEventResult(input=changed) if changed is not None else None

    def _changed(self, event: ToolCallEvent, answers: list[HookAnswer]) -> dict[str, Any] | None:
        """The input that hooks want instead; of several, the last one written."""
        given = [answer.input for answer in answers if answer.input is not None]
        if not given:
            return None
        return names.taken_input(event.tool_name, given[-1], event.input, self._app.workspace)

    def authorize_action(self, action: dict[str, Any]) -> bool | None:
        """A hook's `allow`, for exactly the arguments that it was about."""
        allowed = self._allowed.get((action["session_id"], action["call_id"]))
        return True if allowed is not None and allowed == action["arguments"] else None

    async def tool_result(
        self, event: ToolResultEvent, ctx: HookContext
    ) -> ToolResultEventResult | None:
        """PostToolUse: what a hook says is added for the model; another output takes its place."""
        key = (ctx.session_id, event.tool_call_id)
        self._allowed.pop(key, None)
        note = self._notes.pop(key, "")
        answers = await self._about_result(event, ctx) if event.ran else []
        self._stop(ctx, answers)
        if withheld := [answer for answer in answers if answer.failure and answer.block]:
            return ToolResultEventResult(block=True, reason=_reason(withheld, ""))
        said = [a.reason for a in answers if a.block] + [a.context for a in answers]
        added = _joined([note, *said])
        outputs = [answer.output for answer in answers if answer.output is not None]
        stopped = self._why_stopped(ctx)
        if not added and not outputs and stopped is None:
            return None
        content: Content = outputs[-1] if outputs else event.content
        return ToolResultEventResult(
            content=_with(content, f"[hook] {added}") if added else content,
            terminate=True if stopped is not None else None,
        )

    async def _about_result(self, event: ToolResultEvent, ctx: HookContext) -> list[HookAnswer]:
        tool, given = event.tool_name, event.input
        about = self._about(tool, given, event.tool_call_id)
        text = _text_of(event.content)
        if event.is_error:
            name = "PostToolUseFailure"
            about |= {"error": text, "is_interrupt": False}
        else:
            name = "PostToolUse"
            about["tool_response"] = names.shown_response(tool, given, text, self._app.workspace)
        return await self._asking.ask(name, ctx, self._subjects(tool), about)

    def _about(self, tool: str, given: dict[str, Any], call_id: str) -> dict[str, Any]:
        served = self._of_server(tool)
        return {
            "tool_name": served or names.shown_name(tool, given),
            "tool_input": names.shown_input(tool, given, self._app.workspace),
            "tool_use_id": call_id,
        }

    def _subjects(self, tool: str) -> tuple[str, ...]:
        served = self._of_server(tool)
        return (served, tool) if served else names.subjects(tool)

    def _of_server(self, tool: str) -> str:
        """The format's name of a tool that an MCP server has; empty for any other."""
        registry = self._app.tools
        spec = registry.get(tool).spec if tool in registry else None
        if spec is None or "mcp" not in spec.tags:
            return ""
        return names.of_server(spec.namespace or "server", spec.name)

    # --- stopping -------------------------------------------------------------------------------

    def _stop(self, ctx: HookContext, answers: list[HookAnswer]) -> None:
        """Remember that a hook answered `continue: false` in the turn that runs."""
        run = self._app.sessions.run(ctx.session_id)
        stopping = [answer for answer in answers if answer.stop]
        if stopping and run is not None:
            reason = _reason(stopping, "a hook stopped the agent")
            self._stopped[ctx.session_id] = (run.turn_id, reason)

    def _why_stopped(self, ctx: HookContext) -> str | None:
        turn_id, reason = self._stopped.get(ctx.session_id, ("", ""))
        run = self._app.sessions.run(ctx.session_id)
        return reason if run is not None and run.turn_id == turn_id else None

    def model_call(self, event: ModelCallEvent, ctx: HookContext) -> ModelCallEventResult | None:
        """Nothing is asked of the model any more in a turn that a hook stopped."""
        stopped = self._why_stopped(ctx)
        return ModelCallEventResult(block=True, reason=stopped) if stopped is not None else None

    # --- the turn -------------------------------------------------------------------------------

    async def input(self, event: InputEvent, ctx: HookContext) -> InputEventResult | None:
        """UserPromptSubmit: block, or context for the model."""
        answers = await self._asking.ask("UserPromptSubmit", ctx, (), {"prompt": event.text})
        if refused := [answer for answer in answers if answer.block or answer.stop]:
            return InputEventResult("block", reason=_reason(refused, "a hook blocked this"))
        self._add_context(ctx.session_id, answers)
        return None

    async def agent_stop(self, event: AgentStopEvent, ctx: HookContext) -> AgentStopEventResult | None:
        """Stop and SubagentStop: send the agent back, with a reason."""
        run = self._app.sessions.run(ctx.session_id)
        turn_id = run.turn_id if run is not None else ""
        about = {
            "stop_hook_active": self._sent_back.get(ctx.session_id) == turn_id,
            "last_assistant_message": event.response,
        }
        name, subjects = ("SubagentStop", (ctx.agent_id,)) if ctx.depth > 0 else ("Stop", ())
        answers = await self._asking.ask(name, ctx, subjects, about)
        if any(answer.stop for answer in answers):
            return None
        back = [answer for answer in answers if answer.block]
        more = _joined(answer.context for answer in answers)
        if not back and not more:
            return None
        self._sent_back[ctx.session_id] = turn_id
        reason = _joined([_reason(back, "") if back else "", more])
        return AgentStopEventResult(block=True, reason=reason or "You are not done yet. Go on.")

    # --- sessions -------------------------------------------------------------------------------

    async def session_start(
        self, event: SessionStartEvent, ctx: HookContext
    ) -> SessionStartResult | None:
        """SessionStart: context for the first prompt."""
        source = SOURCES.get(event.reason)
        if source is None:  # a reload: the session goes on
            return None
        if source == "startup" and await self._has_history(ctx.session_id):
            source = "resume"
        answers = await self._started(source, ctx)
        context = _joined(answer.context for answer in answers)
        return SessionStartResult(context) if context else None

    async def session_compact(self, event: SessionCompactEvent, ctx: HookContext) -> None:
        """SessionStart with the source `compact`: context for the next prompt."""
        if ctx.depth == 0:
            self._add_context(ctx.session_id, await self._started("compact", ctx))

    async def _started(self, source: str, ctx: HookContext) -> list[HookAnswer]:
        about = {"source": source, "model": self._app.sessions.model_of(ctx.session_id)}
        return await self._asking.ask("SessionStart", ctx, (source,), about)

    async def _has_history(self, session_id: str) -> bool:
        store = self._app.get_tape_store()
        return store is not None and await store.leaf(session_id) is not None

    def _add_context(self, session_id: str, answers: list[HookAnswer]) -> None:
        added = [answer.context for answer in answers if answer.context]
        if added:
            self._context.setdefault(session_id, []).extend(added)

    async def session_shutdown(self, event: SessionShutdownEvent, ctx: HookContext) -> None:
        """SessionEnd: told, and waited for."""
        if event.reason != "reload":
            reason = REASONS.get(event.reason, "other")
            await self._asking.ask("SessionEnd", ctx, (reason,), {"reason": reason})
        if event.reason != "reload":
            for kept in (self._stopped, self._sent_back, self._context):
                kept.pop(ctx.session_id, None)

    async def session_before_compact(
        self, event: SessionBeforeCompactEvent, ctx: HookContext
    ) -> SessionBeforeCompactResult | None:
        """PreCompact: a block keeps the context as it is."""
        trigger = "auto" if self._app.sessions.run(ctx.session_id) else "manual"
        about = {"trigger": trigger, "custom_instructions": event.custom_instructions or ""}
        answers = await self._asking.ask("PreCompact", ctx, (trigger,), about)
        blocked = any(answer.block or answer.stop for answer in answers)
        return SessionBeforeCompactResult(cancel=True) if blocked else None

    async def notification(self, event: NotificationEvent, ctx: HookContext) -> None:
        """Notification: told in the background, so that the question is not held up."""
        about = {"message": event.text, "notification_type": event.kind}
        self._asking.later(self._asking.ask("Notification", ctx, (event.kind,), about))


def _reason(answers: list[HookAnswer], otherwise: str) -> str:
    return _joined(answer.reason for answer in answers) or otherwise


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def _text_of(content: Content) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(getattr(part, "text", "")) for part in content)


def _with(content: Content, text: str) -> Content:
    """A result with a text added to it."""
    return f"{content}\n\n{text}" if isinstance(content, str) else [*content, TextPart(text)]

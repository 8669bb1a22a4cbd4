"""The plugin: the eight interception points of agent-hooks, on our hooks.

| interception point | our hook |
|---|---|
| `agent_startup` | `session_before_start` |
| `input` | `input` |
| `pre_model_call` | `model_call` |
| `post_model_call` | `model_result`; `around_model_call` tells of a stream that ended unjudged |
| `pre_tool_call` | `tool_call`; `authorize_action` where a tool is run once more |
| `post_tool_call` | `tool_result`, with the value that `after_tool_call` saw |
| `output` | `output` |
| `agent_shutdown` | `session_shutdown` |

Every gate is a guard that comes last: what interceptors judge is what happens.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agent_hooks import (
    AgentContext,
    AgentContextBuilder,
    HostError,
    InterceptionEmitter,
    InterceptionPoint,
    InterceptionRecord,
    Verdict,
    context_identity,
)

from hookline.agent.segments import closing
from hookline.errors import Unjudged
from hookline.events import (
    InputEvent,
    InputEventResult,
    ModelCallEvent,
    ModelCallEventResult,
    ModelResultEvent,
    ModelResultEventResult,
    OutputEvent,
    OutputEventResult,
    SessionBeforeStartEvent,
    SessionBeforeStartResult,
    SessionShutdownEvent,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEvent,
    ToolResultEventResult,
)
from hookline.ext.interceptors.errors import InterceptorError
from hookline.hooks import hookimpl
from hookline.tools.output import model_content
from hookline.types import HookContext, Identity, StreamEvent, ToolCall

from .wire import (
    declared_tools,
    own_calls,
    own_messages,
    own_text,
    plain_message,
    plain_value,
    response_parts,
)

if TYPE_CHECKING:
    from hookline.models import ModelRequest
    from hookline.runtime.app import Hookline

log = logging.getLogger("hookline.ext.interceptors")

FRAMEWORK = "hookline"
LABELS = "labels"
"""The tape entry with the labels that interceptors attached."""
RECORDS = 1000
"""The records that are kept in memory; the oldest make room."""

ENDING = (
    InterceptionPoint.INPUT,
    InterceptionPoint.PRE_MODEL_CALL,
    InterceptionPoint.POST_MODEL_CALL,
    InterceptionPoint.OUTPUT,
)
"""The points at which a deny ends the turn."""

CallKey: TypeAlias = tuple[str, str]
"""A session and the id of a tool call; models may use an id twice."""

guard = partial(hookimpl, guard=True, trylast=True)


@dataclass(slots=True)
class Intercepted:
    """One session, as interceptors see it; its subagents are part of it."""

    builder: AgentContextBuilder
    permitted: set[CallKey] = field(default_factory=set[CallKey])
    """The tool calls that were let through and have no result yet."""
    judged: set[CallKey] = field(default_factory=set[CallKey])
    """Those of them that have not been run yet."""
    values: dict[CallKey, Any] = field(default_factory=dict[CallKey, Any])
    """What tools returned, until it is judged."""
    denied: bool = False
    """Whether the last turn ended with a deny."""


class AgentHooks:
    """Shows every interception point to an emitter's interceptors and applies their verdicts."""

    def __init__(self, app: Hookline, emitter: InterceptionEmitter) -> None:
        self.app = app
        self.emitter = emitter
        self.records: deque[InterceptionRecord] = deque(maxlen=RECORDS)
        """The decisions, latest last, without the values they were made on."""
        emitter.set_record_sink(self._keep)
        declared = emitter.declaration
        self._points = set(declared.surface["interception_points"] if declared else InterceptionPoint)
        self._sessions: dict[str, Intercepted] = {}

    @property
    def interceptors(self) -> list[str]:
        """The interceptors, by the factories that created them."""
        declared = self.emitter.declaration
        bindings = declared.bindings if declared else ()
        configs = [(binding.id, cast("dict[str, Any]", binding.config or {})) for binding in bindings]
        return [str(config.get("factory", name)) for name, config in configs]

    # --- the session ----------------------------------------------------------------------------

    @guard()
    async def session_before_start(
        self, event: SessionBeforeStartEvent, ctx: HookContext
    ) -> SessionBeforeStartResult | None:
        """`agent_startup`."""
        tools = sorted(map(str, event.tools))
        context = self._session(ctx.session_id).builder.agent_startup(tools_registered=tools)
        record = await self._emit(context, ctx)
        return None if record.proceeds else SessionBeforeStartResult(block=True, reason=told(record))

    @hookimpl
    async def session_shutdown(self, event: SessionShutdownEvent, ctx: HookContext) -> None:
        """`agent_shutdown`, unless the session is only reloaded."""
        if event.reason == "reload":
            return
        session = self._session(ctx.session_id)
        reason = event.reason if event.reason in ("error", "cancelled") else "completed"
        if reason == "completed" and session.denied:
            reason = "error"
        await self._emit(session.builder.agent_shutdown(reason=reason), ctx)
        self._sessions.pop(ctx.session_id, None)

    # --- what comes in and goes out ---------------------------------------------------------------

    @guard(specname="input")
    async def judge_input(self, event: InputEvent, ctx: HookContext) -> InputEventResult | None:
        """`input`."""
        context = self._session(ctx.session_id).builder.input(content=event.text)
        record = await self._emit(context, ctx)
        if not record.proceeds:
            return InputEventResult("block", reason=told(record))
        text = own_text(context["input"]["content"])
        return None if text == event.text else InputEventResult("transform", text=text)

    @guard()
    async def output(self, event: OutputEvent, ctx: HookContext) -> OutputEventResult | None:
        """`output`."""
        context = self._session(ctx.session_id).builder.output(content=event.content)
        record = await self._emit(context, ctx)
        if not record.proceeds:
            return OutputEventResult(block=True, reason=told(record))
        content = own_text(context["output"]["content"])
        return None if content == event.content else OutputEventResult(content=content)

    # --- the model --------------------------------------------------------------------------------

    @guard()
    async def model_call(self, event: ModelCallEvent, ctx: HookContext) -> ModelCallEventResult | None:
        """`pre_model_call`."""
        if InterceptionPoint.PRE_MODEL_CALL.value not in self._points:
            return None
        given = [plain_message(message) for message in event.messages]
        context = self._session(ctx.session_id).builder.pre_model_call(
            model_id=event.model,
            messages=given,
            tools=declared_tools(event.tools),
            request_id=event.request_id or None,
        )
        record = await self._emit(context, ctx)
        if not record.proceeds:
            return ModelCallEventResult(block=True, reason=told(record))
        if context["messages"] == given:
            return None
        return ModelCallEventResult(messages=own_messages(context["messages"], given, event.messages))

    @guard()
    async def model_result(
        self, event: ModelResultEvent, ctx: HookContext
    ) -> ModelResultEventResult | None:
        """`post_model_call`: on a whole response, or on the beginning of one that still comes in."""
        if InterceptionPoint.POST_MODEL_CALL.value not in self._points:
            return None
        parts = response_parts(event)
        context = self._session(ctx.session_id).builder.post_model_call(**parts)
        record = await self._emit(context, ctx)
        if not record.proceeds:
            return ModelResultEventResult(block=True, reason=told(record))
        left: dict[str, Any] = context["response"]
        if left["finish_reason"] != parts["finish_reason"]:
            raise InterceptorError("a finish_reason cannot be transformed")
        changed = ModelResultEventResult()
        if left["content"] != parts["content"]:
            changed.content = own_text(left["content"])
        if left["tool_calls"] != parts["tool_calls"]:
            if event.partial:
                raise InterceptorError(
                    "the tool calls of a response that still comes in cannot be transformed"
                )
            changed.tool_calls = own_calls(left["tool_calls"])
        return changed if changed.set_fields("block") else None

    @hookimpl
    async def around_model_call(
        self,
        request: ModelRequest,
        call_next: Callable[[ModelRequest], Awaitable[AsyncIterable[StreamEvent]]],
    ) -> AsyncIterable[StreamEvent]:
        """Pass the call on. If answers are sent in segments, report a stream that ended unjudged."""
        stream = await call_next(request)
        return self._watched(stream, request) if self.app.limits.streaming.segment else stream

    async def _watched(
        self, stream: AsyncIterable[StreamEvent], request: ModelRequest
    ) -> AsyncIterator[StreamEvent]:
        async with closing(stream):
            try:
                async for event in stream:
                    yield event
            except Unjudged:
                self._deny_residue(request)
                raise

    # --- tools ------------------------------------------------------------------------------------

    @guard()
    async def tool_call(self, event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult | None:
        """`pre_tool_call`."""
        if InterceptionPoint.PRE_TOOL_CALL.value not in self._points:
            return None
        proceeds, reason, arguments = await self._before_tool(
            event.tool_call_id, event.tool_name, event.input, ctx
        )
        if not proceeds:
            return ToolCallEventResult(block=True, reason=reason)
        self._session(ctx.session_id).judged.add((ctx.session_id, event.tool_call_id))
        return None if arguments == event.input else ToolCallEventResult(input=arguments)

    @hookimpl(tryfirst=True)
    async def authorize_action(self, action: dict[str, Any]) -> bool | None:
        """`pre_tool_call` where something around a tool runs it once more; the first run is judged."""
        session = self._session(action["session_id"])
        key = (action["session_id"], action["call_id"])
        if key in session.judged:
            session.judged.discard(key)
            return None
        if InterceptionPoint.PRE_TOOL_CALL.value not in self._points:
            return None
        identity = Identity(action["user"], action["channel"], action["chat"])
        ctx = HookContext(action["session_id"], action["agent_id"], action["depth"], identity=identity)
        given: dict[str, Any] = action["arguments"]
        proceeds, _, arguments = await self._before_tool(action["call_id"], action["tool"], given, ctx)
        return None if proceeds and arguments == given else False  # run exactly what was authorised

    async def _before_tool(
        self, call_id: str, name: str, given: dict[str, Any], ctx: HookContext
    ) -> tuple[bool, str, dict[str, Any]]:
        session = self._session(ctx.session_id)
        context = session.builder.pre_tool_call(call_id=call_id, name=name, args=given)
        record = await self._emit(context, ctx)
        arguments = context["tool_call"]["args"]
        if record.proceeds and not isinstance(arguments, dict):
            raise InterceptorError("the arguments of a tool must stay an object")
        if record.proceeds:
            session.permitted.add((ctx.session_id, call_id))
        return record.proceeds, told(record), cast("dict[str, Any]", arguments)

    @guard()
    async def after_tool_call(self, call: ToolCall, result: Any, session_id: str) -> None:
        """Keep a tool's return value; the model sees it as text."""
        self._session(session_id).values[session_id, call.id] = result

    @guard()
    async def tool_result(
        self, event: ToolResultEvent, ctx: HookContext
    ) -> ToolResultEventResult | None:
        """`post_tool_call` for each call that the interceptors allowed, including failed ones."""
        session = self._session(ctx.session_id)
        key = (ctx.session_id, event.tool_call_id)
        permitted = key in session.permitted
        session.permitted.discard(key)
        session.judged.discard(key)
        returned = session.values.pop(key, "")
        if InterceptionPoint.POST_TOOL_CALL.value not in self._points:
            return None
        if not event.ran and not permitted:
            return None
        value = plain_value(returned, event.content)
        context = session.builder.post_tool_call(
            call_id=event.tool_call_id,
            name=event.tool_name,
            args=event.input,
            value=value,
            is_error=event.is_error,
        )
        record = await self._emit(context, ctx)
        if not record.proceeds:
            return ToolResultEventResult(block=True, reason=told(record))
        left: Any = context["tool_result"]["value"]
        return None if left == value else ToolResultEventResult(content=model_content(left))

    # --- emitting -----------------------------------------------------------------------------------

    def _session(self, session_id: str) -> Intercepted:
        """The session that a person opened; a subagent's belongs to it."""
        run = self.app.sessions.run(session_id)
        root = run.lineage[0] if run is not None and run.lineage else session_id
        if root not in self._sessions:
            builder = AgentContextBuilder(agent_id="main", framework=FRAMEWORK, session_id=root)
            self._sessions[root] = Intercepted(builder)
        return self._sessions[root]

    async def _emit(self, context: AgentContext, ctx: HookContext) -> InterceptionRecord:
        """Show a context to the interceptors, which may change it."""
        context["agent"] = {"id": ctx.agent_id or "main", "framework": FRAMEWORK}
        record = await self.emitter.emit_unchecked(context)
        if record.interception_point in ENDING:
            session = self._session(ctx.session_id)
            begins = record.interception_point is InterceptionPoint.INPUT
            session.denied = not record.proceeds or (session.denied and not begins)
        self.emitter.take_records()  # ours are bounded
        if record.proceeds and record.verdict.result_labels:
            await self._label(record, ctx.session_id)
        return record

    async def _label(self, record: InterceptionRecord, session_id: str) -> None:
        """Record labels with the values they belong to."""
        tape = await self.app.tape(session_id)
        labels = list(record.verdict.result_labels)
        point = record.interception_point.value
        await tape.append(LABELS, {"point": point, "sequence": record.sequence, "labels": labels})

    def _deny_residue(self, request: ModelRequest) -> None:
        """Record that what no verdict covers is withheld, as the specification wants it said."""
        context = self._session(request.session_id).builder.post_model_call(
            model_id=request.model,
            content=None,
            tool_calls=[],
            finish_reason="stream_incomplete",
            request_id=request.request_id or None,
        )
        point = InterceptionPoint.POST_MODEL_CALL
        declared = self.emitter.declaration
        provider = declared.identity_provider if declared else None
        identity = context_identity(context) if provider == "jcs-sha256" else None
        self._keep(
            InterceptionRecord(
                interception_point=point,
                mode=self.emitter.mode,
                verdict=Verdict.host_error(HostError.STREAMING_UNSUPPORTED),
                input_identity=identity,
                enforced_identity=identity,
                identity_provider=provider,
                session_id=context["session"]["id"],
                sequence=context["sequence"],
                timestamp=context["timestamp"],
                composition=self.emitter.composition,
                declaration=declared.version if declared else None,
                interceptors_registered=sum(point in b.at for b in declared.bindings)
                if declared
                else 0,
            )
        )

    def _keep(self, record: InterceptionRecord) -> None:
        self.records.append(record)
        log.debug(
            "interception session=%s sequence=%s point=%s decision=%s reason=%s",
            record.session_id,
            record.sequence,
            record.interception_point.value,
            record.verdict.decision.value,
            record.verdict.reason,
        )


def told(record: InterceptionRecord) -> str:
    """Why something was denied."""
    verdict = record.verdict
    return (
        ": ".join(text for text in (verdict.reason, verdict.message) if text) or "an interceptor denies"
    )

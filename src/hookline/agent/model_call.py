"""One model turn: the request, the gates around it, and the answer put together from its stream."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

from hookline.errors import Blocked, CutOff, TooManyCalls, Unjudged
from hookline.events import (
    ContextEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ModelCallEvent,
    ModelResultEvent,
)
from hookline.hooks import CallError, Verdict
from hookline.hookspecs import Hooks
from hookline.models import Model, ModelError, ModelRequest, ModelUnavailable
from hookline.models.output import stream_answer
from hookline.types import HookContext, Message, StreamEvent, ToolCall

from .segments import WHOLE, HeldBack, Released, Streaming, closing

CUT_OFF = "the model's answer was cut off before its end"
CALLS = 128
"""How many tool calls one answer may ask for."""
LONGEST_CALL = 2_000_000
"""Characters in the name and the arguments of one call; the runner's own limit is lower."""
CALL_ID = re.compile(r"(?!command_|shell_)[!-.0-~]{1,256}", re.ASCII)
"""Ids of a model that are kept. Others could name a session (`/`) or a user's own call."""

Emit = Callable[[StreamEvent], Awaitable[None]]
FindModel = Callable[[str], Model]
"""Returns the model of a name; raises `ModelError` if there is none."""


@dataclass(slots=True)
class ModelAnswer:
    """A model's answer in one turn."""

    text: str = ""
    reasoning: str = ""
    signature: str = ""
    """What lets a provider trust its own reasoning when it is given back."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    finish_reason: str = ""
    most_calls: int = CALLS

    def add_call(self, given: dict[str, Any]) -> dict[str, Any]:
        """Add a tool call, under an id that no other call of this answer has."""
        call = dict(given)
        if len(self.tool_calls) >= self.most_calls:
            raise TooManyCalls(
                f"Your answer asked for more than {self.most_calls} tool calls ([limits] tool_calls). "
                "None of them ran. Ask for fewer at a time."
            )
        if len(str(call.get("name"))) + len(str(call.get("arguments"))) > LONGEST_CALL:
            raise TooManyCalls(
                "Your answer asked for a tool call that is too long. None of its calls ran. "
                "Pass less, or in several calls."
            )
        name = call.get("id")
        kept = isinstance(name, str) and CALL_ID.fullmatch(name)
        if not kept or any(other["id"] == name for other in self.tool_calls):
            call["id"] = f"call_{uuid4().hex[:12]}"
        self.tool_calls.append(call)
        return call

    @property
    def message(self) -> Message:
        """The same as a model message."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = self.tool_calls
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.signature:
            message["reasoning_signature"] = self.signature
        return message


class ModelCall:
    """Makes model calls through `context`, `around_model_call`, `model_call` and `model_result`."""

    def __init__(self, hooks: Hooks, find_model: FindModel) -> None:
        self._find_model = find_model
        self._context = hooks[ContextEvent]
        self._around = hooks["around_model_call"]
        self._call = hooks[ModelCallEvent]
        self._result = hooks[ModelResultEvent]
        self._start = hooks[MessageStartEvent]
        self._update = hooks[MessageUpdateEvent]
        self._end = hooks[MessageEndEvent]

    async def take(
        self,
        model: Model,
        request: ModelRequest,
        ctx: HookContext,
        emit: Emit,
        streaming: Streaming = WHOLE,
        calls: int = CALLS,
    ) -> ModelAnswer:
        """Call the model once and return the released answer."""
        if self._context.live:
            verdict = await self._context.fire(ContextEvent(list(request.messages)), ctx)
            request = with_messages(request, verdict.event.messages)
        stream = await self._stream(model, request, ctx, streaming, calls)
        return await self._read(stream, ModelAnswer(most_calls=calls), ctx, emit)

    async def aside(self, model: Model, request: ModelRequest, ctx: HookContext) -> ModelAnswer:
        """Ask the model for something outside of the conversation, such as a summary."""
        answer, text = ModelAnswer(), list[str]()
        stream = await self._stream(model, request, ctx)
        async with closing(stream):
            async for event in stream:
                collect(answer, text, event)
        answer.text = "".join(text)
        if not answer.finish_reason:
            raise CutOff(CUT_OFF)
        return answer

    async def _stream(
        self,
        model: Model,
        request: ModelRequest,
        ctx: HookContext,
        streaming: Streaming = WHOLE,
        calls: int = CALLS,
    ) -> AsyncIterable[StreamEvent]:
        """The model's answer, as it comes through everything that is around a call."""
        if not self._around.live:
            return await self._ask(model, request, ctx, streaming, ModelAnswer(most_calls=calls))
        name, judged = request.model, Released()

        async def call_next(changed: Any) -> AsyncIterable[StreamEvent]:
            if not isinstance(changed, ModelRequest):
                kind = type(changed).__name__
                raise CallError(
                    f"call_next of around_model_call takes a ModelRequest, not {kind}; "
                    "change one with dataclasses.replace(request, model=...)"
                )
            own = model if changed.model == name else self._replacement(changed.model)
            stream = await self._ask(own, changed, ctx, streaming, ModelAnswer(most_calls=calls))
            return judged.kept(stream)

        stream = await self._around.fire(request, call_next)
        if stream is None:
            raise CutOff("around_model_call gave no stream: a handler did not return one")
        if stream in judged.streams:
            return judged.plain(stream)
        if not self._result.live:
            return stream
        answer = ModelAnswer(most_calls=calls)
        if self._result.count():
            return self._judged(stream, request, ctx, HeldBack(streaming), answer, judged)
        return self._observed(stream, request, ctx, answer, judged)

    def _replacement(self, name: str) -> Model:
        """The model that a handler of `around_model_call` asks for instead."""
        try:
            return self._find_model(name)
        except ModelError as error:
            raise ModelUnavailable(
                f"a handler of around_model_call asks for model {name!r}: {error}"
            ) from error

    async def _ask(
        self,
        model: Model,
        request: ModelRequest,
        ctx: HookContext,
        streaming: Streaming,
        answer: ModelAnswer,
    ) -> AsyncIterable[StreamEvent]:
        """The innermost call: the gate before the provider, and the one after it."""
        if self._call.live:
            event = ModelCallEvent(
                request.request_id, request.model, list(request.messages), list(request.tools)
            )
            verdict = await self._call.fire(event, ctx)
            if not verdict.allowed:
                raise Blocked("the model call", verdict.reason, verdict.decided_by)
            request = with_messages(request, verdict.event.messages)
        stream = stream_answer(model, request)
        if not self._result.live:
            return stream
        if not self._result.count():
            return self._observed(stream, request, ctx, answer)
        return self._judged(stream, request, ctx, HeldBack(streaming), answer)

    async def _observed(
        self,
        stream: AsyncIterable[StreamEvent],
        request: ModelRequest,
        ctx: HookContext,
        answer: ModelAnswer,
        before: Released | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """Pass on an answer that no handler can block, and show it to the observers once."""
        text: list[str] = []
        async with closing(stream):
            async for event in stream:
                call = collect(answer, text, event)
                yield event if call is None else StreamEvent("tool_call", call)
        if before is None or not before.streams:
            await self._result.fire(result_of(request, "".join(text), answer), ctx)

    async def _judged(
        self,
        stream: AsyncIterable[StreamEvent],
        request: ModelRequest,
        ctx: HookContext,
        held: HeldBack,
        answer: ModelAnswer,
        before: Released | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """Hold an answer back until `model_result` has judged it: whole, or segment by segment.

        A segment is judged when the next one begins, so that the last one is judged with the end.
        `before` has what was judged inside `around_model_call`: as long as the stream is the same, it
        is not judged again.
        """
        text: list[str] = []
        same = before is not None
        async with closing(stream):
            async for event in stream:
                same = same and before is not None and before.has_next(event)
                if same and event.kind in ("text", "reasoning"):
                    held.pass_on(event)
                    yield event
                    continue
                if event.kind == "text" and held.is_full:
                    segment = result_of(request, held.content)
                    for ready in held.release((await self._judge(segment, ctx)).event.content):
                        yield ready
                call = collect(answer, text, event)
                held.add(event if call is None else StreamEvent("tool_call", call))  # its judged id
        if same:
            for event in held.events:
                yield event
            return
        if not answer.finish_reason:
            raise Unjudged if held.judged else CutOff(CUT_OFF)
        answer.text = held.content
        verdict = await self._judge(result_of(request, answer.text, answer), ctx)
        for event in released(held, answer, verdict.changes):
            yield event

    async def _judge(self, result: ModelResultEvent, ctx: HookContext) -> Verdict[ModelResultEvent]:
        verdict: Verdict[ModelResultEvent] = await self._result.fire(result, ctx)
        if not verdict.allowed:
            raise Blocked("the model's answer", verdict.reason, verdict.decided_by)
        return verdict

    async def _read(
        self, stream: AsyncIterable[StreamEvent], answer: ModelAnswer, ctx: HookContext, emit: Emit
    ) -> ModelAnswer:
        """Put the answer together while it comes in, and hand each piece on."""
        text, reasoning, update = list[str](), list[str](), self._update
        begun = False
        async with closing(stream):
            async for event in stream:
                kind = event.kind
                if not begun:
                    begun = True
                    if self._start.live:
                        message = {"role": "assistant", "content": ""}
                        await self._start.fire(MessageStartEvent(message), ctx)
                if kind == "text":
                    delta = event.data["delta"]
                    text.append(delta)
                    if update.live:
                        piece = MessageUpdateEvent({"role": "assistant", "content": delta})
                        await update.fire(piece, ctx)
                elif (call := collect(answer, text, event)) is not None:
                    event = StreamEvent("tool_call", call)
                elif kind == "reasoning":
                    reasoning.append(event.data["delta"])
                    answer.signature = event.data.get("signature") or answer.signature
                if kind != "final":
                    await emit(event)
        answer.text, answer.reasoning = "".join(text), "".join(reasoning)
        if not answer.finish_reason:
            raise CutOff(CUT_OFF)
        if self._end.live:
            await self._end.fire(MessageEndEvent(answer.message), ctx)
        return answer


def collect(answer: ModelAnswer, text: list[str], event: StreamEvent) -> dict[str, Any] | None:
    """Add one piece to an answer and give the call that it is; text is joined once, at the end."""
    if event.kind == "text":
        text.append(event.data["delta"])
    elif event.kind == "tool_call":
        return answer.add_call(event.data)
    elif event.kind == "usage":
        answer.usage.update(event.data)
    elif event.kind == "final":
        answer.finish_reason = event.data.get("finish_reason") or "stop"
    return None


def result_of(
    request: ModelRequest, content: str, answer: ModelAnswer | None = None
) -> ModelResultEvent:
    """What `model_result` is shown: an answer, or the beginning of one that still comes in."""
    if answer is None:
        return ModelResultEvent(request.request_id, request.model, content)
    return ModelResultEvent(
        request_id=request.request_id,
        model=request.model,
        content=content,
        tool_calls=[parsed_call(raw) for raw in answer.tool_calls],
        finish_reason=answer.finish_reason,
        usage=answer.usage,
    )


def released(held: HeldBack, answer: ModelAnswer, changes: dict[str, Any]) -> list[StreamEvent]:
    """The events to release, with the text and tool calls that the gate left."""
    if "content" not in changes and "tool_calls" not in changes:
        return held.events
    events = [e for e in held.events if e.kind == "reasoning"]
    if text := held.tail(changes.get("content", answer.text)):
        events.append(StreamEvent("text", {"delta": text}))
    calls = answer.tool_calls
    if "tool_calls" in changes:
        calls = [raw_call(call, answer.tool_calls) for call in changes["tool_calls"]]
    events += [StreamEvent("tool_call", call) for call in calls]
    return [*events, *(e for e in held.events if e.kind in ("usage", "final"))]


def parsed_call(raw: dict[str, Any]) -> ToolCall:
    """A tool call as handlers see it; arguments that are no JSON object stay out of sight."""
    try:  # not `arguments.read`: a handler also sees what the runner is going to refuse
        arguments: Any = json.loads(raw["arguments"] or "{}")
    except (ValueError, RecursionError):
        arguments = None
    known = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    return ToolCall(raw["id"], raw["name"], known)


def raw_call(call: ToolCall, originals: list[dict[str, Any]]) -> dict[str, Any]:
    """A tool call as the model wrote it, or as a handler rewrote it."""
    for raw in originals:
        if raw["id"] == call.id and parsed_call(raw) == call:
            return raw
    return {"id": call.id, "name": call.name, "arguments": json.dumps(dict(call.arguments))}


def with_messages(request: ModelRequest, messages: list[Message]) -> ModelRequest:
    """The request with the messages as a hook changed them; unchanged if it did not."""
    return request if messages == request.messages else replace(request, messages=messages)

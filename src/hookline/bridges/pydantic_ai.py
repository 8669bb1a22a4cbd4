"""Hookline's hooks in agents of pydantic-ai.

    from hookline.bridges.pydantic_ai import hookline

    agent = Agent(model, tools=tools, capabilities=[hookline([no_sudo])])

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`), in `run`, `run_sync`, `run_stream` and `iter`. A prompt, request or answer that a handler
blocks raises `Blocked`. With handlers that judge what the model says, a stream shows text that is
complete, and the model is asked without streaming.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from .bridge import Bridge
from .reports import HostAnswer, HostRequest, ToolAnswer
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

TESTED: Final = {"pydantic-ai-slim": ("2.66", "3")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineCapability:
    """A capability that carries Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineCapability(Bridge(hooks, host="pydantic-ai", tested=TESTED, **options))


class HooklineCapability(AbstractCapability[Any]):
    """Reports what an agent does to a bridge, and does what the bridge says."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.run: BridgeRun
        self.prompt: str | None = None
        self.ended = False

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """A copy with the state of one run."""
        return copy(self)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """Start a run with the prompt, and judge the answer at its end."""
        self.prompt = ctx.prompt if isinstance(ctx.prompt, str) else None
        self.run = await self.bridge.start(self.prompt or "", session=ctx.conversation_id)
        try:
            result = await handler()
        except BaseException as error:
            await self.run.fail(error)
            raise
        if self.ended:
            return result
        text = await self.run.end(str(result.output))
        unchanged = not isinstance(result.output, str) or text == result.output
        return result if unchanged else replace(result, output=text)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, handler: Any
    ) -> ModelResponse:
        """Pass a model call through its hooks."""
        for tool in request_context.model_request_parameters.native_tools:
            self.bridge.out_of_reach(tool.kind, "on the servers of the model's provider")
        if not request_context.streaming or not self.run.judges:
            return await self._ask(request_context, handler)
        response = await self._ask(request_context, whole)
        while text_alone(response):  # the answer, which the stream would show before it is judged
            text = answer_of(response).text
            refused = await self.run.refuses_to_stop(text)
            if refused is None:
                self.ended = True
                return replace(response, parts=[TextPart(await self.run.end(text))])
            request_context.messages += [response, ModelRequest([UserPromptPart(refused)])]
            response = await self._ask(request_context, whole)
        return response

    async def _ask(self, request_context: Any, handler: Any) -> ModelResponse:
        self._rewrite_prompt(request_context.messages)
        before = plain_messages(request_context.messages)
        made: list[ModelResponse] = []

        async def ask(request: HostRequest) -> HostAnswer:
            if request.messages != before:
                request_context.messages[:] = host_messages(
                    request_context.messages, before, request.messages
                )
            if request.system:
                given = request_context.model_request_parameters
                parts = [*(given.instruction_parts or ()), InstructionPart(request.system)]
                changed = replace(given, instruction_parts=parts)
                request_context.model_request_parameters = changed
            made[:] = [await handler(request_context)]
            return answer_of(made[0])

        name = request_context.model.model_name
        answer = await self.run.call_model(HostRequest(list(before), name), ask)
        if made and answer_of(made[0]).text == answer.text and calls_of(made[0]) == answer.tool_calls:
            return made[0]
        calls = [ToolCallPart(c["name"], c["arguments"], c["id"]) for c in answer.tool_calls]
        parts = [*([TextPart(answer.text)] if answer.text else []), *calls]
        return replace(made[0], parts=parts) if made else ModelResponse(parts)

    def _rewrite_prompt(self, messages: list[ModelMessage]) -> None:
        """Put the prompt as handlers of `input` left it in the place of the original."""
        if self.prompt is None or self.run.prompt == self.prompt:
            return
        for message in reversed(messages):
            for part in message.parts:
                if isinstance(part, UserPromptPart) and part.content == self.prompt:
                    part.content, self.prompt = self.run.prompt, None
                    return

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Pass a tool call and its result through their gates."""
        value = await self.run.call(call.tool_name, args, handler, call.tool_call_id)
        return str(value) if isinstance(value, ToolAnswer) else value

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any
    ) -> Any:
        """Let `agent_stop` judge the output; a refusal goes back to the model."""
        made = await handler(output)
        if self.ended:
            return made
        refused = await self.run.refuses_to_stop(str(made))
        if refused is not None:
            raise ModelRetry(refused)
        return made


async def whole(context: Any) -> ModelResponse:
    """Ask a model without streaming."""
    settings, parameters = context.model_settings, context.model_request_parameters
    return await context.model.request(context.messages, settings, parameters)


def text_alone(response: ModelResponse) -> bool:
    """Whether an answer has text and asks for no tools."""
    return bool(answer_of(response).text) and not response.tool_calls


def calls_of(response: ModelResponse) -> list[dict[str, Any]]:
    """The tool calls of an answer."""
    parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
    return [{"id": p.tool_call_id, "name": p.tool_name, "arguments": p.args_as_dict()} for p in parts]


def answer_of(response: ModelResponse) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls, used = calls_of(response), response.usage
    usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    return HostAnswer(text, calls, usage, "tool_calls" if calls else "stop")


def plain_messages(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    """The messages as handlers see them, one for each part of a request."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            answer = answer_of(message)
            said: dict[str, Any] = {"role": "assistant", "content": answer.text}
            found.append(said | ({"tool_calls": answer.tool_calls} if answer.tool_calls else {}))
        else:
            found.extend(plain_part(part) for part in message.parts)
    return found


def plain_part(part: Any) -> dict[str, Any]:
    """One part of a request as a message."""
    if isinstance(part, ToolReturnPart):
        content = part.model_response_str()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
    role = "system" if isinstance(part, SystemPromptPart) else "user"
    content = part.content if isinstance(part.content, str) else str(part.content)
    return {"role": role, "content": content}


def host_messages(
    messages: list[ModelMessage], before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> list[ModelMessage]:
    """The messages with the texts that handlers changed; messages they removed are left out."""
    made: list[ModelMessage] = []
    left = list(after)
    for message in messages:
        if isinstance(message, ModelResponse):
            if left and left[0]["role"] == "assistant":
                said = left.pop(0)
                parts = [p for p in message.parts if not isinstance(p, TextPart)]
                text = [TextPart(said["content"])] if said["content"] else []
                made.append(replace(message, parts=[*text, *parts]))
            continue
        kept = [changed_part(part, left) for part in message.parts]
        parts = [part for part in kept if part is not None]
        if parts:
            made.append(replace(message, parts=parts))
    made.extend(ModelRequest([UserPromptPart(str(m["content"]))]) for m in left)
    return made


def changed_part(part: Any, left: list[dict[str, Any]]) -> Any:
    """A part with the text that handlers left in it, or None if they removed it."""
    plain = plain_part(part)
    if not left or left[0]["role"] != plain["role"]:
        return None
    said = left.pop(0)
    return part if said == plain else replace(part, content=said["content"])

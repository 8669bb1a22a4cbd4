"""Hookline's hooks in agents of the Microsoft Agent Framework.

    from hookline.bridges.agent_framework import hookline

    agent = Agent(client, tools=tools, middleware=hookline([no_sudo]))

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`). Streamed answers are not judged before they are shown: with a handler of `model_result`,
`output` or `agent_stop`, a streamed run is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_framework import (
    AgentContext,
    AgentMiddleware,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
)

from hookline.errors import BridgeError

from .bridge import Bridge, BridgeRun, HostAnswer, HostRequest, ToolAnswer, replaced

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

_RUN: ContextVar[BridgeRun] = ContextVar("hookline_agent_framework_run")
STREAMED = ("model_result", "output", "agent_stop")


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> list[Any]:
    """Middleware that carries Hookline's hooks; `options` are those of `Bridge`."""
    bridge = Bridge(hooks, host="agent-framework", **options)
    return [HooklineAgent(bridge), HooklineChat(), HooklineFunction()]


class HooklineAgent(AgentMiddleware):
    """Reports the runs of an agent to a bridge."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Start a run with the prompt, and judge the answer at its end."""
        said = next((m for m in reversed(context.messages) if m.role == "user"), None)
        prompt = said.text if said is not None else ""
        if context.stream and any(self.bridge.hooks[name].count() for name in STREAMED):
            raise BridgeError(f"a streamed run cannot be judged by {', '.join(STREAMED)}; use run()")
        run = await self.bridge.start(prompt)
        token = _RUN.set(run)
        try:
            if said is not None and run.prompt != prompt:
                context.messages[context.messages.index(said)] = Message("user", [run.prompt])
            await call_next()
            while not context.stream and (refused := await run.refuses_to_stop(context.result.text)):
                context.messages.extend([*context.result.messages, Message("user", [refused])])
                await call_next()
        except BaseException as error:
            await run.fail(error)
            raise
        finally:
            _RUN.reset(token)
        if context.stream:
            await run.end("")
            return
        text = await run.end(context.result.text)
        if text != context.result.text:
            context.result.messages[-1] = Message("assistant", [text])


class HooklineFunction(FunctionMiddleware):
    """Passes tool calls through their gates."""

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Pass a tool call and its result through their gates."""
        given = context.arguments
        arguments = dict(given) if isinstance(given, Mapping) else given.model_dump()

        async def invoke(changed: dict[str, Any]) -> Any:
            if changed != arguments:
                context.arguments = (
                    changed if isinstance(given, Mapping) else type(given).model_validate(changed)
                )
            await call_next()
            return text_of(context.result)

        value = await _RUN.get().call(context.function.name, arguments, invoke, call_id_of(context))
        if isinstance(value, ToolAnswer):
            context.result = str(value)


class HooklineChat(ChatMiddleware):
    """Passes model calls through their hooks."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Pass a model call through its hooks."""
        originals = list(context.messages)
        before = [plain_message(message) for message in originals]

        async def ask(request: HostRequest) -> HostAnswer:
            if request.messages != before:
                context.messages = replaced(originals, before, request.messages, host_message)
            await call_next()
            return HostAnswer() if context.stream else answer_of(context.result)

        name = str((context.options or {}).get("model") or "")
        answer = await _RUN.get().call_model(HostRequest(list(before), name), ask)
        if context.stream or context.result is None:
            return
        was = answer_of(context.result)
        if answer.text != was.text and context.result.messages:
            others = [c for c in context.result.messages[-1].contents if c.type != "text"]
            context.result.messages[-1] = Message("assistant", [answer.text, *others])


def call_id_of(context: FunctionInvocationContext) -> str | None:
    """The id of a tool call, if the framework gives one."""
    return (context.metadata or {}).get("call_id")


def text_of(result: Any) -> Any:
    """A tool's result as handlers read it."""
    if isinstance(result, list):
        return "".join(str(getattr(each, "text", None) or each) for each in result)
    return result


def calls_of(message: Message) -> list[dict[str, Any]]:
    """The tool calls of a message."""
    calls = [content for content in message.contents if content.type == "function_call"]
    return [{"id": c.call_id, "name": c.name, "arguments": c.parse_arguments() or {}} for c in calls]


def answer_of(response: Any) -> HostAnswer:
    """A model's answer in the terms of a bridge."""
    calls = [call for message in response.messages for call in calls_of(message)]
    return HostAnswer(response.text, calls, {}, "tool_calls" if calls else "stop")


def plain_message(message: Message) -> dict[str, Any]:
    """A message as handlers see it."""
    found: dict[str, Any] = {"role": str(message.role), "content": message.text}
    if calls := calls_of(message):
        found["tool_calls"] = calls
    for content in message.contents:
        if content.type == "function_result":
            return {"role": "tool", "tool_call_id": content.call_id, "content": str(content.result)}
    return found


def host_message(message: dict[str, Any]) -> Message:
    """A message of a handler as the framework's."""
    return Message(message["role"], [str(message["content"])])

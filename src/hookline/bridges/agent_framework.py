"""Hookline's hooks in agents of the Microsoft Agent Framework.

    from hookline.bridges.agent_framework import hookline

    agent = Agent(client, tools=tools, middleware=hookline([no_sudo]))

Carried are the prompt (`input`), model calls, tool calls and their results, `agent_stop` and the answer
(`output`). With a handler of `output`, a stream shows the answer when it is complete; with a handler of
`model_result` or `agent_stop`, a streamed run is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from agent_framework import (
    AgentContext,
    AgentMiddleware,
    AgentResponseUpdate,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
)

from hookline.errors import BridgeError

from .bridge import Bridge
from .reports import HostAnswer, HostRequest, ToolAnswer, replaced
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

_RUN: ContextVar[BridgeRun] = ContextVar("hookline_agent_framework_run")
NOT_STREAMED = ("model_result", "agent_stop")

TESTED: Final = {"agent-framework-core": ("1.23", "2")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> list[Any]:
    """Middleware that carries Hookline's hooks; `options` are those of `Bridge`."""
    bridge = Bridge(hooks, host="agent-framework", tested=TESTED, **options)
    return [HooklineAgent(bridge), HooklineChat(bridge), HooklineFunction()]


class HooklineAgent(AgentMiddleware):
    """Reports the runs of an agent to a bridge."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Start a run with the prompt, and judge the answer at its end."""
        said = next((m for m in reversed(context.messages) if m.role == "user"), None)
        prompt = said.text if said is not None else ""
        judges = [name for name in NOT_STREAMED if self.bridge.hooks[name].count()]
        if context.stream and judges:
            raise BridgeError(f"a streamed run cannot be judged by {', '.join(judges)}; use run()")
        run = await self.bridge.start(prompt)
        if said is not None and run.prompt != prompt:
            context.messages[context.messages.index(said)] = Message("user", [run.prompt])
        token = _RUN.set(run)
        if context.stream:  # the run goes on while the caller reads the stream, in this context
            self._stream(run, context)
            await call_next()
            return
        try:
            await call_next()
            while refused := await run.refuses_to_stop(context.result.text):
                context.messages.extend([*context.result.messages, Message("user", [refused])])
                await call_next()
        except BaseException as error:
            await run.fail(error)
            raise
        finally:
            _RUN.reset(token)
        await judge(run, context.result)

    def _stream(self, run: BridgeRun, context: AgentContext) -> None:
        """Judge the answer at the end of a stream; an error ends the run."""

        async def judged(response: Any) -> Any:
            return await judge(run, response)

        context.stream_consumption_context_manager_factories.append(lambda: failing(run))
        context.stream_result_transforms.append(judged)
        if run.judges:
            context.stream_buffer_updates = True
            context.stream_result_to_updates = updates_of


@contextmanager
def failing(run: BridgeRun) -> Iterator[None]:
    """End a run with the error that a stream raises."""
    try:
        yield
    except BaseException as error:
        run.abandon(error)
        raise


async def judge(run: BridgeRun, response: Any) -> Any:
    """End a run, whose response gets the text that handlers of `output` left."""
    text = await run.end(response.text)
    if text != response.text:
        response.messages[-1] = Message("assistant", [text])
    return response


def updates_of(response: Any) -> list[AgentResponseUpdate]:
    """The updates that a stream shows of a response."""
    return [
        AgentResponseUpdate(contents=list(message.contents), role=message.role)
        for message in response.messages
    ]


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

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Pass a model call through its hooks."""
        for tool in (context.options or {}).get("tools") or ():
            if isinstance(tool, Mapping):
                name = str(tool.get("name") or tool.get("type"))
                self.bridge.out_of_reach(name, "on the servers of the model's provider")
        run, originals = _RUN.get(), list(context.messages)
        before = [plain_message(message) for message in originals]

        def change(request: HostRequest) -> None:
            if request.messages != before:
                context.messages = replaced(originals, before, request.messages, host_message)
            if request.system:
                context.messages = [Message("system", [request.system]), *context.messages]

        async def ask(request: HostRequest) -> HostAnswer:
            change(request)
            await call_next()
            return answer_of(context.result)

        name = str((context.options or {}).get("model") or "")
        asked = HostRequest(list(before), name)
        if context.stream:
            change(await run.before_model(asked))

            async def answered(response: Any) -> Any:
                await run.after_model(answer_of(response))
                return response

            context.stream_result_hooks.append(answered)
            await call_next()
            return
        answer = await run.call_model(asked, ask)
        if context.result is None:
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

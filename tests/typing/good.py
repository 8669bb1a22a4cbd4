"""What a type checker must accept, in strict mode. Checked by test_typing.py, never imported."""

from typing import Any, assert_type

from hookline import Hooks, hookimpl
from hookline.events import (
    AgentEndEvent,
    HookContext,
    MessageReceiveEvent,
    MessageReceiveResult,
    MessageSendEvent,
    MessageSendResult,
    ToolCallEvent,
    ToolCallEventResult,
)
from hookline.hooks import Hook, Verdict
from hookline.hookspecs import TurnHooks
from hookline.types import Envelope

hooks = Hooks()


@hooks.on(ToolCallEvent, when="shell", guard=True)
async def no_shell(event: ToolCallEvent) -> ToolCallEventResult:
    return ToolCallEventResult(block=True, reason=event.tool_name)


@hooks.on(AgentEndEvent)
def done(event: AgentEndEvent, ctx: HookContext) -> None:
    print(len(event.messages), ctx.session_id)


@hooks.on("resolve_session")
def by_chat(message: Any) -> str:
    return str(message["chat_id"])


no_shell.off()
done.off()
assert_type(by_chat({"chat_id": 1}), str)

# The parameter has its type: no annotation is needed in a lambda.
off = hooks.register(ToolCallEvent, lambda event: print(event.tool_name.upper()))
off()
hooks.register("agent_end", print)


class Sessions(TurnHooks):
    @hookimpl
    async def resolve_session(self, message: Envelope) -> str | None:
        return "one"

    @hookimpl
    def build_prompt(self, message: Envelope, session_id: str, state: dict[str, Any]) -> str:
        return session_id


class Watch:
    @hookimpl(ToolCallEvent, guard=True)
    async def check(self, event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult | None:
        return ToolCallEventResult(ask=True)

    @hookimpl(MessageReceiveEvent)
    def reject(self, event: MessageReceiveEvent) -> MessageReceiveResult | None:
        return MessageReceiveResult(action="reject", reason=event.text)

    @hookimpl
    def agent_end(self, event: AgentEndEvent) -> None: ...


@hookimpl(AgentEndEvent)
def in_a_module(event: AgentEndEvent) -> None: ...


async def fire() -> None:
    hook = hooks[ToolCallEvent]
    assert_type(hook, Hook[ToolCallEvent, ToolCallEventResult])
    assert_type(await hook.fire(ToolCallEvent()), Verdict[ToolCallEvent])
    assert_type(await hooks[AgentEndEvent].fire(AgentEndEvent()), None)
    assert_type(await hooks[MessageSendEvent].fire(MessageSendEvent()), list[MessageSendResult])
    assert_type(await hooks.call(ToolCallEvent(), HookContext()), Verdict[ToolCallEvent])
    assert_type(await hooks.call(AgentEndEvent()), None)
    assert_type(await hooks.call(MessageSendEvent()), list[MessageSendResult])
    await hooks["load_state"].fire({"content": "hi"}, "session")


hooks.add(Sessions())
hooks.add(Watch())

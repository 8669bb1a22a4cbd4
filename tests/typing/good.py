"""What a type checker must accept, in strict mode. Checked by test_typing.py, never imported."""

from typing import Any, assert_type

from hookline import Hooks, hookimpl
from hookline.events import (
    AgentEndEvent,
    HookContext,
    MessageReceiveEvent,
    MessageReceiveResult,
    ToolCallEvent,
    ToolCallEventResult,
)
from hookline.hookspecs import TurnHooks
from hookline.typed_events import GatewayEvents, ToolEvents
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


class Watch(ToolEvents, GatewayEvents):
    @hookimpl(guard=True)
    async def tool_call(self, event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult | None:
        return ToolCallEventResult(ask=True)

    @hookimpl(specname="message:receive")
    def message_receive(
        self, event: MessageReceiveEvent, ctx: HookContext
    ) -> MessageReceiveResult | None:
        return MessageReceiveResult(action="reject", reason=event.text)


hooks.add(Sessions())
hooks.add(Watch())

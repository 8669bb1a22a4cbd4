"""What a type checker must refuse, with the rule that refuses it. Checked by test_typing.py."""

from typing import Any

from hookline import Hooks, hookimpl
from hookline.events import (
    AgentEndEvent,
    HookContext,
    MessageSendEvent,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEvent,
    ToolResultEventResult,
)
from hookline.hookspecs import TurnHooks

hooks = Hooks()


@hooks.on(ToolCallEvent)  # error: reportArgumentType
def wrong_event(event: AgentEndEvent) -> None: ...


@hooks.on(ToolCallEvent)  # error: reportArgumentType
def wrong_result(event: ToolCallEvent) -> ToolResultEventResult | None: ...


@hooks.on(ToolCallEvent, guard=True)  # error: reportArgumentType
async def wrong_result_later(event: ToolCallEvent) -> bool:
    return True


@hooks.on(AgentEndEvent)  # error: reportArgumentType
def nothing_to_return(event: AgentEndEvent) -> str:
    return "done"


hooks.register(ToolCallEvent, lambda event: print(event.tool_nmae))  # error: reportAttributeAccessIssue
hooks.register(ToolCallEvent, lambda event: ToolResultEventResult())  # error: reportArgumentType
hooks.register(ToolCallEvent, print, tryfrist=True)  # error: reportCallIssue


async def fire() -> None:
    await hooks[ToolCallEvent].fire(AgentEndEvent())  # error: reportArgumentType
    verdict = await hooks[ToolCallEvent].fire(ToolCallEvent())
    print(verdict.alowed)  # error: reportAttributeAccessIssue
    print(verdict.event.tool_nmae)  # error: reportAttributeAccessIssue
    ended = await hooks[AgentEndEvent].fire(AgentEndEvent())
    print(ended.denied)  # error: reportAttributeAccessIssue
    print((await hooks.call(ToolCallEvent())).supply)  # error: reportAttributeAccessIssue
    sent = await hooks[MessageSendEvent].fire(MessageSendEvent())
    print(sent.denied)  # error: reportAttributeAccessIssue


class Sessions(TurnHooks):
    @hookimpl
    def resolve_session(self, mesage: Any) -> str | None:  # error: reportIncompatibleMethodOverride
        return "one"

    @hookimpl
    def build_prompt(  # error: reportIncompatibleMethodOverride
        self, message: Any, session_id: str, state: dict[str, Any]
    ) -> int:
        return 3


class Watch:
    @hookimpl(ToolCallEvent)  # error: reportArgumentType
    def before(self, event: AgentEndEvent, ctx: HookContext) -> ToolCallEventResult | None:
        return None

    @hookimpl(ToolResultEvent, guard=True)  # error: reportArgumentType
    async def after(self, event: ToolResultEvent) -> ToolCallEventResult | None:
        return None

    @hookimpl(ToolCallEvent, gaurd=True)  # error: reportCallIssue
    def misspelt(self, event: ToolCallEvent) -> None: ...


ToolCallEventResult(blok=True)  # error: reportCallIssue
HookContext(session_id=3)  # error: reportArgumentType

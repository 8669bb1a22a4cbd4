"""What a type checker must refuse, with the rule that refuses it. Checked by test_typing.py."""

from typing import Any

from hookline import Hooks, hookimpl
from hookline.events import AgentEndEvent, HookContext, ToolCallEvent, ToolCallEventResult
from hookline.hookspecs import TurnHooks
from hookline.typed_events import ToolEvents

hooks = Hooks()


@hooks.on(ToolCallEvent)  # error: reportArgumentType
def wrong_event(event: AgentEndEvent) -> None: ...


hooks.register(ToolCallEvent, lambda event: print(event.tool_nmae))  # error: reportAttributeAccessIssue
hooks.register(ToolCallEvent, wrong_event, tryfrist=True)  # error: reportCallIssue


class Sessions(TurnHooks):
    @hookimpl
    def resolve_session(self, mesage: Any) -> str | None:  # error: reportIncompatibleMethodOverride
        return "one"

    @hookimpl
    def build_prompt(  # error: reportIncompatibleMethodOverride
        self, message: Any, session_id: str, state: dict[str, Any]
    ) -> int:
        return 3


class Watch(ToolEvents):
    @hookimpl
    def tool_call(  # error: reportIncompatibleMethodOverride
        self, event: AgentEndEvent, ctx: HookContext
    ) -> ToolCallEventResult | None:
        return None

    @hookimpl
    def tool_result(  # error: reportIncompatibleMethodOverride
        self, event: Any, ctx: HookContext
    ) -> ToolCallEventResult | None:
        return None


ToolCallEventResult(blok=True)  # error: reportCallIssue
HookContext(session_id=3)  # error: reportArgumentType

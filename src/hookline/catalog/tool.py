"""Interception around tools and models. Oldest first; one that fails is left out, unless said.

An implementation takes only the parameters it wants: `(call)` serves as well as
`(tool_name, arguments, agent_id)`.
"""

from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial
from typing import Any

from hookline.hooks import OLDEST, RAISE, SKIP, Answer, Family, around, chain, collect, hookspec, notify

from .calls import ToolCall
from .envelope import Message
from .stream import StreamEvent

intercept = partial(hookspec, order=OLDEST, errors=SKIP)


class ToolHooks(Family, name="tool"):
    """What stands around the agent's run and each tool call, in the order in which a run meets it."""

    @intercept(notify, fires="once per inbound turn, when the agent takes it up")
    def on_turn_start(self, agent_id: str, messages: list[Message]) -> Answer[None]:
        """Observe that a turn begins."""

    @intercept(collect, fires="once per run of the agent, with the system prompt")
    def bootstrap_files(self, agent_id: str) -> Answer[str | list[str]]:
        """Add text to the system prompt."""

    @intercept(around(passing="request"), errors=RAISE, fires="around every model call")
    def around_model_call(
        self, request: Any, call_next: Callable[[Any], Awaitable[AsyncIterable[StreamEvent]]]
    ) -> Answer[AsyncIterable[StreamEvent]]:
        """Wrap a model call; `call_next(request)` makes it."""

    @intercept(
        chain("arguments", carrier="call"),
        scope="session_id",
        match="tool_name",
        fires="once per tool call, before anything judges it",
    )
    def before_tool_call(
        self,
        call: ToolCall,
        tool_name: str,
        arguments: dict[str, Any],
        agent_id: str,
        session_id: str,
    ) -> Answer[dict[str, Any]]:
        """Rewrite a tool's arguments."""

    @intercept(
        around,
        errors=RAISE,
        scope="call.session_id",
        fires="around every tool that runs, once the call is authorised and on the tape",
    )
    def around_tool_call(self, call: ToolCall, call_next: Callable[[], Awaitable[Any]]) -> Answer[Any]:
        """Wrap a tool; `call_next()` runs what was authorised."""

    @intercept(
        chain("result"),
        scope="session_id",
        match="tool_name",
        fires="when a tool ran, well or badly",
    )
    def after_tool_call(
        self,
        call: ToolCall,
        tool_name: str,
        arguments: dict[str, Any],
        result: Any,
        is_error: bool,
        agent_id: str,
        session_id: str,
    ) -> Answer[Any]:
        """Rewrite a tool's result; if `is_error`, the tool raised, and this is its message."""

    @intercept(
        chain("result"),
        scope="session_id",
        match="tool_name",
        fires="last of a tool call, before its result goes on the tape",
    )
    def tool_result_persist(
        self, tool_name: str, result: Any, agent_id: str, session_id: str
    ) -> Answer[Any]:
        """Rewrite what the tape keeps; the rest of this turn still sees the live result."""

    @intercept(
        notify,
        scope="session_id",
        match="tool_name",
        fires="when the same call repeats without progress",
    )
    def on_loop_warning(
        self, tool_name: str, pattern: str, count: int, agent_id: str, session_id: str
    ) -> Answer[None]:
        """Observe that the agent may be going in circles."""

    @intercept(notify, fires="once per inbound turn, when the agent is done")
    def on_turn_end(self, agent_id: str, response: str) -> Answer[None]:
        """Observe that a turn ended, and with what answer."""

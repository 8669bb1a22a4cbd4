"""`Parent`: the agent in whose tool call another agent runs. Its guards hold in the other one too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hookline.channel import Channel, Note, Question
from hookline.errors import AgentError
from hookline.hooks import Decision, Ruling, Verdict
from hookline.tools.context import calling

if TYPE_CHECKING:
    from hookline.hooks.hook import HookBase
    from hookline.hookspecs import Hooks
    from hookline.tools.context import ToolContext
    from hookline.types import HookContext

    from .app import Hookline

GATES: Final = ("model_call", "model_result", "tool_call", "tool_result", "network_request")
"""The gates that a parent's handlers guard in its children."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The tool call that an agent runs in."""

    app: Hookline
    call: ToolContext

    @classmethod
    def current(cls) -> Parent | None:
        """The parent of an agent that starts here; None outside of tool calls."""
        call = calling()
        if call is None or call.app is None:
            return None
        parent = cls(call.app, call)
        most = call.app.limits.depth
        if parent.depth + 1 > most:
            raise AgentError(f"agents may call agents {most} levels deep, and this is one more")
        return parent

    @property
    def session_id(self) -> str:
        """The session of the tool call."""
        return self.call.session_id

    def waits_for(self, app: Hookline, session_id: str) -> bool:
        """Whether the parent, or one above it, is in a turn of this session."""
        above: Parent | None = self
        while above is not None:
            if above.app is app and above.session_id == session_id:
                return True
            above = getattr(above.app, "parents", {}).get(above.session_id)
        return False

    @property
    def depth(self) -> int:
        """How deep the parent itself is."""
        return self.call.depth

    @property
    def channel(self) -> Channel:
        """The parent's channel for questions and notes; the child's answer is the tool's result."""
        return QuestionChannel(self.app.context(self.session_id).channel)

    def count(self, usage: dict[str, Any]) -> None:
        """Add the usage of the child to the parent's."""
        run = self.app.sessions.run(self.session_id)
        if run is not None:
            run.count(usage)

    async def judge(self, action: dict[str, Any]) -> list[Ruling]:
        """The rulings of the parent's plugins and policy on a tool call of the child."""
        authorize = self.app.hooks["authorize_action"]
        authorized = await authorize.fire(dict(action)) if authorize.live else None
        if authorized is False:
            reason = f"{action['tool']} was not authorised by the calling agent"
            return [Ruling(Decision.DENY, reason, by="authorize_action")]
        judged = {**action, "authorized": authorized, "session_id": self.session_id}
        judge = getattr(self.app, "judge", None) or self.app.policy.judge
        return await judge(judged)

    @contextmanager
    def guarding(self, hooks: Hooks, session_id: str) -> Generator[None]:
        """Let the parent's gates judge what happens in a session of the child."""
        with ExitStack() as stack:
            if session_id != self.session_id:
                stack.callback(self.app.hooks.nest(session_id, within=self.session_id))
            scope = hooks.scope(session_id)
            for name in GATES:
                hook = self.app.hooks[name]
                if hook.count() and self.app.hooks is not hooks:
                    stack.callback(scope.register(name, forwarded(hook), guard=True))
            yield


def forwarded(hook: HookBase) -> Callable[[Any, HookContext], Awaitable[Any]]:
    """A handler that returns the verdict of another registry's gate."""

    async def ask_parent(event: Any, ctx: HookContext) -> Any:
        verdict: Verdict[Any] = await hook.fire(event, ctx)
        fields: dict[str, Any] = {**verdict.changes, **verdict.supplied}
        if verdict.denied:
            fields["block"] = True
        elif verdict.asked:
            fields["ask"] = True
        return hook.spec.result(**fields, reason=verdict.reason) if fields else None

    ask_parent.__module__, ask_parent.__qualname__ = "calling_agent", hook.spec.name
    return ask_parent


class QuestionChannel(Channel):
    """A channel that passes on questions and notes, and no answers."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def notify(self, note: Note) -> Awaitable[None] | None:
        """Show the note."""
        return self._channel.notify(note)

    async def ask(self, question: Question) -> str | None:
        """Ask the person."""
        return await self._channel.ask(question)

    @property
    def asks(self) -> bool:
        """Whether there may be someone to ask."""
        return self._channel.asks

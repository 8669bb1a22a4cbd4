"""The parts of a tool call: the caller, the request, the admission, the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hookline.hooks import Ruling
from hookline.types import (
    NOBODY,
    Content,
    Envelope,
    HookContext,
    Identity,
    ToolCall,
    ToolResultContent,
)

from .arguments import USUAL, ArgumentLimits, copied
from .tool import Tool


class Journal(Protocol):
    """Where calls and results are kept; each is durable when its coroutine returns."""

    async def tool_call(self, call: ToolCall, requested: Any, rulings: list[Ruling]) -> None:
        """Keep a call that is about to run: final arguments, the asked-for ones, who decided."""
        ...

    async def tool_result(
        self, result: ToolResultContent, *, ran: bool, terminate: bool, rulings: list[Ruling]
    ) -> None:
        """Keep a result, as `tool_result_persist` left it."""
        ...


Judge = Callable[[dict[str, Any]], Awaitable[Sequence[Ruling]]]
"""Policy that is not a plugin's: the default, packs and the operator's floor, after `authorize_action`.

It is given the action with `authorized`, the plugins' answer; every ruling goes on the tape."""

Resolve = Callable[[dict[str, Any]], Awaitable[Any]]
"""Puts a request to `resolve_approval`."""

Approve = Callable[[dict[str, Any], Resolve | None], Awaitable[Ruling]]
"""Decides on a question, by an earlier grant or a person's answer; None if no one is there."""

Record = Callable[[dict[str, Any], Sequence[Ruling], str], Awaitable[None]]
"""Records a decision: the call, the rulings, and the outcome. A failure denies the call."""


@dataclass(slots=True)
class ToolCaller:
    """On whose behalf calls are run."""

    ctx: HookContext
    journal: Journal
    workspace: Path
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """What tools remember. Nothing in it says who is judged."""
    timeout: float | None = None
    """Seconds that a tool may run which sets no limit of its own."""
    source: str = "model"
    """Who asks: model, command, shell, trigger, replay."""
    allowed: frozenset[str] | None = None
    """The tools within reach; None: all."""
    identity: Identity = NOBODY
    """On whose behalf the calls are judged."""
    limits: ArgumentLimits = USUAL
    message: Envelope = None
    """The message that the calls are made for, if there is one."""


@dataclass(slots=True)
class Requested:
    """A call as it was asked for; a model's arguments are text."""

    id: str
    name: str
    arguments: str | Mapping[str, Any]


@dataclass(slots=True)
class Admitted:
    """A call that passed the gates, or why it did not. No plugin is ever given this."""

    call: ToolCall
    """The one value that is judged, approved, kept and run; plugins get a `copy`."""
    requested: Requested
    tool: Tool | None = None
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    refusal: str | None = None
    rulings: list[Ruling] = field(default_factory=list[Ruling])

    def copy(self) -> ToolCall:
        """The call for a plugin to keep or change: nothing reads it again."""
        call = self.call
        return ToolCall(call.id, call.name, copied(call.arguments), call.agent_id, call.session_id)


@dataclass(slots=True)
class ToolOutcome:
    """The result of a call, as the model sees it."""

    call: ToolCall
    content: Content
    is_error: bool = False
    ran: bool = False
    terminate: bool = False

    @property
    def result(self) -> ToolResultContent:
        """The same as the record that events carry."""
        return ToolResultContent(self.call.id, self.call.name, self.content, self.is_error)

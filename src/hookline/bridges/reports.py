"""What a host and a bridge exchange: tool calls, requests to a model and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.hooks import HooklineError

if TYPE_CHECKING:
    from hookline.tools.calls import Admitted

T = TypeVar("T")


@dataclass(slots=True)
class HostCall:
    """A tool call of a host that the gates have judged."""

    id: str
    name: str
    arguments: dict[str, Any]
    """The arguments to run it with; handlers may have changed them."""
    refusal: str | None
    """Why it must not run. Give this text to the model as the result."""
    admitted: Admitted = field(repr=False)
    ran: asyncio.Future[Any] | None = field(default=None, repr=False)
    """Takes what the host's tool returned, if handlers of `around_tool_call` wait for it."""
    outcome: asyncio.Task[Any] | None = field(default=None, repr=False)


@dataclass(slots=True)
class HostRequest:
    """A request that a host is about to send to its model."""

    messages: list[dict[str, Any]]
    """Each with `role` and `content`; an assistant's may have `tool_calls`."""
    model: str = ""
    system: str = ""
    tools: Sequence[dict[str, Any]] = ()


@dataclass(slots=True)
class HostAnswer:
    """The answer of a host's model."""

    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Each with `id`, `name` and `arguments`."""
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    finish_reason: str = "stop"


class ToolAnswer(str):
    """The text that the model sees in place of a tool's own result."""

    is_error: bool
    ran: bool

    def __new__(cls, text: str, *, is_error: bool, ran: bool) -> ToolAnswer:
        """Make one."""
        answer = super().__new__(cls, text)
        answer.is_error, answer.ran = is_error, ran
        return answer


def plain(value: Any) -> Any:
    """A result in a form that handlers can read: text, JSON or content parts."""
    from hookline.tools.output import model_content

    try:
        model_content(value)
    except HooklineError:
        return str(value)
    return value


def shown(value: Any) -> Any:
    """A result as the model would see it."""
    from hookline.tools.output import model_content

    return model_content(value)


def replaced(
    originals: Sequence[T],
    before: Sequence[dict[str, Any]],
    after: Sequence[dict[str, Any]],
    build: Callable[[dict[str, Any]], T],
) -> list[T]:
    """The host's messages after handlers saw them: unchanged ones as they were, others made anew.

    `before` are the originals as handlers saw them, `after` what they left.
    """
    kept: list[T] = []
    start = 0
    for message in after:
        place = next((i for i in range(start, len(before)) if before[i] == message), None)
        if place is None:
            kept.append(build(message))
        else:
            kept.append(originals[place])
            start = place + 1
    return kept

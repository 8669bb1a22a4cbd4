"""The one interface that all models have: a request in, a stream of events out.

A model yields `StreamEvent`s with this data:

| kind | data |
|---|---|
| `text`, `reasoning` | `delta`: what was added; reasoning may have a `signature` |
| `tool_call` | `id`, `name`, and `arguments`: the JSON text as the model wrote it, valid or not |
| `usage` | `input_tokens`, `output_tokens`, and what else the model counts |
| `final` | `finish_reason`: `stop`, `tool_calls`, `length`, or the model's own word |

`final` comes last: a stream that ends without it was cut off. What goes wrong is raised from the
stream as a `ModelError`. Who stops reading early closes the stream, which stops the model:

    async with aclosing(model.stream(request)) as events:
        async for event in events:
            ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from hookline.types import Message, StreamEvent, TextPart

from .output import OutputSchema

ToolSchema: TypeAlias = dict[str, Any]
"""A tool as a model sees it: `name`, `description` and `parameters`, a JSON Schema."""

ToolChoice: TypeAlias = Literal["auto", "none", "required"] | dict[str, str]
"""Whether to call a tool; `{"name": …}` forces that one."""


@dataclass(slots=True)
class ModelRequest:
    """One question to a model.

    A message is a dict with a `role` (system, user, assistant, tool) and `content` (text or parts);
    an assistant's may have `tool_calls`, each with `id`, `name` and `arguments` (JSON text or a dict),
    a tool's has the `tool_call_id` it answers. An assistant's `reasoning` is kept for those who read
    it; a model is given it again only where its provider wants that. `options` are the model's own:
    temperature, max_tokens, seed, stop and so on; and `thinking`: off, low, medium or high.
    """

    model: str = ""
    messages: list[Message] = field(default_factory=list[Message])
    system: str = ""
    tools: list[ToolSchema] = field(default_factory=list[ToolSchema])
    tool_choice: ToolChoice = "auto"
    request_id: str = ""
    session_id: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    thinking: str | None = None
    output: OutputSchema | None = None
    """The form that the answer must have; None: any text."""
    encoded: dict[Any, Any] | None = field(default=None, repr=False, compare=False)
    """What encoders keep between the requests of one session, by encoder: objects with a `size` in
    characters. None: nothing is kept."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests with a stream."""

    name: str
    context_window: int | None

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Answer, piece by piece. It is an async generator; the module says what it yields."""
        ...

    async def close(self) -> None:
        """Give back what the model holds. It may be called twice."""
        ...


def content_text(content: object) -> str:
    """The written text of a message's content, whether it is text or parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, Iterable):
        return str(content)
    return "\n".join(text for part in cast("Iterable[object]", content) if (text := _part_text(part)))


def last_user_text(messages: Iterable[Message]) -> str:
    """What the user said last, or nothing."""
    for message in reversed(list(messages)):
        if message.get("role") == "user":
            return content_text(message.get("content"))
    return ""


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, dict):
        text = cast("dict[str, object]", part).get("text", "")
        return text if isinstance(text, str) else ""
    return ""

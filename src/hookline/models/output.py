"""Answers of a given form: the schema of one, and how a model without native support is held to it.

A model whose `native_output` is true, or a function that says so of the request, gets the schema in the
request. Any other is offered a tool whose arguments have the schema, and its call of that tool becomes
the text of the answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from hookline.types import StreamEvent

if TYPE_CHECKING:
    from .model import Model, ModelRequest, ToolChoice

NativeOutput: TypeAlias = "bool | Callable[[ModelRequest], bool]"
"""Whether a model holds its answer to a schema by itself; some do so only for some requests."""

ANSWER = "final_answer"


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The form of an answer."""

    name: str
    schema: dict[str, Any]
    """A JSON Schema, whose root is an object."""
    strict: bool = True
    """Whether it is in the subset that providers can enforce strictly."""

    def tool(self, taken: set[str]) -> dict[str, Any]:
        """The tool that stands for an answer of this form."""
        name = ANSWER
        while name in taken:
            name += "_"
        about = "Give the final answer. Call this once, when you have everything that it needs."
        return {"name": name, "description": about, "parameters": self.schema}


def stream_answer(model: Model, request: ModelRequest) -> AsyncIterator[StreamEvent]:
    """Ask a model; an answer in a given form comes as text, whatever the model can do."""
    native: NativeOutput = getattr(model, "native_output", False)
    if request.output is None or (native(request) if callable(native) else native):
        return model.stream(request)
    return _stream_by_tool(model, request, request.output)


async def _stream_by_tool(
    model: Model, request: ModelRequest, output: OutputSchema
) -> AsyncGenerator[StreamEvent]:
    tool = output.tool({each["name"] for each in request.tools})
    choice: ToolChoice = request.tool_choice
    if not request.tools or choice == "none":
        choice = {"name": tool["name"]}
    elif choice == "auto":
        choice = "required"
    asked = replace(request, tools=[*request.tools, tool], tool_choice=choice, output=None)
    held: list[StreamEvent] = []
    answer, calls = "", 0
    stream = cast("AsyncGenerator[StreamEvent]", model.stream(asked))
    async with aclosing(stream):
        async for event in stream:
            if event.kind == "tool_call" and event.data["name"] == tool["name"]:
                answer = event.data["arguments"]
            elif event.kind == "final":
                # With other calls beside it, the answer was made before their results were known.
                if answer and not calls:
                    yield StreamEvent("text", {"delta": answer})
                    event = StreamEvent("final", {**event.data, "finish_reason": "stop"})
                else:
                    for piece in held:
                        yield piece
                yield event
            elif event.kind == "text":
                held.append(event)
            else:
                calls += event.kind == "tool_call"
                yield event

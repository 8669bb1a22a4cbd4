"""The stream of a model's answer. A plugin that changes one wraps it:

    async def shout(parent: AsyncStreamEvents) -> AsyncStreamEvents:
        async def louder():
            async for event in parent:
                yield StreamEvent("text", {"delta": event.data["delta"].upper()})

        return AsyncStreamEvents(louder(), state=parent.state)

The state goes on with it.
"""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

StreamKind: TypeAlias = Literal[
    "text", "reasoning", "tool_call", "tool_result", "user", "usage", "error", "final",
    "progress", "end",
]  # fmt: skip
"""`user` is a message that joined a running answer. A channel also gets `progress` (a model is being
downloaded) and `end`, the last event of a message, with its `TurnResult` in `data["result"]`."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One piece of an answer: for text, `data["delta"]` is what was added."""

    kind: StreamKind
    data: dict[str, Any] = field(default_factory=dict[str, Any])


class AsyncStreamEvents:
    """An answer as it comes in, with the state of the run that makes it.

    It is read once. A tap wraps the iterator in its own and passes the state on.
    """

    __slots__ = ("_iterator", "_state")

    def __init__(self, iterator: AsyncIterable[StreamEvent], state: Any = None) -> None:
        self._iterator = iterator
        self._state = state

    @property
    def state(self) -> Any:
        """What the run keeps beside its events."""
        return self._state

    async def aclose(self) -> None:
        """Stop reading; a run that feeds this stream is cancelled."""
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return aiter(self._iterator)

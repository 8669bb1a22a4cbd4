"""`AgentStream`: a run of an agent whose answer is shown as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hookline.channel import Channel
from hookline.errors import AgentUsage
from hookline.types import Part, StreamEvent

if TYPE_CHECKING:
    from .agent import Agent
    from .run_record import RunResult

T = TypeVar("T")


class AgentStream(Generic[T]):
    """A run of an agent whose answer is shown as it comes; leaving the block early cancels the run."""

    def __init__(self, agent: Agent[T], prompt: str | Sequence[Part], session: str | None) -> None:
        self._agent, self._prompt, self._session = agent, prompt, session
        self._task: asyncio.Task[RunResult[T]] | None = None

    async def __aenter__(self) -> AgentStream[T]:
        from hookline.agent.feed import Feed

        self._feed = Feed()
        run = self._agent._run(self._prompt, self._session, FeedChannel(self._feed))  # pyright: ignore[reportPrivateUsage]
        self._task = asyncio.create_task(run)
        self._task.add_done_callback(lambda _: self._feed.close())
        return self

    async def __aexit__(self, *exc: object) -> None:
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # who leaves without the result does not want its error either

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        while events := await self._feed.take():
            for event in events:
                yield event
        await self._running  # an error of the run is raised here

    async def partials(self) -> AsyncIterator[Any]:
        """The typed answer so far, as plain data, each time it grows."""
        form, text, last = self._agent._form, "", None  # pyright: ignore[reportPrivateUsage]
        async for event in self:
            if event.kind in ("tool_result", "user"):
                text = ""  # the earlier text was not the answer
            elif event.kind == "text":
                text += event.data["delta"]
                found = text if form is None else form.partial(text)
                if found is not None and found != last:
                    last = found
                    yield found

    async def result(self) -> RunResult[T]:
        """Wait for the end of the run and return its result."""
        return await self._running

    @property
    def _running(self) -> asyncio.Task[RunResult[T]]:
        if self._task is None:
            raise AgentUsage("a stream is read inside `async with agent.stream(...) as stream:`")
        return self._task


class FeedChannel(Channel):
    """Hands the events of an answer to the reader of a stream."""

    def __init__(self, feed: Any) -> None:
        self._put = feed.put

    def stream(self, event: StreamEvent) -> None:
        """Hand an event on."""
        if event.kind != "end":
            self._put(event)

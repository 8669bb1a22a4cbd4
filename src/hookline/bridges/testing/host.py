"""`Host`: what the conformance suite needs to know about a host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostRun:
    """One run that a scenario asks for."""

    url: str
    """The base URL of an OpenAI-compatible endpoint; any key and model name will do."""
    hooks: Hooks
    prompt: str
    tools: Sequence[Callable[..., Any]]
    """Typed functions with docstrings."""
    options: Mapping[str, Any]
    """Further options of the bridge, such as `policy` and `channel`."""
    stream: bool = False
    """Whether to use the host's interface for streams, and to return all the text that it shows."""
    cancel: Event | None = None
    """Set when the run is to be cancelled; see `limited`."""
    provider_tool: bool = False
    """Whether the agent has a tool that the model's provider runs, such as a search on the web."""
    subagent: bool = False
    """Whether the agent has a subagent, `helper`, which has the tools in its place."""

    async def limited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine of the host, and cancel it when the scenario wants that."""
        task = asyncio.create_task(coroutine)
        while self.cancel is not None and not task.done():
            if self.cancel.is_set():
                task.cancel()
                await asyncio.wait([task])
                raise TimeoutError("the run was cancelled")
            await asyncio.sleep(0.02)
        return await task


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and how to run an agent of it."""

    name: str
    run: Callable[[HostRun], str]
    """Makes an agent that a bridge guards, runs it on the prompt and returns its answer."""
    packages: Sequence[str] = field(default=())
    """The distributions whose versions are reported."""
    delegation: tuple[str, Mapping[str, Any]] | None = None
    """The tool call with which a model hands work to the subagent `helper`."""
    excused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Scenarios that the host cannot carry although its bridge accepts the hooks, with the reason."""

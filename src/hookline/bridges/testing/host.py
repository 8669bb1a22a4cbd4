"""`Host`: what the conformance suite needs to know about a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks


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


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and how to run an agent of it."""

    name: str
    run: Callable[[HostRun], str]
    """Makes an agent that a bridge guards, runs it on the prompt and returns its answer."""
    packages: Sequence[str] = field(default=())
    """The distributions whose versions are reported."""
    excused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Scenarios that the host cannot carry although its bridge accepts the hooks, with the reason."""

"""One run of the agent: its input, its limits, and its state so far."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hookline.errors import LimitReached, OutputInvalid
from hookline.models import Model
from hookline.system.retry import RetryPolicy
from hookline.tape import Tape, TapeContext, TapeError
from hookline.tools.arguments import ArgumentLimits
from hookline.tools.calls import ToolCaller
from hookline.types import NOBODY, HookContext, Identity, Message, Prompt, StreamEvent

from .compactor import Compacting
from .conversation import Conversation
from .feed import Feed
from .journal import CutOffTurn, TapeJournal
from .segments import WHOLE, Streaming
from .steered_messages import Steering

if TYPE_CHECKING:
    from .output import OutputForm


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run."""

    steps: int = 50
    tool_seconds: float | None = 600.0
    parallel_tools: int = 8
    retry: RetryPolicy = field(default=RetryPolicy(attempts=4))
    """How failed model calls are tried again."""
    tokens: int | None = None
    """Tokens that a run and its subagents may use, in and out."""
    sent_back: int = 3
    """How many times `agent_stop` may send an agent back to work."""
    depth: int = 3
    """How deep subagents may have subagents."""
    subagents: int = 100
    """How many subagents of one session run at once."""
    compacting: Compacting = field(default_factory=Compacting)
    output_retries: int = 2
    """How many times an answer of another form than `output` is sent back."""
    streaming: Streaming = WHOLE
    """How an answer is judged while it streams."""
    tool_calls: int = 128
    """How many tool calls one answer of a model may ask for."""
    argument_size: int = 1_000_000
    """Characters of JSON in the arguments of one call."""
    argument_depth: int = 64
    """How deep the arguments of one call may be nested."""


def new_hex() -> str:
    """A unique id, at half the cost of a UUID."""
    return os.urandom(16).hex()


def nobody_minds(phase: str) -> None:
    """Ignore the phase of a run."""


@dataclass(slots=True)
class AgentRun:
    """One run: its input, and its state so far."""

    prompt: Prompt
    ctx: HookContext
    tape: Tape
    tape_context: TapeContext
    model: Model
    workspace: Path
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    limits: Limits = field(default_factory=Limits)
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    tool_choice: Any = "auto"
    envelope: Any = None
    identity: Identity = NOBODY
    """On whose behalf the run acts; everyone whose message joined it is part of this."""
    resume: CutOffTurn | None = None
    turn_id: str = field(default_factory=new_hex)
    tools: frozenset[str] | None = None
    """The tools that this agent may use; None: all."""
    instructions: str = ""
    """Added to the system prompt of this run only."""
    missing: list[str] = field(default_factory=list[str])
    """What the app runs without, kept with the turn."""
    thinking: str | None = None
    output: OutputForm[Any] | None = None
    """The form that the answer must have."""
    lineage: tuple[str, ...] = ()
    """The sessions above this one, the person's first."""
    on_phase: Callable[[Literal["turn", "compaction"]], None] = nobody_minds
    conversation: Conversation = field(default_factory=Conversation, repr=False, compare=False)
    """What the session keeps of its context."""

    journal: TapeJournal = field(init=False, repr=False, compare=False)
    """Writes on the tape, from the start of the run on."""
    feed: Feed = field(init=False, repr=False, compare=False)
    """The events for the reader, from the start of the run on."""
    steering: Steering = field(default_factory=Steering)
    system: str = ""
    messages: list[Message] = field(default_factory=list[Message])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    text: str = ""
    unsaved: list[str] = field(default_factory=list[str])
    """Pieces of the model's text that are not on the tape yet."""
    error: Exception | None = None
    sent_back: int = 0
    misread: int = 0
    """How many answers did not have the form that was asked for."""
    task: asyncio.Task[None] | None = None
    cancelled: bool = False
    parked: bool = False
    """Stopped to be continued: the tape does not say that the turn ended."""

    async def emit(self, event: StreamEvent) -> None:
        """Pass an event to the reader."""
        if event.kind == "text":
            self.unsaved.append(event.data["delta"])
        self.feed.put(event)

    async def cancel(self, *, park: bool = False) -> bool:
        """Stop the run, its tools and subagents with it; whether it was still going."""
        if self.task is None or self.task.done():
            return False
        self.cancelled, self.parked = True, park
        self.task.cancel()
        await asyncio.wait([self.task])
        return True

    async def finish(self, status: str, error: str | None = None) -> None:
        """Note on the tape how the turn ended."""
        partial = "" if status == "completed" else "".join(self.unsaved)
        await TapeJournal(self.tape).finish(self.turn_id, status, error, partial)

    def caller(self) -> ToolCaller:
        """Return the caller of the run's tool calls: on whose behalf, and within which limits."""
        limits = self.limits
        return ToolCaller(
            self.ctx,
            self.journal,
            self.workspace,
            self.state,
            limits.tool_seconds,
            allowed=self.tools,
            identity=self.identity,
            limits=ArgumentLimits(limits.argument_size, limits.argument_depth),
            message=self.envelope,
        )

    @property
    def tape_failed(self) -> bool:
        """Whether the run failed because its tape could not be written or read."""
        return isinstance(self.error, TapeError)

    def joined_by(self, identity: Identity) -> None:
        """Act for the sender of a message that joins the run, too."""
        self.identity = self.identity.joined_by(identity)
        self.ctx = replace(self.ctx, identity=self.identity)

    def count(self, usage: dict[str, Any]) -> None:
        """Add one answer's usage to the run's."""
        for name, number in usage.items():
            if isinstance(number, int | float):  # the cost is a fraction
                self.usage[name] = self.usage.get(name, 0) + number

    def check_budget(self) -> None:
        """Stop a run that exceeded a limit."""
        allowed = self.limits.tokens
        if allowed is not None and self.tokens > allowed:
            raise LimitReached(f"the agent used {self.tokens} tokens; it may use {allowed}")

    def wrong_form(self) -> str | None:
        """Return what to tell a model whose answer does not have its form; None if it has."""
        if self.output is None:
            return None
        try:
            self.output.read(self.text)
        except OutputInvalid as error:
            self.misread += 1
            if self.misread > self.limits.output_retries:
                name = self.output.schema.name
                raise OutputInvalid(
                    f"the model gave {self.misread} answers that are no {name}: {error}"
                ) from None
            return f"Your answer does not have the form that was asked for: {error}. Answer again."
        return None

    @property
    def tokens(self) -> int:
        """The tokens used so far, in and out."""
        return self.usage.get("input_tokens", 0) + self.usage.get("output_tokens", 0)

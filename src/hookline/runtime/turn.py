"""`ActiveTurn`: a message on its way through the pipeline, its agent run and its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from hookline.channel import NOWHERE, Channel, finished
from hookline.errors import BadInput, NotRunning
from hookline.turn_context import TurnContext, new_turn
from hookline.types import (
    NOBODY,
    AsyncStreamEvents,
    AudioPart,
    Envelope,
    FilePart,
    Identity,
    ImagePart,
    Part,
    Prompt,
    State,
    StreamEvent,
    TextPart,
    address_of,
    content_of,
    field_of,
)

if TYPE_CHECKING:
    from hookline.agent.engine import Engine
    from hookline.agent.journal import CutOffTurn
    from hookline.agent.run import AgentRun
    from hookline.hookspecs import Hooks

Listener = Callable[[StreamEvent], Any]
"""Receives each event of a stream as it arrives; may be async."""

Command: TypeAlias = Callable[[str, Envelope], Awaitable[str | None]]
"""Runs the slash command in a session's message and returns the reply."""

Outcome: TypeAlias = Literal[
    "answered", "handled", "blocked", "rejected", "dropped", "steered", "cancelled", "failed"
]
"""How a message ended: answered; handled or blocked by a plugin; rejected by its channel's hooks;
dropped; part of a running turn; or its turn was cancelled. `process` raises an error instead of
returning `failed`, which a gateway reports to the sender."""


@dataclass(slots=True)
class TurnResult:
    """The result of one inbound message."""

    session_id: str
    prompt: Prompt = ""
    model_output: str = ""
    outbounds: list[Envelope] = field(default_factory=list[Any])
    usage: dict[str, int] = field(default_factory=dict[str, int])
    outcome: Outcome = "answered"
    stopped: str | None = None
    """The reason why there is no answer."""
    parts: list[Part] = field(default_factory=list[Part])
    """Parts that handlers added to the answer, such as speech."""


@dataclass(slots=True, eq=False)
class ActiveTurn:
    """One message on its way through the pipeline, and the only owner of the run that answers it.

    The queue of the session holds the turn while it runs: `app.sessions.turn(session_id)`.
    """

    message: Envelope = None
    channel: Channel = NOWHERE
    session_id: str = ""
    identity: Identity = NOBODY
    """The sender of the message."""
    command: Command | None = None
    """Runs slash commands; without it, a message that begins with a slash is an ordinary message."""
    on_placed: Callable[[], None] | None = None
    """Called once, when the message has its place in the session and the next one may be received."""
    cut_off: CutOffTurn | None = None
    """The interrupted turn that this one continues."""
    context: TurnContext = field(default_factory=new_turn)
    run: AgentRun | None = None
    """The agent run, from its start until `finish`."""
    screened: bool = False
    """Whether `input` handlers have seen the message."""
    said: str = ""
    """The text of the message, as `message:receive` left it."""
    is_voice: bool = False
    """Whether the message came with a recording."""
    reported: Exception | None = None
    """The error that `on_error` handlers have seen."""

    def __post_init__(self) -> None:
        """Let the code of this turn find its channel."""
        self.context.channel = self.channel

    @property
    def acts_for(self) -> Identity:
        """The users on whose behalf the turn acts: the sender, and the senders of steered messages."""
        return self.identity if self.run is None else self.run.identity

    def in_session(self, session_id: str, turn_id: str = "") -> None:
        """Set the session, as soon as it is known."""
        self.session_id = self.context.session_id = session_id
        self.context.turn_id = turn_id or self.context.turn_id

    def placed(self) -> None:
        """Note that no later message of the chat can overtake this one."""
        on_placed, self.on_placed = self.on_placed, None
        if on_placed is not None:
            on_placed()

    # --- the agent run ------------------------------------------------------------------------

    def start(self, engine: Engine, run: AgentRun) -> AsyncStreamEvents:
        """Start the run and return its stream."""
        self.run = run
        return engine.start(run)

    async def stop(self, *, park: bool = False) -> bool:
        """Stop the run, its tools and subagents; return whether it was running.

        A parked run leaves no end on the tape, so that `resume` continues it.
        """
        return self.run is not None and await self.run.cancel(park=park)

    async def finish(self, status: str, error: str | None = None) -> dict[str, int]:
        """Release the run, write its end to the tape, and return its usage."""
        run, self.run = self.run, None
        if run is None:
            return {}
        if not run.parked and not run.tape_failed:
            await run.finish(status, error)
        return dict(run.usage)


class StreamedAnswer:
    """Assembles an answer from its stream and passes the stream on while it arrives.

    The answer is the text after the last tool result. If a handler may still block it, it is `held`:
    the listener receives nothing before `release`.
    """

    def __init__(self, listener: Listener | None, *, held: bool) -> None:
        self._listener = listener
        self._hold = held
        self._kept: list[StreamEvent] = []
        self._said: list[str] = []
        self._before: list[str] = []

    @property
    def text(self) -> str:
        """The text after the last tool result, or else before it."""
        return "".join(self._said) or "".join(self._before)

    async def take(self, event: StreamEvent) -> None:
        """Take one event; raise the error in an error event."""
        if event.kind == "error":
            raise event.data["error"]
        if event.kind == "text":
            self._said.append(event.data["delta"])
        elif event.kind in ("tool_result", "user") and self._said:
            self._before, self._said = self._said, []
        if self._hold and event.kind in ("text", "reasoning", "final"):
            self._kept.append(event)
        elif self._listener is not None:
            shown = self._listener(event)
            if type(shown) is CoroutineType:
                await shown
            elif shown is not None:
                await finished(shown)

    async def release(self, text: str) -> None:
        """Pass on the events that were held, with `text` in place of their own text."""
        kept, self._kept = self._kept, []
        if text != self.text:
            final = [StreamEvent("final", {**e.data, "text": text}) for e in kept if e.kind == "final"]
            kept = [StreamEvent("text", {"delta": text}), *final]
        if self._hold and self._listener is not None:
            for event in kept:
                await finished(self._listener(event))


async def model_stream(
    hooks: Hooks, prompt: Prompt, session_id: str, state: State
) -> AsyncStreamEvents:
    """Return the stream of the newest plugin that answers `run_model_stream` or `run_model`.

    The two hooks are walked together, in one order: the builtin plugin's stream never shadows the
    text of a newer plugin.
    """
    streams, texts = hooks["run_model_stream"], hooks["run_model"]
    if not texts.count():
        answer = await streams.fire(prompt, session_id, state)
        if answer is not None:
            return answer
    both = [*streams.run_order(session_id), *texts.run_order(session_id)]
    for impl in sorted((i for i in both if not i.wrapper), key=lambda i: i.sort_key):
        hook = streams if impl.spec is streams.spec else texts
        only = hook.only([impl, *(i for i in both if i.wrapper)])
        answer = await only(prompt=prompt, session_id=session_id, state=state)
        if answer is not None:
            return answer if hook is streams else one_chunk(answer)
    raise NotRunning("no plugin answers run_model_stream or run_model: is the builtin loaded?")


def one_chunk(text: str) -> AsyncStreamEvents:
    """Return a stream of one chunk."""

    async def chunks() -> AsyncIterator[StreamEvent]:
        yield StreamEvent("text", {"delta": text})
        yield StreamEvent("final", {"text": text, "finish_reason": "stop"})

    return AsyncStreamEvents(chunks())


def echo(message: Envelope, session_id: str, model_output: str) -> Envelope:
    """Return the answer as an envelope to the sender of the message."""
    channel, chat_id = address_of(message)
    return {
        "content": model_output,
        "session_id": session_id,
        "channel": channel,
        "chat_id": chat_id,
    }


def with_delivery_ids(message: Envelope, outbounds: list[Envelope]) -> list[Envelope]:
    """Give each outbound envelope of a message an id that is the same when it is sent again.

    A turn that is interrupted after it sent its answer sends it again when it resumes; the channel
    drops the duplicate.
    """
    message_id = field_of(message, "message_id")
    if not message_id:
        return outbounds
    return [
        {"delivery_id": f"{message_id}/{number}", **cast("Mapping[str, Any]", outbound)}
        if isinstance(outbound, Mapping)
        else outbound
        for number, outbound in enumerate(outbounds)
    ]


def with_content(message: Envelope, text: str) -> Envelope:
    """Return a copy of the message with another text."""
    if isinstance(message, Mapping):
        return {**cast("Mapping[str, Any]", message), "content": text}
    if is_dataclass(message) and not isinstance(message, type):
        return replace(message, content=text)
    changed: Any = copy(message)
    try:
        changed.content = text
    except AttributeError:
        raise BadInput(f"the content of a {type(message).__name__} cannot be changed") from None
    return changed


def with_context(prompt: Prompt, context: str) -> Prompt:
    """Put the text that `session_start` handlers added in front of a prompt."""
    if not context:
        return prompt
    if isinstance(prompt, str):
        return f"{context}\n\n{prompt}"
    parts = any(isinstance(part, TextPart | ImagePart | AudioPart | FilePart) for part in prompt)
    return [TextPart(context) if parts else {"type": "text", "text": context}, *prompt]


def parts_of(message: Envelope) -> list[Part]:
    """Return the parts of a message, or its text as one part."""
    parts = field_of(message, "parts")
    if parts:
        return list(parts)
    text = content_of(message)
    return [TextPart(text)] if text else []


def with_parts(message: Envelope, parts: list[Part], text: str) -> Envelope:
    """Return a copy of the message with other parts."""
    changed = with_content(message, text)
    if isinstance(changed, Mapping):
        return {**cast("Mapping[str, Any]", changed), "parts": parts}
    if is_dataclass(changed) and not isinstance(changed, type) and hasattr(changed, "parts"):
        return replace(changed, parts=parts)
    if hasattr(changed, "parts"):
        setattr(changed, "parts", parts)  # noqa: B010  (an object of a plugin's own class)
    return changed

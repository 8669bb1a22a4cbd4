"""The values that pass through hooks: messages, content parts, stream events, tool calls, contexts."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from hookline.errors import BadInput

from .channel import NOWHERE, Channel, Note, Question
from .hooks import Decision, EventResult, Ruling

Envelope: TypeAlias = Any
"""An inbound or outbound message: any mapping, or object with fields; read it with `field_of`."""

State: TypeAlias = dict[str, Any]
"""What the hooks of one turn share."""

Message: TypeAlias = dict[str, Any]
"""A model message: `role`, `content`, and related fields such as `tool_calls`."""

_PLAIN = (str, bytes, int, float, list, tuple, set)


def field_of(envelope: Envelope, name: str, default: Any = None) -> Any:
    """A field of a mapping or an object, or the default."""
    if type(envelope) is dict or isinstance(envelope, Mapping):  # the first is cheap, and the rule
        return envelope.get(name, default)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return getattr(envelope, name, default)


def content_of(envelope: Envelope) -> str:
    """The content of a message."""
    content = field_of(envelope, "content", "")
    return content if isinstance(content, str) else str(content)


def address_of(envelope: Envelope) -> tuple[str, str]:
    """The origin of a message: its channel and chat, each `default` if it names none."""
    channel, chat_id = field_of(envelope, "channel"), field_of(envelope, "chat_id")
    return (
        "default" if channel in (None, "") else str(channel),
        "default" if chat_id in (None, "") else str(chat_id),
    )


def check_envelope(envelope: Envelope) -> Envelope:
    """Give an inbound message back, or refuse one that has no fields to read."""
    kind = type(envelope).__name__
    if envelope is None or isinstance(envelope, _PLAIN):
        raise BadInput(
            f"a message must be a mapping or an object with fields, not {kind}: "
            'pass {"content": "..."}'
        )
    content = field_of(envelope, "content", None)
    parts = field_of(envelope, "parts")
    if not content and isinstance(parts, list | tuple) and parts:
        return _with_text(envelope, [_part(part) for part in cast("list[Any]", parts)])
    if content is None:
        raise BadInput("a message needs a field 'content', or 'parts'")
    if not isinstance(content, str):
        raise BadInput(f"a message's 'content' must be text, not {type(content).__name__}")
    return envelope


def _part(part: Any) -> Any:
    """A text part that is written as a dict, as a part; everything else as it is."""
    is_written = field_of(part, "type") == "text" and not isinstance(part, TextPart)
    return TextPart(str(field_of(part, "text", ""))) if is_written else part


def _with_text(envelope: Envelope, parts: list[Any]) -> Envelope:
    """A message with parts and no content: what its text parts say is its content."""
    said = {"content": text_of(parts), "parts": parts}
    if isinstance(envelope, Mapping):
        return {**cast("Mapping[str, Any]", envelope), **said}
    changed: Any = copy(envelope)
    try:
        changed.content, changed.parts = said.values()
    except AttributeError:
        raise BadInput(f"a {type(envelope).__name__} with parts needs a 'content' too") from None
    return changed


def check_outbound(outbound: Envelope) -> Envelope:
    """Give an outbound message back, or refuse what cannot be one."""
    if outbound is None or isinstance(outbound, _PLAIN):
        raise BadInput(
            f"render_outbound gave {outbound!r}, which is no message; "
            'give {"content": "...", "channel": ..., "chat_id": ...}'
        )
    return outbound


@dataclass(frozen=True, slots=True)
class TextPart:
    """Written text."""

    text: str = ""
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class AudioPart:
    """Recorded or synthesised speech."""

    data: bytes = b""
    mime_type: str = "audio/wav"
    type: Literal["audio"] = field(default="audio", init=False)


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: its bytes, or their location."""

    data: bytes = b""
    mime_type: str = "image/png"
    url: str | None = None
    type: Literal["image"] = field(default="image", init=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A document, such as a PDF: its bytes, or their location."""

    data: bytes = b""
    mime_type: str = "application/pdf"
    name: str = ""
    url: str | None = None
    type: Literal["file"] = field(default="file", init=False)


Part: TypeAlias = TextPart | AudioPart | ImagePart | FilePart
Content: TypeAlias = str | list[Part]
Prompt: TypeAlias = str | list[Any]
"""Text, or content parts: these, or dicts in the form that a model takes."""


def text_of(parts: Iterable[Part]) -> str:
    """The written text among the parts, a line for each."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


class Blocking(EventResult):
    """A result with `block` and `reason`."""

    __slots__ = ()

    block: bool
    reason: str | None

    def verdict(self) -> Ruling:
        """`block` denies."""
        return Ruling(denied_if(self.block), self.reason, self.set_fields("block", "reason"))


class Cancelling(EventResult):
    """A result with `cancel` and `reason`."""

    __slots__ = ()

    cancel: bool
    reason: str | None

    def verdict(self) -> Ruling:
        """`cancel` denies."""
        return Ruling(denied_if(self.cancel), self.reason, self.set_fields("cancel", "reason"))


def denied_if(deny: bool) -> Decision:
    """The decision of a result that can only deny."""
    return Decision.DENY if deny else Decision.ALLOW


def check_action(
    result: EventResult, action: str, actions: Any, *, transform: str, given: object
) -> None:
    """Refuse an action that does not exist, and a transform of nothing."""
    name = type(result).__name__
    if action not in get_args(actions):
        known = ", ".join(map(repr, get_args(actions)))
        raise ValueError(f"{name}: unknown action {action!r}; use one of {known}")
    if action == "transform" and given is None:
        raise ValueError(f"{name}: action 'transform' needs {transform}=")


class Identity(NamedTuple):
    """A user on a channel. A tuple, because the fields of a frozen dataclass can still be set."""

    user: str = ""
    channel: str = ""
    chat: str = ""
    others: tuple[Identity, ...] = ()
    """Everyone else whose messages steer the same turn. Gates and policy judge a call once for each
    of them, and the strictest decision counts."""

    @classmethod
    def of(cls, message: Envelope) -> Identity:
        """The identity of the sender of a message."""
        if message is None:
            return NOBODY
        user = field_of(message, "sender_id") or field_of(message, "user_id")
        channel, chat = field_of(message, "channel"), field_of(message, "chat_id")
        return cls(_text(user), _text(channel), _text(chat))

    @classmethod
    def restored(cls, kept: Any) -> Identity:
        """The identity that `plain` wrote; `NOBODY` if there is none."""
        if not isinstance(kept, Mapping):
            return NOBODY
        found = cast("Mapping[str, Any]", kept)
        others: Any = found.get("others") or ()
        return cls(
            _text(found.get("user")),
            _text(found.get("channel")),
            _text(found.get("chat")),
            tuple(cls.restored(other) for other in others),
        )

    @property
    def everyone(self) -> tuple[Identity, ...]:
        """Each participant on their own, the latest first."""
        return (self._replace(others=()), *self.others) if self.others else (self,)

    @property
    def views(self) -> tuple[Identity, ...]:
        """The identity as each participant's own: that participant first, the rest in `others`."""
        if not self.others:
            return (self,)
        everyone = self.everyone
        return tuple(one._replace(others=tuple(o for o in everyone if o != one)) for one in everyone)

    def joined_by(self, latest: Identity) -> Identity:
        """The identity of a turn after a message from `latest` joined it."""
        latest = latest._replace(others=())
        others = tuple(one for one in self.everyone if one != latest)
        return latest._replace(others=others)

    def plain(self) -> dict[str, Any]:
        """The identity as JSON."""
        found: dict[str, Any] = {"user": self.user, "channel": self.channel, "chat": self.chat}
        if self.others:
            found["others"] = [other.plain() for other in self.others]
        return found

    def stamped(self, message: Envelope) -> Envelope:
        """The message with these fields for its sender, whatever it says now."""
        if not isinstance(message, Mapping):
            return message
        own = {"sender_id": self.user, "channel": self.channel, "chat_id": self.chat}
        return {**cast("Mapping[str, Any]", message), **own}

    def __str__(self) -> str:
        said = " on ".join(part for part in (self.user, self.channel) if part) or "nobody"
        return "; ".join([said, *(f"also {other}" for other in self.others)])


NOBODY = Identity()
"""The user of a call by the application itself."""


def _text(value: Any) -> str:
    """A plain string: not an instance of a subclass, which could compare as it likes."""
    return "" if value is None else str.__str__(str(value))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool. It is immutable: a rewrite makes a new one."""

    id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResultContent:
    """The result of a tool call, as the model sees it."""

    tool_call_id: str = ""
    name: str = ""
    content: Content = ""
    is_error: bool = False


StreamKind: TypeAlias = Literal[
    "text", "reasoning", "tool_call", "tool_result", "user", "usage", "error", "final",
    "progress", "end",
]  # fmt: skip
"""`user` is a message that joined a running answer. A channel also gets `progress` (a model is being
downloaded) and `end`, the last event of a message, with its `TurnResult` in `data["result"]`."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One piece of an answer: for text, `data["delta"]` is the addition."""

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
        """Data that the run keeps besides its events."""
        return self._state

    async def aclose(self) -> None:
        """Stop reading; a run that feeds this stream is cancelled."""
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return aiter(self._iterator)


@dataclass(frozen=True, slots=True)
class HookContext:
    """The `ctx` argument of a handler."""

    session_id: str = ""
    agent_id: str = ""
    depth: int = 0
    """0 for the agent a person talks to, 1 for its subagents, and so on."""
    parent_session_id: str | None = None
    app: Any = None
    channel: Channel = NOWHERE
    """The way to the person whom the turn is for."""
    identity: Identity = NOBODY
    """On whose behalf this happens."""

    def notify(self, text: str) -> None:
        """Show the person a note. Returns at once, in any thread, whether or not anyone is there."""
        note = Note(str(text), self.session_id)
        if self.app is None:
            self.channel.notify(note)
        else:
            self.app.channels.notify(self.channel, note)

    async def ask(
        self,
        question: str,
        choices: Sequence[str] = (),
        *,
        default: str | None = None,
        timeout: float | None = None,
    ) -> str | None:
        """Ask the person and wait for the answer: one of the choices, or without choices any text.

        `default` is the answer if no one is there, the time is over or the connection is closed.
        """
        asked = Question(question, tuple(choices), default, timeout, session_id=self.session_id)
        if default is not None and asked.choices and default not in asked.choices:
            raise ValueError(f"the default {default!r} is not among the choices {asked.choices}")
        if self.app is None:
            answer = await self.channel.ask(asked)
            return default if answer is None else answer
        return await self.app.channels.ask(self, asked)

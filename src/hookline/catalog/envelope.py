"""What passes through a turn: the inbound or outbound envelope, the turn's state, model messages."""

from collections.abc import Mapping
from copy import copy
from typing import Any, TypeAlias, cast

from hookline.hooks import HooklineError

from .parts import TextPart, text_of

Envelope: TypeAlias = Any
"""An inbound or outbound message: any mapping, or object with fields; read it with `field_of`."""

State: TypeAlias = dict[str, Any]
"""What the hooks of one turn share."""

Message: TypeAlias = dict[str, Any]
"""A model message: `role`, `content`, and what belongs to it, such as `tool_calls`."""

_PLAIN = (str, bytes, int, float, list, tuple, set)


class EnvelopeError(HooklineError, TypeError):
    """An inbound message that cannot be read."""


def field_of(envelope: Envelope, name: str, default: Any = None) -> Any:
    """A field of a mapping or an object; the default where it has none."""
    if type(envelope) is dict or isinstance(envelope, Mapping):  # the first is cheap, and the rule
        return cast("Mapping[str, Any]", envelope).get(name, default)
    return getattr(envelope, name, default)


def content_of(envelope: Envelope) -> str:
    """What a message says."""
    content = field_of(envelope, "content", "")
    return content if isinstance(content, str) else str(content)


def address_of(envelope: Envelope) -> tuple[str, str]:
    """Where a message came from: its channel and chat, each `default` when it names none."""
    channel, chat_id = (field_of(envelope, name) for name in ("channel", "chat_id"))
    return (
        "default" if channel in (None, "") else str(channel),
        "default" if chat_id in (None, "") else str(chat_id),
    )


def check_envelope(envelope: Envelope) -> Envelope:
    """Give an inbound message back, or refuse one that has no fields to read."""
    kind = type(envelope).__name__
    if envelope is None or isinstance(envelope, _PLAIN):
        raise EnvelopeError(
            f"a message must be a mapping or an object with fields, not {kind}: "
            'pass {"content": "..."}'
        )
    content = field_of(envelope, "content", None)
    parts = field_of(envelope, "parts")
    if not content and isinstance(parts, list | tuple) and parts:
        return _with_text(envelope, [_part(part) for part in cast("list[Any]", parts)])
    if content is None:
        raise EnvelopeError("a message needs a field 'content', or 'parts'")
    if not isinstance(content, str):
        raise EnvelopeError(f"a message's 'content' must be text, not {type(content).__name__}")
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
        raise EnvelopeError(f"a {type(envelope).__name__} with parts needs a 'content' too") from None
    return changed


def check_outbound(outbound: Envelope) -> Envelope:
    """Give an outbound message back, or refuse what cannot be one."""
    if outbound is None or isinstance(outbound, _PLAIN):
        raise EnvelopeError(
            f"render_outbound gave {outbound!r}, which is no message; "
            'give {"content": "...", "channel": ..., "chat_id": ...}'
        )
    return outbound

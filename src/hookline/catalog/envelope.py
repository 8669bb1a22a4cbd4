"""What passes through a turn: the inbound or outbound envelope, the turn's state, model messages."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from hookline.hooks import HooklineError

Envelope: TypeAlias = Any
"""An inbound or outbound message: any mapping, or object with fields; read it with `field_of`."""

State: TypeAlias = dict[str, Any]
"""What the hooks of one turn share."""

Message: TypeAlias = dict[str, Any]
"""A model message: `role`, `content`, and what belongs to it, such as `tool_calls`."""

_MISSING: Any = object()
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
    content = field_of(envelope, "content", _MISSING)
    if content is _MISSING:
        raise EnvelopeError("a message needs a field 'content'")
    if not isinstance(content, str):
        raise EnvelopeError(f"a message's 'content' must be text, not {type(content).__name__}")
    return envelope

"""What passes through a turn: the inbound or outbound envelope, the turn's state, model messages."""

from typing import Any, TypeAlias

Envelope: TypeAlias = Any
"""An inbound or outbound message: any mapping, or object with fields."""

State: TypeAlias = dict[str, Any]
"""What the hooks of one turn share."""

Message: TypeAlias = dict[str, Any]
"""A model message: `role`, `content`, and what belongs to it, such as `tool_calls`."""

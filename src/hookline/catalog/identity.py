"""`Identity`: on whose behalf a turn runs. Policy, approvals and the audit log judge by it.

It is read once, from the message as the channel delivered it, and is immutable: what a plugin later
writes into the message or the turn's state does not change who is judged. Subagents, resumed turns
and second runs of a call keep the identity of the turn that started them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from .envelope import Envelope, field_of


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
        channel, chat = (field_of(message, name) for name in ("channel", "chat_id"))
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
"""Whoever no message names: a call of the application itself."""


def _text(value: Any) -> str:
    """A plain string: not an instance of a subclass, which could compare as it likes."""
    return "" if value is None else str.__str__(str(value))

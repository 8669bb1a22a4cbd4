"""`TurnContext`: where in a conversation the code at hand runs, for whoever watches.

Nothing decides by it: a hook's scope key is explicit. It says to which turn, model turn and tool call a
dispatch belongs, also where the hook's own parameters do not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from os import urandom
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .channel import Channel


class TurnContext:
    """A turn of a session, and how far in it: a model turn, a tool call."""

    __slots__ = ("call_id", "channel", "session_id", "step", "turn_id")

    def __init__(
        self,
        session_id: str = "",
        turn_id: str = "",
        step: int | None = None,
        call_id: str = "",
        channel: Channel | None = None,
    ) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.step = step
        """The index of the model turn."""
        self.call_id = call_id
        self.channel = channel
        """The channel of the message that this happens for."""


_HERE: ContextVar[TurnContext | None] = ContextVar("hookline_place", default=None)


here: Final[Callable[[], TurnContext | None]] = _HERE.get
"""The current position; None outside of turns and calls."""


def move_to(place: TurnContext) -> None:
    """From here on, in this task, the place is another one."""
    _HERE.set(place)


class at:  # noqa: N801  # read as a preposition; a generator costs more
    """Be at another place for the length of a block."""

    __slots__ = ("_place", "_token")

    def __init__(self, place: TurnContext) -> None:
        self._place = place

    def __enter__(self) -> TurnContext:
        self._token: Token[TurnContext | None] = _HERE.set(self._place)
        return self._place

    def __exit__(self, *_: object) -> None:
        _HERE.reset(self._token)


def new_turn(channel: Channel | None = None) -> TurnContext:
    """The place of a turn that begins; its session becomes known on the way."""
    return TurnContext(turn_id=urandom(16).hex(), channel=channel)


def call(session_id: str, call_id: str) -> TurnContext:
    """The position of a tool call, in the current turn if there is one."""
    outer = _HERE.get()
    if outer is None:
        return TurnContext(session_id, call_id=call_id)
    return TurnContext(session_id, outer.turn_id, outer.step, call_id, outer.channel)

"""Debouncing: merges messages that one sender sends in quick succession."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

from hookline.runtime.inbox.inbox import JOINED
from hookline.runtime.turn import parts_of, with_content, with_parts
from hookline.types import Envelope, address_of, content_of, field_of

Key = tuple[str, str, str]


class Debounce:
    """Holds a sender's messages until no other follows for a number of seconds."""

    def __init__(
        self, seconds: float, go: Callable[[Envelope], Any], joined: Callable[[Envelope], Any]
    ) -> None:
        self._seconds = seconds
        self._go, self._joined = go, joined
        self._waiting: dict[Key, tuple[list[Envelope], asyncio.TimerHandle]] = {}

    def add(self, message: Envelope) -> None:
        """Hold a message, which extends the wait of the earlier ones."""
        key = key_of_sender(message)
        messages: list[Envelope] = []
        if key in self._waiting:
            messages, timer = self._waiting[key]
            timer.cancel()
        timer = asyncio.get_running_loop().call_later(self._seconds, self._release, key)
        self._waiting[key] = ([*messages, message], timer)

    def pass_by(self, message: Envelope) -> None:
        """Release a message immediately, after its sender's earlier ones."""
        key = key_of_sender(message)
        if key in self._waiting:
            self._release(key)
        self._go(message)

    def flush(self) -> None:
        """Release everything now."""
        for key in [*self._waiting]:
            self._release(key)

    def _release(self, key: Key) -> None:
        messages, timer = self._waiting.pop(key)
        timer.cancel()
        for earlier in messages[:-1]:
            self._joined(earlier)
        self._go(together(messages))


def key_of_sender(message: Envelope) -> Key:
    """The sender and chat of a message."""
    return (*address_of(message), str(field_of(message, "sender_id") or ""))


def together(messages: list[Envelope]) -> Envelope:
    """The last of the messages, with the content of all of them."""
    last = messages[-1]
    if len(messages) == 1:
        return last
    if isinstance(last, Mapping):  # a turn's tape entry names all the messages that it answers
        earlier = (str(field_of(message, "message_id") or "") for message in messages[:-1])
        last = {**cast("Mapping[str, Any]", last), JOINED: "\n".join(earlier)}
    text = "\n".join(filter(None, map(content_of, messages)))
    if not any(field_of(message, "parts") for message in messages):
        return with_content(last, text)
    return with_parts(last, [part for message in messages for part in parts_of(message)], text)

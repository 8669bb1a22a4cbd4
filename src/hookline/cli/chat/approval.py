"""Approval in a chat: yes, no, or always for the same call."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

Answer: TypeAlias = Literal["once", "always", "no"]

PROMPT = "allow it? [y/N/always] "


def answer_of(typed: str) -> Answer:
    """What a person typed; anything but a yes is a no."""
    word = typed.strip().lower()
    if word in ("a", "always"):
        return "always"
    return "once" if word in ("y", "yes") else "no"


class Remembered:
    """The calls that were allowed once and for all, as long as the chat lasts.

    What is remembered is the tool with exactly these arguments, in this session.
    """

    def __init__(self) -> None:
        self._calls: set[str] = set()

    def __contains__(self, request: Any) -> bool:
        return key_of(request) in self._calls

    def add(self, request: Any) -> None:
        """Remember a call."""
        self._calls.add(key_of(request))


def key_of(request: Any) -> str:
    """What makes two calls the same."""
    named = (request["session_id"], request["tool"], request["arguments"], request["question"])
    return json.dumps(named, sort_keys=True, default=repr)

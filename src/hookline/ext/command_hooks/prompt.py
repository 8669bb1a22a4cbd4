"""What hooks add to a prompt: put before it when it is built."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from hookline.hooks import hookimpl
from hookline.runtime.turn import with_context


class PromptContext:
    """Puts the context that hooks gave for a session before its next prompt."""

    def __init__(self, take: Callable[[str], str]) -> None:
        self._take = take

    @hookimpl(wrapper=True)
    def build_prompt(self, session_id: str) -> Generator[None, Any, Any]:
        """The prompt, with what hooks add to it."""
        prompt = yield
        return with_context(prompt, self._take(session_id)) if prompt else prompt

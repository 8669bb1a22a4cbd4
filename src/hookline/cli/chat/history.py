"""The history of the prompt, in a file of the home; redacted if redaction is on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prompt_toolkit.history import FileHistory


class ChatHistory(FileHistory):
    """The lines of a file. In this process they are as they were typed."""

    def __init__(self, path: Path, redact: Callable[[str], str] | None = None) -> None:
        super().__init__(str(path))
        self._redact = redact

    def store_string(self, string: str) -> None:
        """Write a line to the file."""
        super().store_string(string if self._redact is None else self._redact(string))

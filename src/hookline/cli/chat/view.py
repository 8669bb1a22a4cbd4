"""What a chat shows and asks, on a terminal or in plain text; and text made safe for display."""

from __future__ import annotations

from typing import Any, Protocol

from hookline.channel import Question
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.text.printable import printable
from hookline.types import Content, StreamEvent


class ChatView(Protocol):
    """Displays a conversation: on a full terminal, or in plain lines."""

    def begin(self) -> None:
        """A turn begins."""
        ...

    def event(self, event: StreamEvent) -> None:
        """Show one piece of an answer."""
        ...

    def progress(self, text: str) -> None:
        """Show a running tool's progress."""
        ...

    def result(self, name: str, text: str, *, is_error: bool) -> None:
        """Show the result of the model's call."""
        ...

    def called(self, name: str, text: str, *, is_error: bool) -> None:
        """Show the result of the user's own call."""
        ...

    def end(self) -> None:
        """The turn is over, however it ended."""
        ...

    def say(self, text: str) -> None:
        """Show text outside of the stream: a message, or the reply of a command."""
        ...

    def note(self, text: str) -> None:
        """Mention something, in one line."""
        ...

    def error(self, text: str) -> None:
        """Tell what went wrong, in one line."""
        ...

    def last_result(self) -> str | None:
        """The last result of a tool, whole."""
        ...

    def clear(self) -> None:
        """Clear the screen."""
        ...


class MessageReader(Protocol):
    """Where messages come from."""

    @property
    def person(self) -> bool:
        """Whether a person is there to be asked."""
        ...

    async def read(self) -> str:
        """Return the next message. Raises EOFError at the end, ChatInterrupted if the user leaves."""
        ...

    async def ask(self, question: Question) -> str:
        """Show a question and return what the user types; raises EOFError or ChatInterrupted."""
        ...


def one_line(text: str, width: int) -> str:
    """The text in one line, shortened if necessary."""
    line = " ".join(printable(text[: width * 4]).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def text_of(content: Content | Any) -> str:
    """The text of a result; pictures and sounds are named."""
    if isinstance(content, str):
        return content
    parts = (getattr(part, "text", None) or f"[{getattr(part, 'type', 'part')}]" for part in content)
    return "\n".join(str(part) for part in parts)


def told(error: BaseException) -> str:
    """An error as a person reads it."""
    text = str(error) if isinstance(error, HooklineError) else error_text(error)
    return " ".join(printable(text).split())

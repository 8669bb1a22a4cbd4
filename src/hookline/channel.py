"""`Channel`: how a turn reaches the person or program that it is for.

    class Terminal(Channel):
        async def send(self, message):
            print(message["content"])
            return True

        def notify(self, note):
            print(note.text, file=sys.stderr)

        async def ask(self, question):
            return question.read(input(f"{question.text} {question.prompt}"))

    await app.process({"content": "hello"}, Terminal())

Every method is optional. A bare `Channel` discards messages, events and notes, and has no one to ask.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from .text.printable import visible

if TYPE_CHECKING:
    from .types import Envelope, StreamEvent

log = logging.getLogger("hookline.channel")

APPROVAL: Final = {
    "approve": "Approve once",
    "session": "Approve for this session",
    "reject": "Reject",
}
"""The answers to an approval that a button can give, with the label of each."""
APPROVAL_PROMPT: Final = "allow it? [y/N/session/minutes/why not]"
"""What else a person can type: for how long, or why not. `policy.answers` reads it."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a hook tells the person. It needs no answer."""

    text: str
    session_id: str = ""


@dataclass(frozen=True)
class Question:
    """A question of a hook, or an approval; it is answered by one line of text."""

    text: str
    choices: tuple[str, ...] = ()
    """The possible answers. Without choices, any text is an answer."""
    default: str | None = None
    """The answer if no one is there, the time is over, or the connection is closed."""
    timeout: float | None = None
    """Seconds to wait for the answer; None means as long as an approval."""
    id: str = ""
    session_id: str = ""
    """The session that asks; a subagent's has those above it before the last slash."""
    request: Mapping[str, Any] | None = None
    """The question as it is kept while it waits; that of an approval has the `tool` and `arguments`."""

    @classmethod
    def of(cls, request: Mapping[str, Any], timeout: float | None = None) -> Question:
        """The question of a stored request: an approval, or what `HookContext.ask` asked."""
        asked: Mapping[str, Any] = {"choices": APPROVAL, "default": "reject", "timeout": timeout}
        if request.get("kind") == ASK:
            asked = request["arguments"]
        return cls(
            str(request["question"]),
            tuple(asked["choices"]),
            asked["default"],
            asked["timeout"],
            str(request.get("id") or ""),
            str(request["session_id"]),
            request,
        )

    @property
    def is_approval(self) -> bool:
        """Whether the answer decides on a tool call."""
        return self.request is not None and self.request.get("kind") != ASK

    @property
    def labels(self) -> dict[str, str]:
        """The choices with the labels of their buttons."""
        return APPROVAL if self.is_approval else {choice: choice for choice in self.choices}

    @cached_property
    def call(self) -> str:
        """The call to approve, exactly as it will be made, with nothing left out or hidden."""
        if self.request is None or not self.is_approval:
            return ""
        return exact(self.request["tool"], self.request["arguments"])

    @property
    def diff(self) -> str:
        """What the call would change, if that is known."""
        return str(self.request.get("diff") or "") if self.request else ""

    @property
    def prompt(self) -> str:
        """What to show where the person types the answer."""
        if self.is_approval:
            return APPROVAL_PROMPT
        words = "/".join(self.choices) or "your answer"
        return visible(f"[{words}]" if self.default is None else f"[{words}, default {self.default}]")

    @property
    def unanswered(self) -> str:
        """What to print if there is no one to ask."""
        if self.is_approval:
            return f"not run, because no one is here to approve it: {self.call}"
        text = visible(self.text)
        if self.default is None:
            return f"no one is here to answer: {text}"
        return f"no one is here to answer, so the default {visible(self.default)!r} counts: {text}"

    def choice(self, answer: str) -> str | None:
        """The answer that a program or a button gives; None if the question does not take it."""
        if not self.choices:
            return answer if answer.strip() else self.default
        return answer if answer in self.choices else None

    def read(self, typed: str) -> str | None:
        """The answer that a person means; None if it is none of the choices.

        The beginning of a choice is enough if only one choice begins so. An empty line is the default.
        """
        words = typed.strip()
        if self.is_approval:
            return words or self.default
        if not words:
            return self.default
        if not self.choices or words in self.choices:
            return words
        low = words.casefold()
        same = [choice for choice in self.choices if choice.casefold() == low]
        found = same or [choice for choice in self.choices if choice.casefold().startswith(low)]
        return found[0] if len(found) == 1 else None


ASK: Final = "hook.ask"
"""The kind of the request that stands for a hook's question."""


class SignedAnswer(str):
    """An answer, and who gave it."""

    by: str

    def __new__(cls, text: str, by: str) -> SignedAnswer:
        """The text of the answer, with its author."""
        made = super().__new__(cls, text)
        made.by = by
        return made


class Channel:
    """The way to the person or program that a message came from."""

    async def send(self, message: Envelope) -> bool:
        """Deliver a complete outbound message: its `content`, and its `parts` if it has some.

        Returns whether it was delivered. The same answer may have been streamed before.
        """
        return False

    def stream(self, event: StreamEvent) -> Awaitable[None] | None:
        """Show a piece of the answer as it comes; `end` is the last event. May be async."""

    def notify(self, note: Note) -> Awaitable[None] | None:
        """Show a note. May be async; nothing waits for it."""

    async def ask(self, question: Question) -> str | None:
        """Ask the person and wait for the answer; None: there is no one to ask.

        The caller cancels it when the question's time is over, or someone answered elsewhere.
        """
        return None

    @property
    def streams(self) -> bool:
        """Whether anyone wants the pieces of an answer."""
        return type(self).stream is not Channel.stream

    @property
    def asks(self) -> bool:
        """Whether there may be someone to ask."""
        return type(self).ask is not Channel.ask


class Router(Channel):
    """A channel that leads to many chats."""

    def to(self, message: Envelope) -> Channel:
        """The channel of one message."""
        return self


NOWHERE: Final = Channel()
"""The channel of a turn that no one watches."""


class OneWay(Channel):
    """A channel for observers of a question: their notes arrive, and they ask no one."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def notify(self, note: Note) -> Awaitable[None] | None:
        """Show the note."""
        return self._channel.notify(note)


_STARTED: set[Any] = set()


def started(show: Callable[[], Any]) -> None:
    """Call a method of a channel that may be async, without waiting for it or failing with it."""
    try:
        shown = show()
        if inspect.isawaitable(shown):
            from asyncio import ensure_future

            task = ensure_future(_logged(shown))
            _STARTED.add(task)
            task.add_done_callback(_STARTED.discard)
    except Exception as error:
        log.warning("channel.failed: %r", error)


async def _logged(shown: Awaitable[Any]) -> None:
    try:
        await shown
    except Exception as error:
        log.warning("channel.failed: %r", error)


async def finished(given: Any) -> Any:
    """The result of a method that may be async."""
    return await given if inspect.isawaitable(given) else given


def exact(name: str, arguments: Any) -> str:
    """A call as it will be made, in one line, with nothing left out or hidden."""
    import json

    written = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, Mapping) else arguments
    return visible(f"{name} {written}", line=True)

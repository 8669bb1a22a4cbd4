"""A reply: one answer in a chat, shown while it comes by edits of its messages."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from functools import partial

from telegram import Message
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, TelegramError

from .api import Api
from .markup import LIMIT, as_html, length, pieces, seen

log = logging.getLogger("hookline.ext.telegram")

TYPING = 4.5
"""Seconds after which the "typing" indicator must be sent again."""
SHORTEST = 0.05
"""The least pause between two edits, whatever was set."""


@dataclass(frozen=True, slots=True)
class ChatTarget:
    """A chat, and optionally a topic in it."""

    chat: int
    topic: int | None = None

    @classmethod
    def of(cls, chat_id: str) -> ChatTarget | None:
        """The chat that an envelope names, or None."""
        chat, _, topic = chat_id.partition(":")
        try:
            return cls(int(chat), int(topic) if topic else None)
        except ValueError:
            return None

    def __str__(self) -> str:
        return str(self.chat) if self.topic is None else f"{self.chat}:{self.topic}"


@dataclass(slots=True)
class _ReplySection:
    """A run of text and the messages that show it."""

    text: str = ""
    messages: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Each message's id and the text it shows."""


class TelegramReply:
    """The reply to one message. Text written before a tool call stays as a separate message."""

    def __init__(self, api: Api, place: ChatTarget, *, edit_seconds: float | None) -> None:
        self.place = place
        self._api = api
        self._pause = edit_seconds
        """None: nothing is shown before the end."""
        self._sections = [_ReplySection()]
        self._changed = asyncio.Event()
        self._over = asyncio.Event()
        self._showing: asyncio.Task[None] | None = None
        self._typed = -TYPING
        self.finished = False
        """Whether the whole answer is there."""

    def begin(self) -> None:
        """Let the chat see that the agent is at it."""
        if self._showing is None:
            self._showing = asyncio.create_task(self._show())

    def add(self, delta: str) -> None:
        """More of the answer came."""
        self._sections[-1].text += delta
        if self._pause is not None:
            self._changed.set()

    def cut(self) -> None:
        """Start a new section."""
        if self._sections[-1].text.strip():
            self._sections.append(_ReplySection())

    async def finish(self, text: str) -> None:
        """Show the whole answer, whatever it takes."""
        await self.close()
        self.finished = True
        last = self._sections[-1]
        said_before = not last.text.strip() and len(self._sections) > 1
        if not (said_before and self._sections[-2].text == text):
            last.text = text
        if self._pause is None:
            self._sections = [_ReplySection(text)]
        for section in self._sections:
            await self._bring(section, patient=True)

    async def close(self) -> None:
        """Show nothing more, but let the current request finish."""
        self._over.set()
        self._changed.set()
        if self._showing is not None:
            await asyncio.wait([self._showing])

    async def _show(self) -> None:
        """Show the typing indicator and the text so far."""
        try:
            while not self._over.is_set():
                if not self._changed.is_set():
                    await self._type()
                    await _waited(self._changed, TYPING)
                    continue
                # A short answer comes in one message; and Telegram does not like many edits.
                await _waited(self._over, max(self._pause or 0.0, SHORTEST))
                if not self._over.is_set() and not self._api.is_held(self.place.chat):
                    self._changed.clear()
                    for section in self._sections:
                        await self._bring(section, patient=False)
        except TelegramError as error:  # the whole answer is tried once more at its end
            log.debug("telegram.not_shown error=%s", self._api.told(error))

    async def _type(self) -> None:
        if time.monotonic() - self._typed < TYPING:
            return
        self._typed = time.monotonic()
        chat, topic = self.place.chat, self.place.topic
        await self._api.once(
            chat,
            lambda: self._api.bot.send_chat_action(chat, ChatAction.TYPING, message_thread_id=topic),
        )

    async def _bring(self, section: _ReplySection, *, patient: bool) -> None:
        """Bring a section's messages up to date with its text."""
        for number, text in enumerate(pieces(section.text)):
            if number < len(section.messages):
                name, shown = section.messages[number]
                if shown == text:
                    continue
                name = await self._edit(name, text, patient=patient)
            else:
                name = await self._send(text, patient=patient)
            if name is None:
                return  # the next round tries it again
            section.messages[number : number + 1] = [(name, text)]
        if patient:
            await self._drop(section)

    async def _drop(self, section: _ReplySection) -> None:
        """Take away messages of an answer that became shorter."""
        chat, count = self.place.chat, len(pieces(section.text))
        for name, _ in section.messages[count:]:
            try:
                await self._api.once(chat, partial(self._api.bot.delete_message, chat, name))
            except TelegramError:
                pass  # already deleted, or too old to change
        del section.messages[count:]

    async def _send(self, text: str, *, patient: bool) -> int | None:
        chat, topic, bot = self.place.chat, self.place.topic, self._api.bot
        html = formatted(text)

        async def send() -> Message:
            if html is not None:
                try:
                    return await bot.send_message(
                        chat, html, parse_mode=ParseMode.HTML, message_thread_id=topic
                    )
                except BadRequest as error:
                    if not _is_markup(error):
                        raise
            return await bot.send_message(chat, text, message_thread_id=topic)

        sent = await (self._api.call if patient else self._api.once)(chat, send)
        return None if sent is None else sent.message_id

    async def _edit(self, name: int, text: str, *, patient: bool) -> int | None:
        """Edit a message, or send a new one if it was deleted."""
        chat, bot = self.place.chat, self._api.bot
        html = formatted(text)

        async def edit() -> Message | bool:
            if html is not None:
                try:
                    return await bot.edit_message_text(html, chat, name, parse_mode=ParseMode.HTML)
                except BadRequest as error:
                    if not _is_markup(error):
                        raise
            return await bot.edit_message_text(text, chat, name)

        try:
            done = await (self._api.call if patient else self._api.once)(chat, edit)
        except BadRequest as error:
            if "not modified" in str(error).lower():
                return name
            return await self._send(text, patient=patient)
        return None if done is None else name


async def say(api: Api, place: ChatTarget, text: str) -> None:
    """Send a text, in as many messages as it takes."""
    await TelegramReply(api, place, edit_seconds=None).finish(text)


def formatted(text: str) -> str | None:
    """A piece as HTML, or None if it is empty or too long."""
    html = as_html(text)
    shown = seen(html)
    return html if shown.strip() and length(shown) <= LIMIT else None


async def _waited(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not for ever."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        pass


def _is_markup(error: BadRequest) -> bool:
    return "parse entities" in str(error).lower()

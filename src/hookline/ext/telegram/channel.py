"""The Telegram channel: a bot's messages in, answers out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from telegram import Message, Update
from telegram.constants import ChatType
from telegram.error import TelegramError

from hookline.channel import NOWHERE, Channel, Note, Question
from hookline.ext.telegram.errors import TelegramFailed, UnreadableMessage
from hookline.runtime.gateway_channel import GatewayChannel, Handle
from hookline.runtime.turn import TurnResult
from hookline.text.printable import printable
from hookline.types import (
    AudioPart,
    Envelope,
    FilePart,
    ImagePart,
    Part,
    StreamEvent,
    TextPart,
    address_of,
    content_of,
    field_of,
)

from .api import Api
from .messages import complete, envelope_of, place_of
from .questions import Questions
from .receiver import PATH, Receiver
from .reply import ChatTarget, TelegramReply, say
from .settings import SECTION, TelegramSettings
from .sound import as_voice

if TYPE_CHECKING:
    from fastapi import APIRouter

    from hookline.runtime.gateway_channel import GatewayServices

log = logging.getLogger("hookline.ext.telegram")

GREETING = (
    "Hello. Write to me, or send a picture or a recording. /help lists what I know, /cancel stops me."
)
REFUSAL = "This agent talks only with people it knows. Your id is {}."
MOST_REFUSED = 10_000
"""How many people are remembered as having been refused."""


class TelegramChannel(GatewayChannel):
    """People who write to a bot."""

    name = "telegram"
    public = (PATH,)

    def __init__(self, gateway: GatewayServices) -> None:
        self.settings = gateway.app.config.settings(SECTION, TelegramSettings)
        self.gateway = gateway
        self.api = Api(self.settings)
        self._questions = Questions(self.api, gateway.approvals)
        self._receiver = Receiver(self.api, self.settings, self._take)
        self._handle: Handle = gateway.handle
        self._replies: dict[str, TelegramReply] = {}
        self._last: dict[ChatTarget, asyncio.Future[bool]] = {}
        """The latest message of each chat that waits to be accepted."""
        self._refused: dict[int, None] = {}

    async def start(self, handle: Handle) -> None:
        """Begin to receive."""
        self._handle = handle
        await self._receiver.start()

    async def stop(self) -> None:
        """Stop receiving; let replies that are being sent finish."""
        await self._receiver.stop()
        for reply in [*self._replies.values()]:
            await reply.close()
        await self._questions.close()
        await self.api.close()

    def routes(self) -> APIRouter | None:
        """The webhook, where Telegram calls one."""
        if self.settings.mode != "webhook":
            return None
        from .webhook import webhook_routes

        return webhook_routes(self._receiver, self.api.bot, self.settings.webhook_secret())

    # --- in -----------------------------------------------------------------------------------

    async def _take(self, update: Update) -> bool:
        """Accept an update. Return False if Telegram must deliver it again."""
        if update.callback_query is not None:
            if self.settings.allows(update.callback_query.from_user.id, _chat(update)):
                await self._questions.pressed(update.callback_query)
            return True
        message = update.message
        if message is None or (message.from_user is not None and message.from_user.is_bot):
            return True
        if await self._questions.replied(message):
            return True
        place = place_of(message)
        before = self._last.get(place)
        mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._last[place] = mine
        accepted = False
        try:
            # A message must not overtake one before it that must come again.
            accepted = (before is None or await asyncio.shield(before)) and await self._accept(message)
            return accepted
        finally:
            mine.set_result(accepted)
            if self._last.get(place) is mine:
                del self._last[place]

    async def _accept(self, message: Message) -> bool:
        person = message.from_user.id if message.from_user else None
        place = place_of(message)
        if not self.settings.allows(person, message.chat.id):
            await self._refuse(message)
            return True
        envelope = envelope_of(message, self._username())
        text = _addressed(envelope["content"], self._username())
        if text is None:
            return True  # a command for another bot of the group
        envelope["content"] = text
        envelope["role"] = "operator" if person in self.settings.operators else "user"
        if text.split(maxsplit=1)[:1] == ["/start"]:
            await self.tell(place, GREETING)
            return True
        try:
            await complete(envelope, message, self.api, self.settings.max_file)
        except UnreadableMessage as error:
            await self.tell(place, str(error))
            return True
        except TelegramError as error:
            await self.tell(place, f"What you sent could not be fetched: {self.api.told(error)}")
            return True
        await self._handle(envelope)
        return True

    def _username(self) -> str:
        try:
            return self.api.bot.username
        except RuntimeError:  # Telegram was out of reach at the start
            return ""

    async def _refuse(self, message: Message) -> None:
        """Tell an unknown sender once that they are not allowed; stay silent in groups."""
        person = message.from_user
        log.info("telegram.refused person=%s chat=%s", person and person.id, message.chat.id)
        if not self.settings.refuse or person is None or message.chat.type != ChatType.PRIVATE:
            return
        if person.id not in self._refused:
            if len(self._refused) >= MOST_REFUSED:
                self._refused.pop(next(iter(self._refused)))
            self._refused[person.id] = None
            await self.tell(place_of(message), REFUSAL.format(person.id))

    # --- out ----------------------------------------------------------------------------------

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message, or None if the message names no chat."""
        place = ChatTarget.of(address_of(message)[1])
        return NOWHERE if place is None else TelegramChat(self, message, place)

    def reply(self, key: str, place: ChatTarget) -> TelegramReply:
        """The reply to a message, begun if there is none."""
        if key not in self._replies:
            pause = self.settings.edit_seconds if self.settings.stream else None
            self._replies[key] = TelegramReply(self.api, place, edit_seconds=pause)
        return self._replies[key]

    async def close_reply(self, key: str) -> None:
        """Show nothing more of the reply to a message."""
        reply = self._replies.pop(key, None)
        if reply is not None:
            await reply.close()

    async def send(self, outbound: Envelope) -> bool:
        """Send a message to the chat that it names."""
        place = ChatTarget.of(address_of(outbound)[1])
        if place is None:
            return False
        try:
            await say(self.api, place, content_of(outbound))
        except TelegramError as error:
            raise TelegramFailed(f"the answer could not be sent: {self.api.told(error)}") from None
        return True

    async def send_parts(self, place: ChatTarget, parts: list[Part]) -> None:
        """Send sound and pictures that belong to an answer."""
        try:
            for part in parts:
                await self._send_part(place, part)
        except TelegramError as error:
            raise TelegramFailed(f"a part could not be sent: {self.api.told(error)}") from None

    async def _send_part(self, place: ChatTarget, part: Part) -> None:
        bot, chat, topic = self.api.bot, place.chat, place.topic
        if isinstance(part, TextPart):
            await say(self.api, place, part.text)
        elif isinstance(part, AudioPart):
            voice = await asyncio.to_thread(as_voice, part)
            if voice is not None:
                await self.api.call(chat, lambda: bot.send_voice(chat, voice, message_thread_id=topic))
                return
            name = f"answer.{part.mime_type.partition('/')[2].partition(';')[0] or 'wav'}"
            await self.api.call(
                chat,
                lambda: bot.send_document(chat, part.data, filename=name, message_thread_id=topic),
            )
        elif isinstance(part, FilePart):
            document = part.url or part.data
            named = part.name or None
            await self.api.call(
                chat,
                lambda: bot.send_document(chat, document, filename=named, message_thread_id=topic),
            )
        elif picture := _picture(part):
            await self.api.call(chat, lambda: bot.send_photo(chat, picture, message_thread_id=topic))

    async def tell(self, place: ChatTarget, text: str) -> None:
        """Say something that no turn depends on."""
        try:
            await say(self.api, place, text)
        except TelegramError as error:
            log.error("telegram.not_told chat=%s error=%s", place.chat, self.api.told(error))

    async def ask(self, question: Question, place: ChatTarget, person: str) -> str:
        """Ask a person in a chat."""
        return await self._questions.ask(question, place, person)


class TelegramChat(Channel):
    """The channel of one message, in its chat."""

    def __init__(self, channel: TelegramChannel, message: Envelope, place: ChatTarget) -> None:
        self._channel = channel
        self._message = message
        self._place = place
        self._key = str(field_of(message, "message_id") or "")

    def stream(self, event: StreamEvent) -> Awaitable[None] | None:
        """Show a piece of the answer, when it is time."""
        if event.kind == "end":
            return self._end(event.data["result"])
        reply = self._channel.reply(self._key, self._place)
        if not reply.finished:
            reply.begin()
            if event.kind == "text":
                reply.add(event.data["delta"])
            elif event.kind in ("tool_call", "user"):
                reply.cut()
        return None

    async def send(self, message: Envelope) -> bool:
        """Replace the partial answer by the whole one; send parts unchanged."""
        parts: list[Part] = field_of(message, "parts") or []
        if parts:
            await self._channel.send_parts(self._place, parts)
            return True
        reply = self._channel.reply(self._key, self._place)
        if reply.finished:
            return await self._channel.send(message)
        try:
            await reply.finish(content_of(message))
        except TelegramError as error:
            told = self._channel.api.told(error)
            raise TelegramFailed(f"the answer could not be sent: {told}") from None
        return True

    async def _end(self, result: TurnResult) -> None:
        """If the turn gave no answer, send the reason."""
        await self._channel.close_reply(self._key)
        if result.outcome == "failed":
            why = self._channel.api.masked(result.stopped or "")
            await self._channel.tell(self._place, f"⚠ {why}")
            return
        # A parked turn continues at the next start, and `/cancel` reports by itself that it stopped.
        is_told = result.outbounds or result.outcome in ("answered", "steered", "cancelled")
        if not is_told and result.stopped and result.stopped != result.outcome:
            await self._channel.tell(self._place, result.stopped)

    async def notify(self, note: Note) -> None:
        """Show a note as a message."""
        await self._channel.tell(self._place, printable(note.text))

    async def ask(self, question: Question) -> str | None:
        """Ask the sender, with buttons; a turn without a sender asks the person of a private chat."""
        place, person = self._place, str(field_of(self._message, "sender_id") or "")
        if not person and place.chat > 0:  # a private chat has its person's id
            person = str(place.chat)
        return await self._channel.ask(question, place, person) if person else None


def _chat(update: Update) -> int | None:
    return update.effective_chat.id if update.effective_chat is not None else None


def _addressed(text: str, username: str) -> str | None:
    """Strip the bot's name from a command. None if the command is for another bot."""
    if not text.startswith("/"):
        return text
    first, space, rest = text.partition(" ")
    command, at, bot = first.partition("@")
    if at and username and bot.lower() != username.lower():
        return None
    return f"{command}{space}{rest}" if at else text


def _picture(part: ImagePart) -> bytes | str | None:
    return part.url or part.data or None

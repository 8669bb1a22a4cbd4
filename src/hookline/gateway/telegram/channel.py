"""The Telegram channel: a bot's messages in, answers out."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from telegram import Message, Update
from telegram.constants import ChatType
from telegram.error import TelegramError

from hookline.catalog.envelope import Envelope, address_of, content_of, field_of
from hookline.catalog.parts import AudioPart, ImagePart, Part, TextPart
from hookline.catalog.stream import StreamEvent
from hookline.channel import Note, Question
from hookline.gateway.channel import Channel, Handle, inbound, is_answer
from hookline.text import printable
from hookline.turn import TurnResult

from .api import Api, TelegramFailed
from .messages import Unreadable, complete, envelope_of, place_of
from .questions import Questions
from .receiver import PATH, Receiver
from .reply import Place, Reply, say
from .settings import SECTION, TelegramSettings
from .sound import as_voice

if TYPE_CHECKING:
    from fastapi import APIRouter

    from hookline.gateway.gateway import Gateway

log = logging.getLogger("hookline.gateway.telegram")

GREETING = (
    "Hello. Write to me, or send a picture or a recording. /help lists what I know, /cancel stops me."
)
REFUSAL = "This agent talks only with people it knows. Your id is {}."
MOST_REFUSED = 10_000
"""How many people are remembered as having been refused."""


class TelegramChannel(Channel):
    """People who write to a bot."""

    name = "telegram"
    public = (PATH,)

    def __init__(self, gateway: Gateway) -> None:
        config = gateway.app.config
        config.declare(SECTION, TelegramSettings)
        self.settings = config.settings(SECTION, TelegramSettings)
        self.gateway = gateway
        self.api = Api(self.settings)
        self._questions = Questions(self.api, gateway.approvals)
        self._receiver = Receiver(self.api, self.settings, self._take)
        self._handle: Handle = gateway.handle
        self._replies: dict[str, Reply] = {}
        self._last: dict[Place, asyncio.Future[bool]] = {}
        """The latest message of each chat that waits to be accepted."""
        self._refused: dict[int, None] = {}

    async def start(self, handle: Handle) -> None:
        """Begin to receive."""
        self._handle = handle
        await self._receiver.start()

    async def stop(self) -> None:
        """Receive nothing more; what is being shown comes to its end."""
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
        """Take an update over; False where it must come again."""
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
            await self._tell(place, GREETING)
            return True
        try:
            await complete(envelope, message, self.api, self.settings.max_file)
        except Unreadable as error:
            await self._tell(place, str(error))
            return True
        except TelegramError as error:
            await self._tell(place, f"What you sent could not be fetched: {self.api.told(error)}")
            return True
        await self._handle(envelope)
        return True

    def _username(self) -> str:
        try:
            return self.api.bot.username
        except RuntimeError:  # Telegram was out of reach at the start
            return ""

    async def _refuse(self, message: Message) -> None:
        """Tell somebody unknown so, once, and in no group."""
        person = message.from_user
        log.info("telegram.refused person=%s chat=%s", person and person.id, message.chat.id)
        if not self.settings.refuse or person is None or message.chat.type != ChatType.PRIVATE:
            return
        if person.id not in self._refused:
            if len(self._refused) >= MOST_REFUSED:
                self._refused.pop(next(iter(self._refused)))
            self._refused[person.id] = None
            await self._tell(place_of(message), REFUSAL.format(person.id))

    # --- out ----------------------------------------------------------------------------------

    def _reply(self, message: Envelope) -> Reply | None:
        """The reply to a message, begun where there is none."""
        key = str(field_of(message, "message_id") or "")
        place = Place.of(address_of(message)[1])
        if place is None:
            return None
        if key not in self._replies:
            pause = self.settings.edit_seconds if self.settings.stream else None
            self._replies[key] = Reply(self.api, place, edit_seconds=pause)
        return self._replies[key]

    async def stream(self, inbound: Envelope, event: StreamEvent) -> None:
        """Show a piece of the answer, when it is time."""
        reply = self._reply(inbound)
        if reply is None or reply.finished:
            return
        reply.begin()
        if event.kind == "text":
            reply.add(event.data["delta"])
        elif event.kind in ("tool_call", "user"):
            reply.cut()

    async def send(self, outbound: Envelope) -> bool:
        """Send a whole answer; that of the message at hand takes the place of what was shown of it."""
        place = Place.of(address_of(outbound)[1])
        if place is None:
            return False
        text, current = content_of(outbound), inbound.get()
        try:
            if current is not None and is_answer(outbound):
                reply = self._reply(current)
                if reply is not None and not reply.finished:
                    await reply.finish(text)
                    return True
            await say(self.api, place, text)
        except TelegramError as error:
            raise TelegramFailed(f"the answer could not be sent: {self.api.told(error)}") from None
        return True

    async def publish(self, inbound: Envelope, parts: list[Part]) -> None:
        """Send sound and pictures that belong to an answer."""
        place = Place.of(address_of(inbound)[1])
        if place is None:
            return
        try:
            for part in parts:
                await self._send_part(place, part)
        except TelegramError as error:
            raise TelegramFailed(f"a part could not be sent: {self.api.told(error)}") from None

    async def _send_part(self, place: Place, part: Part) -> None:
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
        elif picture := _picture(part):
            await self.api.call(chat, lambda: bot.send_photo(chat, picture, message_thread_id=topic))

    async def end(self, inbound: Envelope, result: TurnResult) -> None:
        """Say why there is no answer, where there is none."""
        await self._over(inbound)
        place = Place.of(address_of(inbound)[1])
        if place is None or result.outbounds or result.outcome in ("answered", "steered"):
            return
        if result.outcome == "cancelled":
            # What is parked goes on at the next start; `/cancel` says itself that it stopped.
            return
        if result.stopped and result.stopped != result.outcome:
            await self._tell(place, result.stopped)

    async def error(self, inbound: Envelope, message: str) -> None:
        """Tell what went wrong."""
        await self._over(inbound)
        place = Place.of(address_of(inbound)[1])
        if place is not None:
            await self._tell(place, f"⚠ {self.api.masked(message)}")

    async def _over(self, message: Envelope) -> None:
        reply = self._replies.pop(str(field_of(message, "message_id") or ""), None)
        if reply is not None:
            await reply.close()

    async def _tell(self, place: Place, text: str) -> None:
        """Say something that no turn depends on."""
        try:
            await say(self.api, place, text)
        except TelegramError as error:
            log.error("telegram.not_told chat=%s error=%s", place.chat, self.api.told(error))

    # --- waiting for a person -------------------------------------------------------------------

    async def notify(self, inbound: Envelope, note: Note) -> None:
        """Show a note as a message."""
        place = Place.of(address_of(inbound)[1])
        if place is not None:
            await self._tell(place, printable(note.text))

    async def ask(self, inbound: Envelope, question: Question) -> str | None:
        """Ask the sender, with buttons; a turn without a sender asks the person of a private chat."""
        place, person = Place.of(address_of(inbound)[1]), str(field_of(inbound, "sender_id") or "")
        if place is not None and not person and place.chat > 0:  # a private chat has its person's id
            person = str(place.chat)
        if place is None or not person:
            return None
        return await self._questions.ask(question, place, person)


def _chat(update: Update) -> int | None:
    return update.effective_chat.id if update.effective_chat is not None else None


def _addressed(text: str, username: str) -> str | None:
    """A text with `/command@bot` as `/command`; None where it is meant for another bot."""
    if not text.startswith("/"):
        return text
    first, space, rest = text.partition(" ")
    command, at, bot = first.partition("@")
    if at and username and bot.lower() != username.lower():
        return None
    return f"{command}{space}{rest}" if at else text


def _picture(part: ImagePart) -> bytes | str | None:
    return part.url or part.data or None

"""Messages of Telegram as envelopes: text, pictures and recordings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hookline.ext.telegram.errors import UnreadableMessage
from hookline.types import AudioPart, ImagePart, Part, TextPart

from .reply import ChatTarget

if TYPE_CHECKING:
    from telegram import Message

    from .api import Api

CHANNEL = "telegram"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that Telegram keeps for a message."""

    kind: Literal["image", "audio"]
    file_id: str
    mime_type: str
    size: int


def place_of(message: Message) -> ChatTarget:
    """The chat of a message, and its topic in a forum."""
    topic = message.message_thread_id if message.is_topic_message else None
    return ChatTarget(message.chat.id, topic)


def key_of(message: Message) -> str:
    """The key of a message: Telegram's message ids are unique only within a chat."""
    return f"{CHANNEL}:{message.chat.id}:{message.message_id}"


def envelope_of(message: Message, username: str = "") -> dict[str, Any]:
    """The envelope of a message, without attachments."""
    sender = message.from_user or message.sender_chat
    text = (message.text or message.caption or "").strip()
    if username:
        text = text.removeprefix(f"@{username}").lstrip()
    return {
        "content": text,
        "channel": CHANNEL,
        "chat_id": str(place_of(message)),
        "sender_id": str(sender.id) if sender is not None else "",
        "message_id": key_of(message),
    }


def attachment_of(message: Message) -> Attachment | None:
    """The picture or the recording of a message."""
    if message.photo:
        best = message.photo[-1]  # the largest comes last
        return Attachment("image", best.file_id, "image/jpeg", best.file_size or 0)
    if sound := message.voice or message.audio:
        return Attachment("audio", sound.file_id, sound.mime_type or "audio/ogg", sound.file_size or 0)
    if (file := message.document) and file.mime_type:
        kind = file.mime_type.partition("/")[0]
        if kind in ("image", "audio"):
            return Attachment(kind, file.file_id, file.mime_type, file.file_size or 0)
    return None


async def complete(envelope: dict[str, Any], message: Message, api: Api, max_file: int) -> None:
    """Download the attachments of a message; refuse an empty message."""
    attachment = attachment_of(message)
    if attachment is None:
        if not envelope["content"]:
            raise UnreadableMessage("I can read text, pictures and recordings, but not this.")
        return
    part = await _fetched(attachment, message.chat.id, api, max_file)
    said = [TextPart(envelope["content"])] if envelope["content"] else []
    envelope["parts"] = [*said, part]


async def _fetched(attachment: Attachment, chat: int, api: Api, max_file: int) -> Part:
    if attachment.size > max_file:
        raise UnreadableMessage(f"The file is too large: at most {max_file / 1e6:g} MB are taken.")
    file = await api.call(chat, lambda: api.bot.get_file(attachment.file_id))
    data = bytes(await api.call(chat, file.download_as_bytearray))
    if len(data) > max_file:
        raise UnreadableMessage(f"The file is too large: at most {max_file / 1e6:g} MB are taken.")
    if attachment.kind == "audio":
        return AudioPart(data, attachment.mime_type)
    return ImagePart(data, attachment.mime_type)

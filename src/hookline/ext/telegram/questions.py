"""Questions as messages with a button for each choice, answered by the person the turn is for.

An approval shows all of the call. One that is too long for one message comes as several, or as a file,
and the buttons come after the last of them was delivered. A question without choices is answered by a
reply to it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, cast

from telegram import CallbackQuery, ForceReply, InlineKeyboardButton, InlineKeyboardMarkup, Message
from telegram.constants import ParseMode
from telegram.error import TelegramError

from hookline.channel import Question
from hookline.ext.telegram.errors import TelegramFailed
from hookline.policy.approvals import call_hash
from hookline.text.printable import visible

from .api import Api
from .reply import ChatTarget

if TYPE_CHECKING:
    from hookline.runtime.gateway_channel import GatewayQuestions, Pending

OUTCOMES = {"approve": "approved", "session": "approved for this session", "reject": "rejected"}
"""The text that replaces the buttons of an answered approval."""
ROOM = 3500
"""Characters of one message; Telegram takes 4096, with what closes a block and counts the pieces."""
MOST_PIECES = 4
"""Messages that show a call before its buttons; a longer call comes as a file."""
LONGEST_OUTCOME = 300
"""Characters of an answer that are repeated below its question."""
GONE = "Nobody asks this any more."


@dataclass(slots=True)
class _Asked:
    """A question that is open."""

    person: str
    place: ChatTarget
    shown: QuestionMessage
    question: Question
    message: int | None = None
    outcome: str = "no longer open"


class Questions:
    """The open questions of a bot."""

    def __init__(self, api: Api, approvals: GatewayQuestions) -> None:
        self._api = api
        self._approvals = approvals
        self._asked: dict[str, _Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait for requests that are being sent."""
        if self._tasks:
            await asyncio.wait([*self._tasks])

    async def ask(self, question: Question, place: ChatTarget, person: str) -> str:
        """Ask a person in a chat, and wait for a button or a reply."""
        asked = _Asked(person, place, shown_question(question), question)
        found: list[Pending] = []

        def show(pending: Pending) -> None:
            found.append(pending)
            self._asked[pending.id] = asked
            self._spawn(self._show(pending, asked))

        try:
            return await self._approvals.ask(question, show)
        finally:
            for pending in found:
                self._asked.pop(pending.id, None)
            self._spawn(self._close(asked))

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _show(self, pending: Pending, asked: _Asked) -> None:
        buttons = [
            [InlineKeyboardButton(visible(label, line=True), callback_data=f"{number}:{pending.id}")]
            for number, label in enumerate(asked.question.labels.values())
        ]
        keyboard = InlineKeyboardMarkup(buttons) if buttons else ForceReply(selective=True)
        place, bot = asked.place, self._api.bot
        where: Any = {"message_thread_id": place.topic}
        try:
            for piece in asked.shown.pieces:
                await self._api.call(
                    place.chat,
                    partial(bot.send_message, place.chat, piece, parse_mode=ParseMode.HTML, **where),
                )
            if asked.shown.file is not None:
                name = f"{pending.id}.txt"
                await self._api.call(
                    place.chat,
                    partial(bot.send_document, place.chat, asked.shown.file, filename=name, **where),
                )
            if pending.id not in self._asked:
                return  # it was answered elsewhere in the meantime
            sent = await self._api.call(
                place.chat,
                partial(
                    bot.send_message,
                    place.chat,
                    asked.shown.last,
                    parse_mode=ParseMode.HTML,
                    reply_markup=keyboard,
                    **where,
                ),
            )
        except TelegramError as error:
            if not pending.answer.done():  # a question that could not be shown cannot be answered
                said = f"the question could not be sent: {self._api.told(error)}"
                pending.answer.set_exception(TelegramFailed(said))
            return
        asked.message = sent.message_id
        if pending.id not in self._asked:
            await self._close(asked)

    async def _close(self, asked: _Asked) -> None:
        """Remove the buttons and show the outcome of the question."""
        name = asked.message
        if name is None:
            return
        text = f"{asked.shown.last}\n\n<b>{escape(asked.outcome[:LONGEST_OUTCOME])}</b>"
        try:
            await self._api.call(
                asked.place.chat,
                lambda: self._api.bot.edit_message_text(
                    text, asked.place.chat, name, parse_mode=ParseMode.HTML
                ),
            )
        except TelegramError:
            pass  # the message is gone

    async def pressed(self, query: CallbackQuery) -> None:
        """Handle a pressed button."""
        mark, _, name = (query.data or "").partition(":")
        asked = self._asked.get(name)
        choices = asked.question.choices if asked is not None else ()
        if asked is None or not (mark.isdecimal() and int(mark) < len(choices)):
            await self._tell(query, GONE)
        elif str(query.from_user.id) != asked.person:
            await self._tell(query, "Only the person the agent works for here can answer this.")
        elif await self._answer(name, asked, choices[int(mark)]):
            await self._tell(query, asked.outcome.capitalize()[:200])
        else:
            await self._tell(query, GONE)

    async def replied(self, message: Message) -> bool:
        """Treat a message as the answer to an open question without choices. Return False if it is
        none.
        """
        to, person = message.reply_to_message, message.from_user
        if to is None or person is None or not message.text:
            return False
        for name, asked in [*self._asked.items()]:
            is_this = (asked.place.chat, asked.message) == (message.chat.id, to.message_id)
            if is_this and not asked.question.choices and asked.person == str(person.id):
                return await self._answer(name, asked, message.text)
        return False

    async def _answer(self, name: str, asked: _Asked, answer: str) -> bool:
        if not await self._approvals.answer(name, answer, by=f"telegram:{asked.person}"):
            return False
        asked.outcome = OUTCOMES[answer] if asked.question.is_approval else visible(answer)
        return True

    async def _tell(self, query: CallbackQuery, text: str) -> None:
        try:
            await self._api.once(query.from_user.id, lambda: query.answer(text))
        except TelegramError:
            pass  # Telegram takes an answer for some seconds only


@dataclass(frozen=True, slots=True)
class QuestionMessage:
    """A question as sent: pieces that come first, then the message with the buttons."""

    last: str
    pieces: tuple[str, ...] = ()
    file: bytes | None = None


def shown_question(question: Question) -> QuestionMessage:
    """A question; for an approval all of what would be done, in as many messages as it takes."""
    if question.is_approval:
        return shown_call(question.request or {})
    pieces = [escape(piece) for piece in _cut(visible(question.text))] or ["?"]
    return QuestionMessage(pieces[-1], tuple(pieces[:-1]))


def shown_call(request: Mapping[str, Any]) -> QuestionMessage:
    """An approval and all of what would be done, in as many messages as it takes."""
    arguments = cast("dict[str, Any]", request.get("arguments") or {})
    written = json.dumps(arguments, ensure_ascii=False, indent=1, default=str) if arguments else ""
    question, tool = visible(str(request["question"])), visible(str(request["tool"]))
    diff = visible(str(request.get("diff") or ""))
    blocks = [each for each in (visible(written), diff) if each]
    head = f"{escape(question)}\n<b>{escape(tool)}</b>"
    body = [_block(each) for each in blocks]
    if len("\n".join([head, *body])) <= ROOM:
        return QuestionMessage("\n".join([head, *body]))
    seal = f"<code>{call_hash(str(request['tool']), arguments)[:16]}</code>"
    is_long = len(head) > ROOM  # the question itself, which then comes first as well
    pieces = [piece for each in ([question] if is_long else []) + blocks for piece in _cut(each)]
    short = f"<b>{escape(tool[:200])}</b>" if is_long else head
    if len(pieces) <= MOST_PIECES:
        count = len(pieces)
        numbered = tuple(f"{_block(piece)}\n{n} of {count}" for n, piece in enumerate(pieces, 1))
        return QuestionMessage(
            f"{short}\nThe whole call is in the {count} messages above ({seal}).", numbered
        )
    whole = "\n\n".join([question, tool, *blocks]).encode()
    return QuestionMessage(f"{short}\nThe whole call is in the file above ({seal}).", file=whole)


def _block(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _cut(text: str) -> list[str]:
    """A text in pieces that each fit into a message, however many signs of it must be escaped."""
    pieces, piece, size = list[str](), list[str](), 0
    for sign in text:
        width = len(escape(sign))
        if size + width > ROOM:
            pieces.append("".join(piece))
            piece, size = [], 0
        piece.append(sign)
        size += width
    return [*pieces, "".join(piece)] if piece else pieces

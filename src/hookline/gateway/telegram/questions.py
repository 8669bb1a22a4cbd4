"""Questions: approvals as messages with buttons, answered by whoever the agent works for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, cast

from telegram import CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.constants import ParseMode
from telegram.error import TelegramError

from .api import Api, TelegramFailed
from .reply import Place

if TYPE_CHECKING:
    from hookline.gateway.approvals import ApprovalAnswer, Approvals, Pending

ANSWERS: dict[str, tuple[ApprovalAnswer, str, str]] = {
    "a": ("approve", "Approve", "approved"),
    "s": ("session", "Always in this chat", "approved for this chat"),
    "r": ("reject", "Reject", "rejected"),
}
"""What a button says to the gateway, on itself, and when it was pressed."""
SHOWN = 1200
"""Characters of the arguments, and of a diff, that a question shows."""
GONE = "Nobody asks this any more."


@dataclass(slots=True)
class _Asked:
    """A question that is open."""

    person: str
    place: Place
    html: str
    message: int | None = None
    outcome: str = "no longer open"


class Questions:
    """The open questions of a bot."""

    def __init__(self, api: Api, approvals: Approvals) -> None:
        self._api = api
        self._approvals = approvals
        self._asked: dict[str, _Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Let what is being sent come to its end."""
        if self._tasks:
            await asyncio.wait([*self._tasks])

    async def ask(self, request: dict[str, Any], place: Place, person: str) -> str:
        """Ask a person in a chat, and wait for a button."""
        asked = _Asked(person, place, question_html(request))
        found: list[Pending] = []

        def show(pending: Pending) -> None:
            found.append(pending)
            self._asked[pending.id] = asked
            self._spawn(self._show(pending, asked))

        try:
            return await self._approvals.ask(request, show)
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
            InlineKeyboardButton(label, callback_data=f"{mark}:{pending.id}")
            for mark, (_, label, _) in ANSWERS.items()
        ]
        keyboard = InlineKeyboardMarkup([[buttons[0], buttons[2]], [buttons[1]]])
        place = asked.place
        try:
            sent = await self._api.call(
                place.chat,
                lambda: self._api.bot.send_message(
                    place.chat,
                    asked.html,
                    parse_mode=ParseMode.HTML,
                    reply_markup=keyboard,
                    message_thread_id=place.topic,
                ),
            )
        except TelegramError as error:
            if not pending.answer.done():  # nobody can answer what nobody sees
                said = f"the question could not be sent: {self._api.told(error)}"
                pending.answer.set_exception(TelegramFailed(said))
            return
        asked.message = sent.message_id
        if pending.id not in self._asked:
            await self._close(asked)

    async def _close(self, asked: _Asked) -> None:
        """Take the buttons away, and say what came of the question."""
        name = asked.message
        if name is None:
            return
        text = f"{asked.html}\n\n<b>{asked.outcome}</b>"
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
        """Somebody pressed a button."""
        mark, _, name = (query.data or "").partition(":")
        asked, answer = self._asked.get(name), ANSWERS.get(mark)
        if asked is None or answer is None:
            await self._tell(query, GONE)
        elif str(query.from_user.id) != asked.person:
            await self._tell(query, "Only who the agent works for here can answer this.")
        elif await self._approvals.answer(name, answer[0]):
            asked.outcome = answer[2]
            await self._tell(query, answer[2].capitalize())
        else:
            await self._tell(query, GONE)

    async def _tell(self, query: CallbackQuery, text: str) -> None:
        try:
            await self._api.once(query.from_user.id, lambda: query.answer(text))
        except TelegramError:
            pass  # Telegram takes an answer for some seconds only


def question_html(request: dict[str, Any]) -> str:
    """A question, and what would be done, as Telegram's HTML."""
    arguments = cast("dict[str, Any]", request.get("arguments") or {})
    shown = json.dumps(arguments, ensure_ascii=False, indent=1, default=str)
    blocks = [escape(_short(str(request["question"]))), f"<b>{escape(str(request['tool']))}</b>"]
    if arguments:
        blocks.append(f"<pre>{escape(_short(shown))}</pre>")
    if request.get("diff"):
        blocks.append(f"<pre>{escape(_short(str(request['diff'])))}</pre>")
    return "\n".join(blocks)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"

"""A server that speaks Telegram's Bot API on loopback, with failures on demand."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

from aiohttp import web

TOKEN = "4242:AAsecretSECRETsecret"
ADA, EVE = 7, 666
TAGS = {"b", "i", "s", "u", "a", "code", "pre", "blockquote"}


class _Checked(HTMLParser):
    """Refuses what Telegram refuses: unknown and unbalanced tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.wrong = False
        self.feed(html)
        self.close()
        self.wrong = self.wrong or bool(self.open)

    def handle_starttag(self, tag, attrs):
        self.wrong = self.wrong or tag not in TAGS
        self.open.append(tag)

    def handle_endtag(self, tag):
        self.wrong = self.wrong or not self.open or self.open.pop() != tag

    def handle_data(self, data):
        self.text += data


class BotApi:
    """One bot's Telegram."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[int, dict[str, Any]] = {}
        """What stands in the chats, by message id."""
        self.files: dict[str, bytes] = {}
        self.faults: defaultdict[str, list[Any]] = defaultdict(list)
        """What goes wrong with the next calls of a method: a status, (429, seconds), a word."""
        self.updates: list[dict[str, Any]] = []
        self.delivered: list[int] = []
        self.confirmed = 0
        self.url = ""
        self._next = 100
        self._news = asyncio.Condition()

    # --- what people do -----------------------------------------------------------------------

    async def push(self, **update: Any) -> int:
        self._next += 1
        async with self._news:
            self.updates.append({"update_id": self._next, **update})
            self._news.notify_all()
        return self._next

    def message(
        self, text: str | None = None, *, person: int = ADA, chat: int | None = None, **more: Any
    ):
        self._next += 1
        kind = "private" if chat is None else "supergroup"
        found = {
            "message_id": self._next,
            "date": 1_700_000_000,
            "chat": {"id": chat or person, "type": kind, "title": "group", "first_name": "x"},
            "from": {"id": person, "is_bot": False, "first_name": "Someone"},
            **more,
        }
        return {**found, "text": text} if text is not None else found

    async def say(self, text: str | None = None, **more: Any) -> int:
        return await self.push(message=self.message(text, **more))

    async def press(self, label: str, *, person: int = ADA) -> str:
        """Press the button of the latest question that has one of this name; what is said to it."""
        shown = next(m for m in reversed([*self.messages.values()]) if m.get("buttons"))
        data = shown["buttons"][label]
        before = len(self.of("answerCallbackQuery"))
        await self.push(
            callback_query={
                "id": str(self._next),
                "from": {"id": person, "is_bot": False, "first_name": "Someone"},
                "chat_instance": "1",
                "message": {k: v for k, v in shown.items() if k not in ("buttons", "shown")},
                "data": data,
            }
        )
        await self.until(lambda: len(self.of("answerCallbackQuery")) > before)
        return self.of("answerCallbackQuery")[-1]["text"]

    # --- what is seen -------------------------------------------------------------------------

    def of(self, method: str) -> list[dict[str, Any]]:
        return [given for name, given in self.calls if name == method]

    def texts(self, chat: int = ADA) -> list[str]:
        return [m["text"] for m in self.messages.values() if m["chat"]["id"] == chat and "text" in m]

    async def until(self, seen: Callable[[], Any]) -> None:
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(seen), 60)

    async def until_said(self, text: str, chat: int = ADA) -> None:
        await self.until(lambda: any(text in said for said in self.texts(chat)))

    # --- the server ---------------------------------------------------------------------------

    @asynccontextmanager
    async def serving(self, port: int = 0):
        app = web.Application(client_max_size=60_000_000)
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/{name}", self._file)
        # Not 0: that waits for as long as a handler takes, and one of them hangs.
        runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        self.port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != TOKEN:
            return self._refused(401, "Unauthorized")
        given: dict[str, Any] = {}
        for name, value in (await request.post()).items():
            given[name] = value.file.read() if isinstance(value, web.FileField) else value
        if self.faults[method]:
            fault = self.faults[method].pop(0)
            async with self._news:
                self.calls.append((f"{method} failed", given))
                self._news.notify_all()
            if fault == "disconnect":
                request.transport.close()
                return web.Response()
            if fault == "hang":
                await asyncio.sleep(60)
            if isinstance(fault, tuple):
                return self._refused(fault[0], "Too Many Requests", retry_after=fault[1])
            return self._refused(fault, "it went wrong")
        answer = await getattr(self, f"_{method}", self._anything)(given)
        async with self._news:
            self.calls.append((method, given))
            self._news.notify_all()
        if isinstance(answer, web.Response):
            return answer
        return web.json_response({"ok": True, "result": answer})

    def _refused(self, status: int, said: str, **parameters: Any) -> web.Response:
        body = {"ok": False, "error_code": status, "description": said}
        if parameters:
            body["parameters"] = parameters
        return web.json_response(body, status=status)

    async def _anything(self, given):
        return True

    async def _getMe(self, given):
        return {"id": 4242, "is_bot": True, "first_name": "Hook", "username": "hook_bot"}

    async def _getUpdates(self, given):
        offset, wait = int(given.get("offset", 0)), int(given.get("timeout", 0))
        self.confirmed = max(self.confirmed, offset - 1)
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(lambda: self.updates), wait)
            except TimeoutError:
                pass
        self.delivered += [update["update_id"] for update in self.updates]
        return self.updates

    async def _getFile(self, given):
        name = given["file_id"]
        return {"file_id": name, "file_unique_id": name, "file_path": name}

    def _shown(self, given):
        """The text that people see; a refusal where Telegram would refuse it."""
        text = given["text"]
        if given.get("parse_mode") == "HTML":
            checked = _Checked(text)
            if checked.wrong:
                return self._refused(400, "Bad Request: can't parse entities")
            text = checked.text
        if len(text.encode("utf-16-le")) // 2 > 4096:
            return self._refused(400, "Bad Request: message is too long")
        return text if text.strip() else self._refused(400, "Bad Request: message text is empty")

    async def _sendMessage(self, given):
        text = self._shown(given)
        if isinstance(text, web.Response):
            return text
        self._next += 1
        chat = {"id": int(given["chat_id"]), "type": "private"}
        found = {"message_id": self._next, "date": 1_700_000_000, "chat": chat, "text": text}
        self.messages[self._next] = {**found, "html": given["text"], "shown": [text]}
        if "reply_markup" in given:
            markup = json.loads(given["reply_markup"])
            rows = markup.get("inline_keyboard", [])
            buttons = {b["text"]: b["callback_data"] for row in rows for b in row}
            assert all(len(data.encode()) <= 64 for data in buttons.values())
            self.messages[self._next]["buttons" if buttons else "reply"] = (
                buttons or markup["force_reply"]
            )
        return found

    async def _editMessageText(self, given):
        found = self.messages.get(int(given["message_id"]))
        if found is None:
            return self._refused(400, "Bad Request: message to edit not found")
        text = self._shown(given)
        if isinstance(text, web.Response):
            return text
        if found["html"] == given["text"]:
            return self._refused(400, "Bad Request: message is not modified")
        found.pop("buttons", None)
        found.update(text=text, html=given["text"])
        found["shown"].append(text)
        return {key: found[key] for key in ("message_id", "date", "chat", "text")}

    async def _deleteMessage(self, given):
        return self.messages.pop(int(given["message_id"]), None) is not None

    async def _media(self, given):
        self._next += 1
        chat = {"id": int(given["chat_id"]), "type": "private"}
        return {"message_id": self._next, "date": 1_700_000_000, "chat": chat}

    _sendVoice = _sendPhoto = _sendDocument = _media

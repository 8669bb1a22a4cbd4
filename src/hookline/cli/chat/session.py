"""The loop of a chat: read, answer, show; one running scope, one session at a time."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.channel import Channel, Note, Question
from hookline.errors import ChatInterrupted
from hookline.events import ToolExecutionUpdateEvent
from hookline.models.thinking_level import LEVELS
from hookline.runtime.attachments import attachments, mentions
from hookline.runtime.delivery import is_channel
from hookline.runtime.hook_files import inert_text
from hookline.runtime.session_index import TERMINAL
from hookline.runtime.user_commands import written
from hookline.runtime.user_tools import arguments_of, call_tool, run_shell
from hookline.types import (
    Envelope,
    Identity,
    Part,
    StreamEvent,
    TextPart,
    address_of,
    content_of,
    field_of,
)

from ..mcp import mcp_of
from ..models import DownloadProgress
from ..orphans import adopting
from ..run import latest_session
from .commands import ChatCommands
from .sessions import TreeLines
from .view import ChatView, MessageReader, text_of, told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hookline.runtime.app import Hookline
    from hookline.runtime.turn import TurnResult
    from hookline.tape import SessionInfo

HUMAN = Identity("human", "terminal", "chat")
SETTLING = 0.02
"""Seconds for pending output to reach the screen."""

T = TypeVar("T")


class Chat(Channel):
    """One person's conversation with the app, and their channel."""

    def __init__(
        self, app: Hookline, session_id: str | None, view: ChatView, *, latest: bool = False
    ) -> None:
        self.app = app
        self.session_id = session_id or app.sessions.project_session()
        self.view = view
        self._latest = latest
        self.leaving = False
        self.tokens = 0
        self.cost = 0.0
        self.turn_cost = 0.0
        """What the session and its last turn cost, as far as prices are known."""
        self.places = TreeLines(app)
        self.commands = ChatCommands(self)
        self._sessions: list[SessionInfo] = []
        self._usage: dict[str, Any] = {}
        self._news: list[str] = []
        self._delivered: list[Envelope] = []
        self._work: asyncio.Task[Any] | None = None
        self._asking = asyncio.Lock()
        self._is_busy = False
        """Whether work in progress is being shown; if not, the person is typing."""
        self._downloading = DownloadProgress()
        self._reader: MessageReader | None = None

    # --- the loop -----------------------------------------------------------------------------

    async def run(
        self, reader: MessageReader, quiet: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """Talk until the person leaves; `quiet` is entered while an answer is shown."""
        self._reader = reader
        if (servers := mcp_of(self.app)) is not None:
            servers.tell = self._news.append
        async with adopting(), self.app.running(self), self.app.hook_files.watching(self._reloaded):
            if self._latest:
                self.session_id = await latest_session(self.app, TERMINAL)
            await self.enter(self.session_id)
            if history := await self.app.sessions.history(self.session_id):
                self.view.note(f"continuing session {self.session_id}: {history}; /new starts another")
            for wrong in self.commands.wrong:
                self.view.error(wrong)
            inert = len(self.app.hook_files.inert())
            if inert > (self.app.hook_files.announced or 0):  # what plugins point to comes late
                self.view.note(inert_text(inert))
            self.app.hooks.register("tool_execution_update", self._progress)
            with quiet():
                await self._do(self._take_up())
            while not self.leaving:
                try:
                    text = await self._stoppable(reader.read())
                except (EOFError, ChatInterrupted):
                    return
                except ValueError as error:
                    self.view.error(told(error))
                    continue
                self._tell_news()
                if text.strip():
                    with quiet():
                        await self._do(self._take(text))

    def _reloaded(self, text: str) -> None:
        """Hook files changed while the chat waits: report it with the next output."""
        self._news.append(text)
        self.commands.gather()

    def _tell_news(self) -> None:
        for line in "\n".join(self._news).splitlines():
            self.view.note(line)
        self._news.clear()

    async def enter(self, session_id: str) -> None:
        """Go to a session."""
        self.session_id = session_id
        said = await self.app.store().entries(session_id, kinds=["message"])
        counted: list[dict[str, Any]] = [entry.meta.get("usage") or {} for entry in said]
        self.tokens = sum(total(usage) for usage in counted)
        self.cost = sum(price(usage) for usage in counted)
        self.turn_cost = 0.0
        self._sessions = await self.app.sessions.project_first(limit=100)

    def choices(self, command: str) -> list[str]:
        """What the Tab key offers behind a command."""
        if command in ("resume", "switch"):
            return [info.id for info in self._sessions]
        if command == "model":
            return [model.name for model in self.app.models.available() if model.usable]
        if command == "think":
            return list(LEVELS)
        return list(self.app.hooks.catalog) if command == "hooks" else []

    def status(self) -> str:
        """The status line."""
        model = self.app.sessions.model_of(self.session_id)
        costs = self.costs()
        room = 18 if costs else 32  # all of it fits into eighty columns
        model = model if len(model) <= room else "…" + model[1 - room :]  # a path's end says more
        session = self.session_id.removeprefix(f"{TERMINAL}:")
        session = session if len(session) <= 24 else session[:23] + "…"
        parts = [model, f"{self.tokens:,} tokens", *costs, session]
        return " " + " · ".join(parts)

    def costs(self) -> list[str]:
        """The cost of the session and of its last turn; nothing if no price is known."""
        if not self.cost:
            return []
        turn = f" (+{money(self.turn_cost)})" if self.turn_cost else ""
        return [f"{money(self.cost)}{turn}"]

    async def _take(self, text: str) -> None:
        """A command, a line for the shell, or a message."""
        command = written(text)
        if command is not None:
            await self.commands.run(*command)
        elif text.startswith("!") and text.strip("! \n"):
            await self._shell(text)
        else:
            await self._say(text)

    async def _take_up(self) -> None:
        """Continue a turn of this session that was cut off."""
        if not await self.app.sessions.is_cut_off(self.session_id):
            return
        self.view.note("the last turn was cut off; going on with it")
        await self._show(self.app.resume(self.session_id, self))

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that Ctrl-C stops. An error is printed, and the chat continues."""
        self._is_busy = True
        try:
            await self._stoppable(work)
        except ChatInterrupted:
            self.view.note("stopped")
        except Exception as error:
            self.view.error(told(error))
        finally:
            self._is_busy = False

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something that Ctrl-C stops; when it is the chat that ends, it ends as well."""
        task = self._work = asyncio.create_task(work)
        try:
            with self._interruptible():
                await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._work = None
        if task.cancelled():
            raise ChatInterrupted
        return task.result()

    # --- turns and calls ----------------------------------------------------------------------

    async def _say(self, text: str) -> None:
        """One turn."""
        parts = attachments(text, self.app.workspace)
        envelope: dict[str, Any] = {
            "content": text,
            "channel": "terminal",
            "chat_id": "chat",
            "sender_id": "human",
            "session_id": self.session_id,
        }
        if parts:
            envelope["attachments"] = parts
            self.view.note(f"attached: {', '.join(m.path for m in mentions(text, self.app.workspace))}")
        await self._show(self.app.process(envelope, self))

    async def _show(self, turn: Awaitable[TurnResult | None]) -> None:
        """Show a turn while it runs, then its result."""
        self._delivered = []
        self.turn_cost = 0.0
        self.view.begin()
        try:
            result = await turn
        finally:
            self._count()
            self.view.end()
        if result is None:
            return
        if result.stopped is not None:
            self.view.note(result.stopped)
        for outbound in self._delivered:
            content = str(field_of(outbound, "content", ""))
            if content != result.model_output:
                self.view.say(content)

    async def _shell(self, text: str) -> None:
        """A command of the person's own."""
        command = text.lstrip("!").strip()
        self.view.begin()
        try:
            outcome = await run_shell(
                self.app,
                self.session_id,
                command,
                exclude_from_context=text.startswith("!!"),
                identity=HUMAN,
            )
            self.view.called("shell", text_of(outcome.content), is_error=outcome.is_error)
        finally:
            self.view.end()

    async def draw_tree(self) -> str:
        """The session's tree, as wide as the terminal."""
        return await self.places.draw(self.session_id, get_terminal_size().columns)

    async def entry(self, said: str) -> str | None:
        """The entry of the session that a person means."""
        return await self.places.entry(self.session_id, said)

    async def call_tool(self, name: str, arguments: str) -> None:
        """Call a tool for the person."""
        self.view.begin()
        try:
            given = arguments_of(self.app.tools.get(name), arguments)
            outcome = await call_tool(self.app, self.session_id, name, given, identity=HUMAN)
            self.view.called(name, text_of(outcome.content), is_error=outcome.is_error)
        finally:
            self.view.end()

    def _count(self) -> None:
        """One model call's usage is complete."""
        self.tokens += total(self._usage)
        self.cost += price(self._usage)
        self.turn_cost += price(self._usage)
        self._usage = {}

    # --- the channel --------------------------------------------------------------------------

    async def send(self, message: Envelope) -> bool:
        """Show a message at once; that of a turn after its end, unless it was streamed."""
        parts: list[Part] = field_of(message, "parts") or []
        for part in parts:
            self.view.say(part.text if isinstance(part, TextPart) else f"[{part.type}]")
        session_id = field_of(message, "session_id")
        if is_channel(address_of(message)[0]) or not session_id:
            if not parts:
                self._delivered.append(message)
            return True
        if session_id != self.session_id:
            return False
        if not parts:
            self.view.say(content_of(message))  # of a turn that a plugin started
        return True

    def stream(self, event: StreamEvent) -> None:
        """Show one piece of an answer."""
        if event.kind == "progress":
            self._downloading(**event.data)
        elif self._is_busy:
            if event.kind == "usage":
                self._usage.update(event.data)
            elif event.kind == "tool_result":
                self._count()
            self.view.event(event)

    def notify(self, note: Note) -> None:
        """Show a note. While the person types, it waits for the next output."""
        if self._is_busy:
            self.view.note(note.text)
        else:
            self._news.append(note.text)

    async def ask(self, question: Question) -> str | None:
        """Ask the person, one question at a time; Ctrl-C and Ctrl-D give the default, and stop."""
        if self._reader is None or not self._reader.person:
            if not question.is_approval:
                self.view.note(question.unanswered)
            return None
        try:
            async with self._asking:
                await asyncio.sleep(SETTLING)  # what the model said before the call is shown first
                while (answer := question.read(await self._reader.ask(question))) is None:
                    self.view.note(f"please answer with one of {question.prompt}")
                return answer
        except (ChatInterrupted, EOFError):
            self.interrupt()
            return question.default
        finally:
            self._listen()

    def _progress(self, event: ToolExecutionUpdateEvent) -> None:
        self.view.progress(text_of(event.partial_tool_result.content))

    # --- Ctrl-C -------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Stop the work in progress; the second time, leave; the third time, immediately."""
        if self._work is None:
            return
        if self._work.cancelling():
            self.leaving = True
            self._unlisten()
        self._work.cancel()

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        self._listen()
        try:
            yield
        finally:
            self._unlisten()

    def _listen(self) -> None:
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.interrupt)

    def _unlisten(self) -> None:
        if sys.platform != "win32":
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


def price(usage: dict[str, Any]) -> float:
    """The cost of one model call, if it is known."""
    return float(usage.get("cost") or 0.0)


def money(amount: float) -> str:
    """An amount with as many digits as it takes to say something."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def total(usage: dict[str, Any]) -> int:
    """The tokens of one model call."""
    return sum(int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens"))

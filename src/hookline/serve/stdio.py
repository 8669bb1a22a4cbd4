"""stdio: the gateway's frames as JSON Lines, for a program that has the agent inside it.

    {"type": "message", "id": "m1", "session": "garden", "text": "hello"}      in, a line each
    {"type": "text", "id": "m1", "delta": "Hel"}                               out

Standard output belongs to the frames alone: what anybody prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Awaitable
from threading import Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from hookline.channel import Channel, Question
from hookline.hooks import HooklineError
from hookline.runtime.gateway_channel import Handle
from hookline.types import Envelope, StreamEvent

from .framed import FrameChannel, FrameReply
from .frames import AnswerFrame, CancelFrame, Frame, Incoming, MessageFrame, PingFrame, incoming
from .users import User

if TYPE_CHECKING:
    from .gateway import Gateway

USER = User("stdio", "operator")
"""The program that started the gateway, connected by its pipes."""


class StdioChannel(FrameChannel):
    """One program at the other end of two pipes."""

    name = "stdio"
    debounced = False

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._session = gateway.app.sessions.project_session("stdio")
        self._sender = uuid4().hex[:12]  # the other program's ids start again with each process
        self._reading: asyncio.Task[None] | None = None
        self._out: int | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._copying: Thread | None = None

    async def start(self, handle: Handle) -> None:
        """Take over standard input and output."""
        await super().start(handle)
        loop = asyncio.get_running_loop()
        sys.stdout.flush()
        self._out = os.dup(1)
        os.dup2(2, 1)
        reader = asyncio.StreamReader(limit=self.gateway.settings.max_body)
        source = os.fdopen(watchable_input(sys.stdin.fileno()), "rb", buffering=0)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        target, self._copying = watchable_output(self._out)
        out = os.fdopen(target, "wb", buffering=0)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        await self.watch(self._session, self)
        model = await self.gateway.app.sessions.find_model(self._session)
        self.put({"type": "session", "session_id": self._session, "model": model})
        self._reading = asyncio.create_task(self._read(reader))

    async def stop(self) -> None:
        """Write the rest, and restore standard output."""
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()
            try:
                await self._writer.drain()
            except OSError:
                pass  # the reader is gone
        if self._copying is not None:
            await asyncio.to_thread(self._copying.join)
        if self._out is not None:
            os.dup2(self._out, 1)
            os.close(self._out)

    # --- out ----------------------------------------------------------------------------------

    def put(self, frame: Frame) -> None:
        """Write a line."""
        if self._writer is not None and not self._writer.is_closing():
            line = json.dumps(frame, ensure_ascii=False, default=str)
            self._writer.write(line.encode() + b"\n")

    def close(self) -> None:
        """Do nothing: the pipe stays open until the end of input."""

    async def drain(self) -> None:
        """Wait until everything is written; a slow reader slows the turn."""
        if self._writer is not None:
            try:
                await self._writer.drain()
            except OSError:
                pass  # the reader is gone; the turn is recorded

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message."""
        return StdioReply(self, message)

    # --- in -----------------------------------------------------------------------------------

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                self.put({"type": "error", "id": None, "message": "the line is too long"})
                continue
            if not line:
                break
            if line.strip():
                await self._take_line(line)
        self.gateway.leave()

    async def _take_line(self, line: bytes) -> None:
        name: str | None = None
        try:
            frame = incoming(line)
            name = getattr(frame, "id", None)
            await self._take(frame)
        except HooklineError as error:
            self.put({"type": "error", "id": name, "message": str(error)})

    async def _take(self, frame: Incoming) -> None:
        match frame:
            case MessageFrame():
                session = frame.session or self._session
                shown = await self.submit(
                    frame.content(),
                    session,
                    USER,
                    self,
                    sender=self._sender,
                    message_id=frame.id,
                    closes=False,
                )
                self.put({"type": "accepted", "id": shown})
            case CancelFrame():
                session = frame.session or self._session
                await self.gateway.cancel(session, self.name, session)
            case AnswerFrame():
                why = await self.gateway.approvals.answer_as(
                    USER, frame.id, frame.answer, shown=frame.hash
                )
                if why is not None:
                    self.put({"type": "error", "id": frame.id, "message": why})
            case PingFrame():
                self.put({"type": "pong"})

    async def ask(self, message: Envelope, question: Question) -> str:
        """Ask the program. If it is gone, the default counts."""
        if self._reading is None or self._reading.done():
            raise EOFError
        asking = asyncio.ensure_future(super().ask(message, question))
        try:
            await asyncio.wait({asking, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise EOFError
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


class StdioReply(FrameReply):
    """The channel of one message of the program."""

    def __init__(self, channel: StdioChannel, message: Envelope) -> None:
        super().__init__(channel, message)
        self._pipe = channel

    def stream(self, event: StreamEvent) -> Awaitable[None]:
        """Write a piece of the answer."""
        super().stream(event)
        return self._pipe.drain()

    async def ask(self, question: Question) -> str | None:
        """Ask the program; None if it is gone."""
        try:
            return await super().ask(question)
        except EOFError:
            return None


def watchable_input(descriptor: int) -> int:
    """Return a descriptor with the same content that an event loop can wait for.

    It cannot wait for a file or for `/dev/null`, so that a thread copies these into a pipe.
    """
    if _waits(descriptor):
        return os.dup(descriptor)
    outlet, inlet = os.pipe()
    Thread(target=_copy, args=(os.dup(descriptor), inlet), daemon=True).start()
    return outlet


def watchable_output(descriptor: int) -> tuple[int, Thread | None]:
    """Return a descriptor that an event loop can write to, and the thread that copies it, if any."""
    if _waits(descriptor):
        return os.dup(descriptor), None
    outlet, inlet = os.pipe()
    copying = Thread(target=_copy, args=(outlet, os.dup(descriptor)), daemon=True)
    copying.start()
    return inlet, copying


def _waits(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


def _copy(source: int, target: int) -> None:
    """Copy until the end, then close both."""
    with os.fdopen(source, "rb", buffering=0) as reading, os.fdopen(target, "wb") as writing:
        while piece := reading.read(65536):
            writing.write(piece)
            writing.flush()

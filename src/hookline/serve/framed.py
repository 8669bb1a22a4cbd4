"""A channel that speaks in frames: the base of web, OpenAI endpoint and stdio."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hookline.channel import Channel, Note, Question
from hookline.errors import DuplicateMessage
from hookline.runtime.gateway_channel import GatewayChannel, Handle, Pending
from hookline.runtime.turn import TurnResult
from hookline.types import Envelope, Part, StreamEvent, TextPart, address_of, content_of, field_of

from .frames import Frame, end_frame, event_frame, part_frame, question_frame
from .live import LiveSessions
from .outbox import Taker
from .users import User

if TYPE_CHECKING:
    from .gateway import Gateway


@dataclass(slots=True)
class PendingReply:
    """A receiver that waits for the answer to one message."""

    id: str
    taker: Taker
    closes: bool
    """Whether this receiver gets nothing after the answer."""


class FrameChannel(GatewayChannel):
    """Converts output to frames, for a message's sender and the watchers of its session."""

    live: LiveSessions | None = None
    """Keeps current events for late watchers, if the channel supports that."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._replies: dict[str, PendingReply] = {}
        self._untold: dict[str, Frame] = {}
        """Messages that watchers have not seen yet; they are sent before their answers."""
        self._watchers: defaultdict[str, set[Taker]] = defaultdict(set)
        self._handle: Handle = gateway.handle

    async def start(self, handle: Handle) -> None:
        """Start taking messages."""
        self._handle = handle

    async def stop(self) -> None:
        """Let all readers end."""
        takers = {taker for watching in self._watchers.values() for taker in watching}
        for taker in takers | {reply.taker for reply in self._replies.values()}:
            taker.close()

    # --- in -----------------------------------------------------------------------------------

    async def submit(
        self,
        content: tuple[str, list[Part]],
        session: str,
        user: User,
        taker: Taker,
        *,
        claimed: str | None = None,
        sender: str = "",
        message_id: str | None = None,
        closes: bool = True,
    ) -> str:
        """Submit a message for a receiver and return the id of its answer. By then it is accepted.

        `session` is the full session name, in the user's namespace. `sender` separates the ids of
        different senders, such as connections. `claimed` is the name that the sender gives for the
        person behind them; nothing is decided by it.
        """
        text, parts = content
        shown = message_id or uuid4().hex[:12]
        key = f"{sender or uuid4().hex[:12]}:{shown}"
        if key in self._replies:
            raise DuplicateMessage(f"message id {shown!r} is still being answered; choose another")
        envelope: dict[str, Any] = {
            "content": text,
            "channel": self.name,
            "chat_id": session,
            "sender_id": user.name,
            "role": user.role,
            "session_id": session,
            "message_id": key,
        }
        if claimed:
            envelope["claimed_user"] = claimed
        if parts:
            envelope["parts"] = parts
        self._replies[key] = PendingReply(shown, taker, closes)
        media = [{"type": part.type} for part in parts if not isinstance(part, TextPart)]
        self._untold[key] = {"type": "message", "id": shown, "text": text, "parts": media}
        try:
            if await self._handle(envelope) is False:
                raise DuplicateMessage(
                    f"message {shown!r} was accepted before; its answer is in the session's history"
                )
        except BaseException:
            self._replies.pop(key, None)
            self._untold.pop(key, None)
            raise
        self._show_message(envelope)
        return shown

    async def watch(self, session: str, taker: Taker) -> None:
        """Show a receiver what happens in a session besides its own messages, and what waits for it."""
        self._watchers[session].add(taker)
        for pending in await self.gateway.approvals.of(session):
            taker.put(question_frame(pending))

    def leave(self, session: str, taker: Taker) -> None:
        """Stop showing things to a receiver. Its messages are still answered, on record and to
        watchers.
        """
        for key in [key for key, reply in self._replies.items() if reply.taker is taker]:
            del self._replies[key]
        watching = self._watchers[session]
        watching.discard(taker)
        if not watching:
            del self._watchers[session]

    # --- out ----------------------------------------------------------------------------------

    def _reply(self, message: Envelope) -> PendingReply | None:
        return self._replies.get(field_of(message, "message_id"))

    def _show_message(self, message: Envelope) -> None:
        """Show a message to the other watchers of its session, once, before its answer."""
        frame = self._untold.pop(field_of(message, "message_id"), None)
        if frame is not None:
            self._send(address_of(message)[1], frame, None, besides=self._reply(message))

    def put_for(self, message: Envelope, frame: Frame) -> None:
        """Send a frame of a message's answer."""
        if self._untold:
            self._show_message(message)
        self._send(address_of(message)[1], frame, self._reply(message))

    def _send(
        self,
        session: str,
        frame: Frame,
        reply: PendingReply | None,
        *,
        besides: PendingReply | None = None,
    ) -> None:
        """Send a frame to a message's sender and, with its number, to the watchers of the session."""
        numbered = frame
        if self.live is not None and "id" in frame:
            numbered = self.live.add(session, frame)
        watching = self._watchers.get(session, ())
        if reply is not None and reply.taker not in watching:
            reply.taker.put(frame)
        for taker in watching:
            if besides is None or taker is not besides.taker:
                taker.put(numbered)

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message."""
        return FrameReply(self, message)

    def finish(self, message: Envelope, frame: Frame) -> None:
        """Send the last frame of a message."""
        self.put_for(message, frame)
        reply = self._replies.pop(field_of(message, "message_id"), None)
        if reply is not None and reply.closes:
            reply.taker.close()

    async def send(self, outbound: Envelope) -> bool:
        """Show an envelope to the watchers of its chat."""
        watching = self._watchers.get(address_of(outbound)[1])
        if not watching:
            return False
        session, said, name = address_of(outbound)[1], content_of(outbound), uuid4().hex[:12]
        self._send(session, {"type": "text", "id": name, "delta": said}, None)
        self._send(session, {**end_frame(name, TurnResult(session, model_output=said))}, None)
        return True

    async def ask(self, message: Envelope, question: Question) -> str:
        """Send a question to the sender and the watchers, and wait for the first answer."""

        def tell(frame: Frame) -> None:
            reply = self._reply(message)
            takers: set[Taker] = {*self._watchers.get(address_of(message)[1], ())}
            if reply is not None:
                takers.add(reply.taker)
            for taker in takers:
                taker.put(frame)

        def show(pending: Pending) -> None:
            tell(question_frame(pending))

        approvals, answer = self.gateway.approvals, None
        try:
            answer = await approvals.ask(question, show)
            return answer
        finally:
            answer = answer or await approvals.answered(question.id)
            tell({"type": "answered", "id": question.id, "answer": answer})


class FrameReply(Channel):
    """The channel of one message, in frames."""

    def __init__(self, channel: FrameChannel, message: Envelope) -> None:
        self._channel = channel
        self._message = message
        key = str(field_of(message, "message_id") or "")
        self._id = key.partition(":")[2] or key or None

    async def send(self, message: Envelope) -> bool:
        """Send a message's parts. Its content comes with the answer and its end."""
        parts: list[Part] = field_of(message, "parts") or []
        for part in parts:
            self._part(part)
        return True

    def _part(self, part: Part) -> None:
        frame: Frame = {"type": "part", "id": self._id, "part": part_frame(part)}
        self._channel.put_for(self._message, frame)

    def stream(self, event: StreamEvent) -> Awaitable[None] | None:
        """Send a piece of the answer, or its end."""
        if event.kind == "end":
            self._end(event.data["result"])
            return
        frame = event_frame(self._id, event)
        if frame is not None:
            self._channel.put_for(self._message, frame)

    def _end(self, result: TurnResult) -> None:
        """Send what a plugin rendered besides the answer, then the end or the reason of the failure."""
        if result.outcome == "failed":
            frame: Frame = {"type": "error", "id": self._id, "message": result.stopped}
            self._channel.finish(self._message, frame)
            return
        for outbound in result.outbounds:
            said = content_of(outbound)
            if said != result.model_output and address_of(outbound) == address_of(self._message):
                self._part(TextPart(said))
        self._channel.finish(self._message, {**end_frame(self._id, result)})

    def notify(self, note: Note) -> None:
        """Send a note."""
        self._channel.put_for(self._message, {"type": "note", "text": note.text})

    async def ask(self, question: Question) -> str | None:
        """Ask the sender and the watchers of the session."""
        return await self._channel.ask(self._message, question)

"""Conversations, recognised across requests by the hash of their messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from os import urandom
from typing import TYPE_CHECKING, cast

from hookline.bridges.hosts.session import HostChannel, person
from hookline.bridges.reports import HostCall, ToolAnswer
from hookline.bridges.run import BridgeRun
from hookline.errors import Blocked, ToolError

from .wire import Json, parsed

if TYPE_CHECKING:
    from hookline.bridges.hosts.home import HomeBridge

    from .wire import WireFormat, WireMessage

WAIT = 7 * 24 * 3600.0
"""Seconds that the channel waits for an answer; the policy's own limit is shorter, and denies."""


class ProxyConversation:
    """One conversation of a client: a session, in which a turn may be open."""

    def __init__(self, bridge: HomeBridge, form: WireFormat) -> None:
        self.id = f"proxy-{urandom(8).hex()}"
        self.tip = b""
        """The hash of the messages that are recorded."""
        self.edits: dict[bytes, list[WireMessage]] = {}
        """What is sent to the provider in place of a message of the client, by the hash up to it."""
        self.is_busy = False
        self._bridge, self._form = bridge, form
        self._run: BridgeRun | None = None
        self._calls: dict[str, HostCall] = {}
        self._given_system = ""

    def current(self) -> BridgeRun | None:
        """The open turn."""
        if self._run is not None and self._run.turn.done():
            self._run = None
        return self._run

    def system(self, given: str) -> str:
        """The system prompt to send: what handlers made of it, or the client's own."""
        run = self.current()
        return given if run is None or run.system == self._given_system else run.system

    def sent(self, pieces: Sequence[WireMessage], hashes: Sequence[bytes]) -> list[WireMessage]:
        """The messages to send to the provider."""
        if not self.edits:
            return [*pieces]
        found: list[WireMessage] = []
        for piece, key in zip(pieces, hashes, strict=True):
            found += self.edits.get(key, (piece,))
        return found

    async def receive(
        self, pieces: Sequence[WireMessage], hashes: Sequence[bytes], known: int, system: str
    ) -> BridgeRun:
        """Take the messages from `known` on through the hooks, and record them.

        Raises `Blocked` if a handler of `input` blocks the prompt, which is then kept from the model.
        """
        first = len(pieces)
        while first > known and pieces[first - 1].role == "user":
            first -= 1
        run = self.current()
        if run is not None:
            await self._results(run, pieces, hashes, range(known, first))
            if first < len(pieces):
                await self.abandon()  # the user goes on without waiting for the answer
                run = None
        if run is None:
            run = await self._start(pieces, hashes, first, system)
            await self._results(run, pieces, hashes, range(known, first))
        await self._unanswered(run)
        return run

    async def _start(
        self, pieces: Sequence[WireMessage], hashes: Sequence[bytes], first: int, system: str
    ) -> BridgeRun:
        prompts = pieces[first:]
        text = "\n\n".join(piece.text for piece in prompts)
        self._given_system = system
        self._calls.clear()
        try:
            run = await self._bridge.start(
                text, session=self.id, system=system, user=person(), channel=HostChannel(WAIT)
            )
        except Blocked:
            self.edits.update((key, []) for key in hashes[first:])
            raise
        self._run = run
        if prompts and run.prompt != text:
            self.edits.update((key, []) for key in hashes[first:-1])
            self.edits[hashes[-1]] = [self._form.with_text(prompts[-1], run.prompt)]
        return run

    async def _results(
        self, run: BridgeRun, pieces: Sequence[WireMessage], hashes: Sequence[bytes], places: range
    ) -> None:
        """Take the results of tools through the gates; a changed one is changed in every request."""
        calls = {
            call["id"]: call
            for piece in pieces[: places.stop]
            for call in piece.message.get("tool_calls") or ()
        }
        for place in places:
            piece = pieces[place]
            if piece.role != "tool":
                continue
            call_id = piece.message["tool_call_id"]
            call = self._calls.pop(call_id, None)
            if call is None:  # made before the conversation came to this proxy
                asked = calls[call_id]
                call = await run.admitted(asked["name"], arguments_of(asked), call_id)
            text = piece.text
            if piece.message.get("is_error"):
                answer = await run.finish(call, error=ToolError(text))
            else:
                answer = await run.finish(call, text)
            if isinstance(answer, ToolAnswer) and str(answer) != text:
                self.edits[hashes[place]] = [self._form.with_text(piece, str(answer))]

    async def _unanswered(self, run: BridgeRun) -> None:
        """Record that the client gave no result for a call."""
        for call in [*self._calls.values()]:
            del self._calls[call.id]
            await run.finish(call, error=ToolError("the client gave no result"))

    def expects(self, call: HostCall) -> None:
        """Expect the result of a call that the client gets."""
        self._calls[call.id] = call

    async def abandon(self) -> None:
        """Cancel the open turn."""
        run = self.current()
        self._run = None
        self._calls.clear()
        if run is not None:
            await run.app.cancel(self.id)
            with suppress(Exception, asyncio.CancelledError):
                await run.turn


class Conversations:
    """The conversations that this process remembers, the one that was used last at the end."""

    def __init__(self, bridge: HomeBridge, most: int) -> None:
        self._bridge, self._most = bridge, most
        self._by_tip: dict[bytes, ProxyConversation] = {}

    def find(self, hashes: Sequence[bytes], form: WireFormat) -> tuple[ProxyConversation, int]:
        """The conversation that these messages continue, and how many of them are recorded.

        One that is being answered is not continued: two clients get two conversations.
        """
        for known in range(len(hashes), 0, -1):
            found = self._by_tip.get(hashes[known - 1])
            if found is not None and not found.is_busy:
                return found, known
        return ProxyConversation(self._bridge, form), 0

    def move(self, conversation: ProxyConversation, tip: bytes) -> None:
        """Note what a conversation has come to."""
        if self._by_tip.get(conversation.tip) is conversation:
            del self._by_tip[conversation.tip]
        conversation.tip = tip
        self._by_tip[tip] = conversation

    async def tidy(self) -> None:
        """Forget the conversations that were not used for the longest time."""
        idle = [each for each in self._by_tip.values() if not each.is_busy]
        for each in idle[: max(len(self._by_tip) - self._most, 0)]:
            del self._by_tip[each.tip]
            await each.abandon()

    async def close(self) -> None:
        """Cancel the open turns."""
        for each in [*self._by_tip.values()]:
            await each.abandon()


def chain(pieces: Sequence[WireMessage], seed: bytes) -> list[bytes]:
    """The hash of the conversation after each of its messages."""
    found: list[bytes] = []
    for piece in pieces:
        seed = piece.digest(seed)
        found.append(seed)
    return found


def arguments_of(call: Json) -> Json:
    """The arguments of a call that was made elsewhere."""
    value = parsed(call["arguments"])
    return cast("Json", value) if isinstance(value, dict) else {"arguments": value}

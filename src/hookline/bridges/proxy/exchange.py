"""One request of a client: through the hooks to the provider, and its answer back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hookline.bridges.reports import HostAnswer, HostRequest, replaced
from hookline.bridges.run import BridgeRun
from hookline.errors import BadResponse, Blocked
from hookline.hooks import HooklineError

from .conversation import Conversations, ProxyConversation, chain
from .wire import AnswerReader, Json, ProxyRequest, RawEvents, WireFormat, WireMessage, parsed

if TYPE_CHECKING:
    from .client import ProxyClient
    from .upstream import Upstream

log = logging.getLogger("hookline.bridges.proxy")


class Exchange:
    """A request, and the model calls that it takes to answer it."""

    def __init__(
        self,
        form: WireFormat,
        request: ProxyRequest,
        upstream: Upstream,
        client: ProxyClient,
        rounds: int,
    ) -> None:
        self._form, self._request = form, request
        self._upstream, self._client, self._rounds = upstream, client, rounds
        self._writer = form.writer(request)
        self._extra: list[WireMessage] = []
        """What the proxy and the model said to each other, which the client does not see."""
        self._said = ""
        """The text of the rounds before this one."""
        self._reader: AnswerReader | None = None
        self._held: list[tuple[bytes, Json | None]] = []
        """Events of the stream that wait for a judgement."""
        self._raw = b""
        self._shown = ""
        """The text of this round that the client has."""

    async def run(self, conversations: Conversations) -> None:
        """Answer the request."""
        request = self._request
        hashes = chain(request.pieces, self._form.name.encode())
        conversation, known = conversations.find(hashes, self._form)
        conversation.is_busy = True
        try:
            self._client.session = conversation.id
            await self._answer(conversation, conversations, hashes, known)
        except HooklineError:
            raise
        except BaseException:
            await conversation.abandon()  # the client is gone
            raise
        finally:
            conversation.is_busy = False
            await conversations.tidy()

    async def _answer(
        self,
        conversation: ProxyConversation,
        conversations: Conversations,
        hashes: list[bytes],
        known: int,
    ) -> None:
        pieces = self._request.pieces
        tip = hashes[-1] if hashes else self._form.name.encode()
        try:
            run = await self._received(conversation, hashes, known)
            conversations.move(conversation, tip)
            answer, hidden = await self._rounds_of(conversation, run, hashes)
        except Blocked as error:
            await conversation.abandon()
            answer, hidden = HostAnswer(str(error)), ()
            self._reader = None
            conversations.move(conversation, tip)
        visible = self._form.built(message_of(replace(answer, text=self._said + answer.text)))
        after = visible.digest(tip)
        if hidden:
            full = [*answer.tool_calls, *(call for call, _ in hidden)]
            assert self._reader is not None
            conversation.edits[after] = [
                self._reader.piece(full),
                *(self._refusal(call, reason) for call, reason in hidden),
            ]
        elif pieces and conversation.edits.get(tip) == []:
            conversation.edits[after] = []  # the answer to a blocked prompt
        conversations.move(conversation, after)
        await self._deliver(answer)

    async def _received(
        self, conversation: ProxyConversation, hashes: list[bytes], known: int
    ) -> BridgeRun:
        run = conversation.current()
        pieces = self._request.pieces
        if known == len(pieces):
            if run is not None:
                return run  # the client tries again
            while known and pieces[known - 1].role == "user":
                known -= 1
        return await conversation.receive(pieces, hashes, known, self._request.system)

    # --- the model ------------------------------------------------------------------------------

    async def _rounds_of(
        self, conversation: ProxyConversation, run: BridgeRun, hashes: list[bytes]
    ) -> tuple[HostAnswer, Sequence[tuple[Json, str]]]:
        """Call the model until it has an answer for the client; also returns the hidden calls."""
        for number in range(1, self._rounds + 1):
            is_last = number == self._rounds
            answer = await self._model(conversation, run, hashes)
            if answer.tool_calls:
                allowed, denied = await self._judged(conversation, run, answer)
                if allowed:
                    if allowed != answer.tool_calls:
                        answer = replace(answer, tool_calls=allowed)
                        self._drop_raw()
                    return answer, denied
                if not is_last:
                    self._continue(answer, [self._refusal(*each) for each in denied])
                    continue
                text = answer.text + "\n\n".join(reason for _, reason in denied)
                answer = replace(answer, text=text, tool_calls=[])
                self._drop_raw()
            refused = None if is_last else await run.refuses_to_stop(answer.text)
            if refused is not None:
                await run.sent_back(refused)
                self._continue(answer, [self._form.built({"role": "user", "content": refused})])
                continue
            text = await run.end(answer.text)
            if text != answer.text:
                answer = replace(answer, text=text)
                self._drop_raw()
            return answer, ()
        raise AssertionError("the last round returns")

    def _continue(self, answer: HostAnswer, pieces: Sequence[WireMessage]) -> None:
        """Go on with another model call, after messages that the client does not see."""
        assert self._reader is not None
        self._extra += [self._reader.piece(answer.tool_calls), *pieces]
        self._said += self._shown
        self._drop_raw()
        self._shown = ""

    def _drop_raw(self) -> None:
        """The answer is not as the provider sent it."""
        self._held, self._raw = [], b""

    async def _model(
        self, conversation: ProxyConversation, run: BridgeRun, hashes: list[bytes]
    ) -> HostAnswer:
        request = self._request
        pieces = [*conversation.sent(request.pieces, hashes), *self._extra]
        is_own = not self._extra and not conversation.edits
        before = [piece.message for piece in pieces]
        system = conversation.system(request.system)
        original: list[HostAnswer] = []

        async def ask(asked: HostRequest) -> HostAnswer:
            sent = pieces
            if asked.messages != before:
                sent = replaced(pieces, before, asked.messages, self._form.built)
            if is_own and sent is pieces and asked.system == request.system:
                body = request.raw
            else:
                body = self._form.body(request, asked.system, sent)
            self._drop_raw()
            original[:] = [await self._ask(body, is_live=passes(run))]
            return original[0]

        asked = HostRequest([*before], request.model, system, request.tools)
        answer = await run.call_model(asked, ask)
        if not original or answer.text != original[0].text or is_changed(answer, original[0]):
            self._drop_raw()
        return answer

    async def _ask(self, body: bytes, is_live: bool) -> HostAnswer:
        """Send a request to the provider, and read its answer; pass text on if nothing withholds it."""
        self._reader = reader = self._form.reader()
        async with self._upstream.post(body, stream=self._request.stream) as response:
            if not self._request.stream:
                self._raw = await self._upstream.whole(response)
                reader.whole(self._raw)
                return reader.answer()
            self._client.headers = self._upstream.passed_headers(response)
            events = RawEvents()
            async for chunk in self._upstream.chunks(response):
                for raw, data in events.feed(chunk):
                    await self._event(reader, raw, data, is_live)
            for raw, data in events.end():
                await self._event(reader, raw, data, is_live)
        if not reader.is_complete:
            raise BadResponse("an answer that was cut off")
        answer = reader.answer()
        if is_live:
            self._shown = answer.text
        return answer

    async def _event(self, reader: AnswerReader, raw: bytes, data: bytes, is_live: bool) -> None:
        if reader.take(data) and is_live and not self._held:
            await self._client.write(self._writer.passed(raw, reader.data))
        else:
            self._held.append((raw, reader.data))

    # --- tools ----------------------------------------------------------------------------------

    async def _judged(
        self, conversation: ProxyConversation, run: BridgeRun, answer: HostAnswer
    ) -> tuple[list[Json], list[tuple[Json, str]]]:
        """The calls that the client gets, and those that it does not, each with the reason."""
        allowed: list[Json] = []
        denied: list[tuple[Json, str]] = []
        for asked in answer.tool_calls:
            call = await run.admit(asked["name"], asked["arguments"], asked["id"])
            if call.refusal is not None:
                denied.append((asked, str(await run.finish(call))))
                continue
            conversation.expects(call)
            same = call.arguments == parsed(asked["arguments"])
            allowed.append(asked if same else {**asked, "arguments": call.arguments})
        return allowed, denied

    def _refusal(self, call: Json, reason: str) -> WireMessage:
        message = {"role": "tool", "tool_call_id": call["id"], "content": reason, "is_error": True}
        return self._form.built(message)

    # --- the client -----------------------------------------------------------------------------

    async def _deliver(self, answer: HostAnswer) -> None:
        """Send the rest of the answer: as the provider sent it, if nothing has changed it."""
        client, writer = self._client, self._writer
        if not self._request.stream:
            whole = replace(answer, text=self._said + answer.text)
            unchanged = self._raw and not self._said
            await client.whole(self._raw if unchanged else writer.whole(whole, self._reader))
            return
        if self._held:
            for raw, data in self._held:
                await client.write(writer.passed(raw, data))
        else:
            shown = self._shown
            if not answer.text.startswith(shown):
                log.warning("an answer was changed after its text had been sent: %s", client.session)
            await client.write(writer.written(answer, answer.text.removeprefix(shown)))
        await client.end()


def passes(run: BridgeRun) -> bool:
    """Whether text may be passed on before the answer is complete: no handler can withhold it."""
    hooks: Any = run.app.hooks
    judges = (hooks["model_result"].count(), hooks["output"].count(), hooks["around_model_call"].live)
    return not any(judges)


def is_changed(answer: HostAnswer, original: HostAnswer) -> bool:
    """Whether handlers, or the rules for ids, changed a call."""
    return answer.tool_calls != original.tool_calls


def message_of(answer: HostAnswer) -> Json:
    """An answer as a message of the conversation."""
    message: Json = {"role": "assistant", "content": answer.text}
    if answer.tool_calls:
        message["tool_calls"] = answer.tool_calls
    return message

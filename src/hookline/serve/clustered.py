"""A gateway in a cluster: accepts messages for workers and delivers their answers."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from hookline.channel import Channel, Note, Question, finished
from hookline.errors import AgentError, ApprovalError, TapeError, TapeVersionMismatch
from hookline.runtime.inbox import key_of
from hookline.runtime.inbox.codec import unpacked
from hookline.runtime.turn import TurnResult
from hookline.tape.postgres.presence import Presence
from hookline.types import Envelope, address_of, field_of

from .chat_locks import ChatLocks
from .cluster import Bundle, Parcel, Queue, Relay, prepare
from .cluster.engine import listen, name_of
from .cluster.items import event_of, result_of
from .cluster.relay import EVERYBODY
from .cluster.schema import checked
from .message_channel import MessageChannel
from .message_processor import told
from .settings import worker_settings_of

if TYPE_CHECKING:
    from hookline.tape.postgres.store import PostgresStore

    from .gateway import Gateway

log = logging.getLogger("hookline.serve")

SWEEP: Final = 2.0
"""Seconds between two searches for undelivered answers."""
REMEMBERED: Final = 7 * 86400.0
"""Seconds for which a settled message's key is kept."""
FORGET_EVERY: Final = 100
"""Sweeps between two deletions of old keys."""
MOST_BROUGHT: Final = 10_000
"""How many deliveries to remember."""


class Cluster:
    """One gateway's part of a cluster."""

    def __init__(self, gateway: Gateway, store: PostgresStore) -> None:
        self._gateway = gateway
        self._store = store
        self.id = uuid4().hex[:16]
        """The name of this gateway in the cluster."""
        self.queue = Queue(store)
        self.queue.silence = worker_settings_of(gateway.app.config).silence
        self.relay = Relay(self.queue)
        self._locks = ChatLocks()
        self._tasks: set[asyncio.Task[None]] = set()
        self._brought: dict[int, None] = {}
        """The latest deliveries: a sweep may find what a notification already brought."""
        self._accepted: dict[str, tuple[Envelope, float]] = {}
        """Messages accepted here and not answered yet, with their times."""
        self._ended = asyncio.Event()
        self._asking: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """Open questions of people here, each with the key of its message."""
        self._awaited: dict[str, asyncio.Future[TurnResult]] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        """Announce this gateway to the workers, and listen to them."""
        await prepare(self._store)
        presence = await Presence.open(self._store, self.id)
        stack.push_async_callback(presence.close)
        stack.push_async_callback(self._close)
        own = [self.queue.gateway_channel(self.id), name_of(self._store, EVERYBODY)]
        self._spawn(listen(self._store, own, self._heard, opened=self._sweep))
        self._spawn(self._sweeping())

    async def drain(self, seconds: float) -> None:
        """Wait some seconds for the answers that senders here wait for; other answers are delivered
        later.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._accepted:
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            log.warning("cluster.unanswered messages=%d", len(self._accepted))

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.relay.close()

    # --- in -----------------------------------------------------------------------------------

    async def accept(self, message: Envelope) -> bool:
        """Store a message for a worker. Returns False if it was accepted before."""
        gateway = self._gateway
        session_id = await gateway.app.pipeline.resolve_session(message)
        alone = not gateway.is_debounced(message)
        key = key_of(message)
        held = self._accepted.setdefault(key, (message, time.monotonic()))
        is_new = False
        try:
            is_new = await self.queue.accept(message, session_id, self.id, alone=alone)
        finally:
            if not is_new and held[0] is message:
                self._accepted.pop(key, None)
        return is_new

    async def process(self, message: Envelope) -> TurnResult:
        """Let a worker run a message's turn and wait for it, as triggers do.

        A message whose turn failed gets another turn under another id, because the caller retries it.
        """
        number = 1
        while await self.queue.outcome_of(message) == "failed":
            number += 1
            name = str(message["message_id"]).partition("#")[0]
            message = {**message, "message_id": f"{name}#{number}"}
        key = key_of(message)
        known = self._awaited.get(key)
        done = known or asyncio.get_running_loop().create_future()
        self._awaited[key] = done
        try:
            await self.accept(message)
            while not done.done():
                await asyncio.wait([done], timeout=SWEEP)
                outcome: Any = None if done.done() else await self.queue.outcome_of(message)
                if outcome is not None:  # its end went to a gateway that is gone
                    session_id = await self._gateway.app.pipeline.resolve_session(message)
                    if outcome == "failed":
                        raise AgentError("the turn failed in a worker; the tape says why")
                    return TurnResult(session_id, outcome=outcome)
            return done.result()
        finally:
            if known is None:
                self._awaited.pop(key, None)

    # --- out ----------------------------------------------------------------------------------

    async def _heard(self, channel: str, notice: str) -> None:
        try:
            if channel == name_of(self._store, EVERYBODY):
                await self._sweep()
                return
            parcel = await self.relay.read(notice)
        except (
            TapeError,
            ValueError,
        ) as error:  # a lost piece is gone; the next sweep finds a lost end
            log.warning("cluster.notice_lost error=%s", error)
            return
        if parcel is not None:
            self._bring(parcel)

    async def _sweeping(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(SWEEP)
            count += 1
            try:
                await checked(self._store)
                await self._sweep()
                if count % FORGET_EVERY == 0:
                    await self.relay.forget()
                    await self.queue.forget(REMEMBERED)
            except TapeVersionMismatch as error:
                self._gateway.error = error
                self._gateway.leave()
            except TapeError as error:
                log.warning("cluster.sweep_failed error=%s", error)

    async def _sweep(self) -> None:
        for parcel in await self.relay.undelivered(self.id, self._gateway.channels):
            self._bring(parcel)

    def _bring(self, parcel: Parcel) -> None:
        if parcel.number is not None:
            if parcel.number in self._brought:
                return
            self._brought[parcel.number] = None
            if len(self._brought) > MOST_BROUGHT:
                del self._brought[next(iter(self._brought))]
        self._spawn(self._deliver(parcel))

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _deliver(self, parcel: Parcel) -> None:
        """Deliver items to their channel, those of one chat in order."""
        to = parcel.bundle.to
        message, _ = self._accepted.get(key_of(to), (to, None))
        try:
            async with self._locks.of(message):
                await self._items(message, parcel.bundle)
            if parcel.number is not None:
                self.relay.delivered(parcel.number)
        except TapeError as error:
            log.warning("cluster.delivery_kept error=%s", error)

    async def _items(self, message: Envelope, bundle: Bundle) -> None:
        channel = MessageChannel(self._gateway, message)
        for kind, said in bundle.items:
            try:
                await self._item(channel, message, kind, said)
            except Exception as error:  # the others are still due
                await self._gateway.failed(address_of(message)[0], error)

    async def _item(self, channel: MessageChannel, message: Envelope, kind: str, said: Any) -> None:
        match kind:
            case "stream":
                await finished(channel.stream(event_of(said)))
            case "send" if field_of(message, "message_id"):
                await channel.send(unpacked(said))
            case "send":
                await self._gateway.deliver(unpacked(said))
            case "notify":
                await channel.notify(Note(*said))
            case "ask":
                if said["id"] not in self._asking:  # a worker may continue for another that asked
                    task = self._spawn(self._ask(channel, message, said))
                    self._asking[said["id"]] = (key_of(message), task)
            case "asked":
                self._asked(said)
            case "end":
                result = result_of(said)
                self._note(message, result.outcome)
                failure = AgentError(result.stopped or "") if result.outcome == "failed" else None
                self._answered(message, failure or result)
                await channel.end(result)
                self._ended.set()
            case _:
                log.warning("cluster.unknown_item kind=%s; update this gateway", kind)

    def _asked(self, question: str) -> None:
        """Withdraw a question whose asker no longer waits."""
        if question in self._asking:
            _, task = self._asking.pop(question)
            task.cancel()

    def _note(self, message: Envelope, outcome: str) -> None:
        for question, (key, _) in [*self._asking.items()]:
            if key == key_of(message):
                self._asked(question)
        _, began = self._accepted.pop(key_of(message), (None, None))
        self._gateway.note(message, outcome, 0.0 if began is None else time.monotonic() - began)

    def _answered(self, message: Envelope, result: TurnResult | Exception) -> None:
        waiting = self._awaited.get(key_of(message))
        if waiting is None or waiting.done():
            return
        if isinstance(result, TurnResult):
            waiting.set_result(result)
        else:
            waiting.set_exception(result)

    async def _ask(self, channel: Channel, message: Envelope, request: dict[str, Any]) -> None:
        """Ask the sender. The worker reads the answer where it is stored."""
        try:
            answer = await channel.ask(Question.of(request))
            approvals = self._gateway.app.approvals
            if answer is not None:
                by = str(field_of(message, "sender_id") or address_of(message)[0])
                await asyncio.to_thread(approvals.answer, request["id"], answer, by=by)
        except ApprovalError:
            pass  # someone has already answered, perhaps the channel itself
        except Exception as error:
            await self._gateway.failed(address_of(message)[0], error)
            log.debug("cluster.ask_failed: %s", told(error))
        finally:
            _, task = self._asking.get(request["id"], ("", None))
            if task is asyncio.current_task():
                del self._asking[request["id"]]

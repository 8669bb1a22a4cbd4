"""A queue in NATS JetStream, through `nats-py`.

All processes share one durable consumer. An event is acknowledged when the ledger records its end, so
an event whose process died is delivered again, and the ledger recognises it. The client reconnects to
a lost broker for as long as it takes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hookline.hooks.errors import error_text
from hookline.hookspecs import TriggerEvent
from hookline.text.foreign_json import parse_json

from .errors import MissingTriggerLibrary, TriggerError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

    from .queue import QueueTrigger

KEY = "Nats-Msg-Id"
"""The header with the idempotency key; the broker itself refuses a second one for a while."""
FETCH = 5.0
"""Seconds that one request for events waits."""


async def consume(trigger: QueueTrigger) -> None:
    """Take events from the stream, until cancelled."""
    async with connected(trigger) as client:
        from nats.errors import TimeoutError as Nothing
        from nats.js.api import ConsumerConfig

        stream = await ensured(client, trigger)
        subscription = await stream_of(client).pull_subscribe(
            subject_of(trigger),
            durable=trigger.settings.consumer or f"hookline-{trigger.name}",
            stream=stream,
            config=ConsumerConfig(ack_wait=trigger.settings.ack_wait, max_deliver=-1),
        )

        async def work() -> None:
            while True:
                try:
                    (message,) = await subscription.fetch(1, timeout=FETCH)
                except Nothing:
                    continue
                await handle(trigger, message)

        async with asyncio.TaskGroup() as workers:
            for _ in range(trigger.settings.concurrency):
                workers.create_task(work())


async def publish(trigger: QueueTrigger, event: TriggerEvent) -> bool:
    """Put an event into the stream; False where the broker knows its id."""
    async with connected(trigger, patient=False) as client:
        await ensured(client, trigger)
        kept = await stream_of(client).publish(
            subject_of(trigger), json.dumps(event.payload).encode(), headers={KEY: event.id}
        )
        return not kept.duplicate


async def handle(trigger: QueueTrigger, message: Msg) -> None:
    """Make a turn of one message, and tell the broker when it is over."""
    event = event_of(trigger, message)
    if isinstance(event.payload, NotJson):
        dead = TriggerEvent(event.trigger, event.payload.text, event.id, event.time)
        await trigger.context.ledger.bury(dead, "it is not JSON")
        await trigger.context.report(trigger.name, TriggerError(f"event {event.id!r} is not JSON"))
        await message.term()
        return
    receipt = await trigger.take(event)
    settled = await held(message, receipt.settled(), trigger.settings.ack_wait / 3)
    if settled.state == "done":
        await message.ack()
    elif settled.state == "dead":
        await message.term()
    elif settled.state == "failed":
        await message.nak(delay=max(settled.due - trigger.context.clock.now(), 0.1))
    # Otherwise another process has it, or the turn is parked: the broker sends it again later.


async def held(message: Msg, work: Any, every: float) -> Any:
    """Wait for something, and tell the broker meanwhile that it is in hand."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=every))[0]:
            await message.in_progress()
        return task.result()
    finally:
        task.cancel()


class NotJson:
    """The body of a message that is not JSON."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode(errors="replace")


def event_of(trigger: QueueTrigger, message: Msg) -> TriggerEvent:
    """The event that a message carries; without a key its place in the stream is its id."""
    about = message.metadata
    key = (message.headers or {}).get(KEY) or f"{about.stream}:{about.sequence.stream}"
    try:
        payload = parse_json(message.data)
    except (ValueError, RecursionError):
        payload = NotJson(message.data)
    return TriggerEvent(trigger.name, payload, key, about.timestamp.timestamp())


def subject_of(trigger: QueueTrigger) -> str:
    """Where the events of a trigger are published."""
    return trigger.settings.subject or f"hookline.{trigger.name}"


def stream_of(client: Client) -> JetStreamContext:
    """What the client has of JetStream."""
    return client.jetstream()  # pyright: ignore[reportUnknownMemberType]


async def ensured(client: Client, trigger: QueueTrigger) -> str:
    """The name of the stream, which is created if it does not exist."""
    from nats.js.api import StreamConfig
    from nats.js.errors import NotFoundError

    name = trigger.settings.stream or f"hookline-{trigger.name}"
    manager = stream_of(client)
    try:
        await manager.stream_info(name)
    except NotFoundError:
        await manager.add_stream(StreamConfig(name=name, subjects=[subject_of(trigger)]))  # pyright: ignore[reportUnknownMemberType]
    return name


@asynccontextmanager
async def connected(trigger: QueueTrigger, *, patient: bool = True) -> AsyncGenerator[Client]:
    """A connection to the broker; a patient one waits for it and comes back after an outage."""
    try:
        import nats
        from nats.errors import Error
    except ImportError:
        raise MissingTriggerLibrary("queue", "nats-py for a broker", "triggers") from None

    address = str(trigger.settings.broker)
    away = False

    async def failed(error: Exception) -> None:
        nonlocal away
        if not away:
            away = True
            await trigger.context.report(trigger.name, _unreachable(address, error))

    async def back() -> None:
        nonlocal away
        away = False

    try:
        client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
            address,
            name=f"hookline {trigger.name}",
            connect_timeout=5,
            reconnect_time_wait=1 if patient else 0.1,
            max_reconnect_attempts=-1 if patient else 1,  # 0 is for ever
            allow_reconnect=patient,
            error_cb=failed if patient else None,
            reconnected_cb=back,
        )
    except (Error, OSError) as error:
        raise _unreachable(address, error) from error
    try:
        yield client
    finally:
        await client.close()


def _unreachable(address: str, error: Exception) -> TriggerError:
    host = address.rpartition("@")[2]
    return TriggerError(f"cannot reach the broker at {host}: {error_text(error)}; is NATS running?")

"""The queue trigger: events wait in a table of the home, or in a broker, until each has had its turn.

Delivery is at least once, and the ledger makes one turn of it. A turn that fails is tried again after a
while; after the last try the event is a dead letter, which `hookline triggers dead` shows.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar
from uuid import uuid4

from pydantic import Field, field_validator

from hookline.config.schema import RetrySettings
from hookline.hookspecs import TriggerEvent
from hookline.system.retry import RetryPolicy

from .context import Receipt
from .errors import TemplateError
from .settings import TriggerSettings
from .trigger import RunningTrigger


class QueueSettings(TriggerSettings, RetrySettings):
    """`type = "queue"`."""

    broker: str | None = None
    """The URL of NATS, such as `nats://127.0.0.1:4222`. Without one the queue is a table in the home.
    """
    stream: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]+$")
    """The JetStream stream, created if it does not exist; by default `hookline-<name>`."""
    subject: str | None = None
    """Its subject; by default `hookline.<name>`."""
    consumer: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]+$")
    """The durable consumer that the processes share; by default `hookline-<name>`."""
    ack_wait: float = Field(default=30.0, ge=1)
    """Seconds after which the broker gives an event of a silent process to another."""
    concurrency: int = Field(default=1, ge=1, le=64)
    """How many events have their turn at the same time."""
    poll: float = Field(default=1.0, gt=0)
    """Seconds between two looks at the table."""
    retry: RetryPolicy = RetryPolicy(attempts=3, first=5.0, max=3600.0, jitter=0.0)
    """How a turn that fails is tried again, until the event is a dead letter."""

    def retry_policy(self) -> RetryPolicy:
        """How a turn that fails is tried again."""
        return self.retry

    @field_validator("broker")
    @classmethod
    def _is_nats(cls, broker: str | None) -> str | None:
        if broker is not None and not broker.startswith(("nats://", "tls://")):
            raise ValueError("must be an address such as nats://127.0.0.1:4222")
        return broker


class QueueTrigger(RunningTrigger[QueueSettings]):
    """Takes events from a queue, in their order, some at a time."""

    form: ClassVar[type[Any]] = QueueSettings
    pause = 1.0

    async def run(self) -> None:
        """Take events, one after the other, until cancelled."""
        if self.settings.broker is not None:
            from .jetstream import consume

            await consume(self)
            return
        async with asyncio.TaskGroup() as workers:
            for _ in range(self.settings.concurrency):
                workers.create_task(self._work())

    async def enqueue(self, payload: Any, event_id: str | None) -> tuple[str, bool]:
        """Put an event at the end of the queue."""
        event = TriggerEvent(self.name, payload, event_id or uuid4().hex, self.context.clock.now())
        if self.settings.broker is not None:
            from .jetstream import publish

            return event.id, await publish(self, event)
        return event.id, await self.context.ledger.enqueue(event)

    async def revive(self, event_id: str) -> bool:
        """Requeue a dead letter. Return False if there is none with this id."""
        if self.settings.broker is not None:
            raise NotImplementedError
        return await self.context.ledger.revive(self.name, event_id)

    async def take(self, event: TriggerEvent) -> Receipt:
        """Emit an event; one that no message can be made of is a dead letter."""
        try:
            return await self.context.emit(event, again=True)
        except TemplateError as error:
            await self.context.ledger.bury(event, str(error))
            await self.context.report(self.name, error)
            return Receipt(event, False, "dead")

    async def _work(self) -> None:
        clock, ledger = self.context.clock, self.context.ledger
        while True:
            event = await ledger.waiting(self.name)
            if event is None:
                await clock.sleep_until(clock.now() + self.settings.poll)
                continue
            await (await self.take(event)).settled()

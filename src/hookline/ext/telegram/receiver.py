"""Receive updates by long polling or by a webhook, and acknowledge each once it is accepted.

Telegram delivers an update again until it is acknowledged; the gateway recognises duplicates by their
id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from telegram import Update
from telegram.error import InvalidToken, RetryAfter, TelegramError

from hookline.ext.telegram.errors import TelegramFailed

from .api import Api, seconds
from .settings import TelegramSettings

log = logging.getLogger("hookline.ext.telegram")

KINDS: Final = ["message", "callback_query"]
"""The updates that are asked for."""
PATH: Final = "/telegram/webhook"
LOOK_AGAIN: Final = 1.0
"""Seconds after which further updates are looked for, while some still wait to be accepted."""

Take = Callable[[Update], Awaitable[bool]]
"""Accepts an update; returns False if it must be delivered again."""


class Receiver:
    """Takes updates over, each once at a time."""

    def __init__(self, api: Api, settings: TelegramSettings, take: Take) -> None:
        self._api = api
        self._settings = settings
        self._take = take
        self._taking: dict[int, asyncio.Task[bool]] = {}
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to receive; a token that Telegram does not know is refused, an outage is not."""
        known = False
        try:
            await self._api.bot.get_me()
            known = True
        except InvalidToken as error:
            raise TelegramFailed(self._api.told(error)) from None
        except TelegramError as error:
            log.warning("telegram.out_of_reach error=%s", self._api.told(error))
        self._running = asyncio.create_task(self._run(known=known))

    async def stop(self) -> None:
        """Stop receiving; updates that were not accepted are delivered again later."""
        tasks = [task for task in (self._running, *self._taking.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, *, known: bool) -> None:
        if not known:
            await self._outlast(self._api.bot.get_me)  # from then on the bot knows its own name
        await (self._poll() if self._settings.mode == "polling" else self._set_webhook())

    def receive(self, update: Update) -> asyncio.Task[bool]:
        """Accept an update, unless it is already being processed."""
        task = self._taking.get(update.update_id)
        if task is None:
            task = asyncio.ensure_future(self._take(update))
            self._taking[update.update_id] = task
        return task

    async def _outlast(self, action: Callable[[], Awaitable[Any]]) -> Any:
        """Repeat a request until Telegram accepts it; log an outage once."""
        failures = 0
        while True:
            try:
                done = await action()
            except RetryAfter as error:
                await asyncio.sleep(seconds(error))
            except TelegramError as error:
                if not failures:
                    log.error("telegram.not_receiving error=%s", self._api.told(error))
                failures += 1
                await asyncio.sleep(self._api.retry.delay(failures))
            else:
                if failures:
                    log.info("telegram.receiving_again")
                return done

    # --- long polling -------------------------------------------------------------------------

    async def _poll(self) -> None:
        bot, patience = self._api.bot, self._settings.poll_seconds
        await self._outlast(bot.delete_webhook)  # Telegram gives updates out in one way at a time
        offset: int | None = None
        while True:
            waits = 0 if self._taking else patience

            async def fetch(offset: int | None = offset, waits: int = waits) -> tuple[Update, ...]:
                return await bot.get_updates(offset=offset, timeout=waits, allowed_updates=KINDS)

            updates: tuple[Update, ...] = await self._outlast(fetch)
            for update in updates:
                self.receive(update)
            if self._taking:
                await asyncio.wait([*self._taking.values()], timeout=LOOK_AGAIN)
                offset, failed = self._acknowledged(offset)
                if failed:
                    await asyncio.sleep(LOOK_AGAIN)
            else:
                # This request acknowledged everything. After a week without updates, ids may restart
                # lower.
                offset = None

    def _acknowledged(self, offset: int | None) -> tuple[int | None, bool]:
        """Up to where everything was accepted, and whether something failed, which comes again."""
        for name in sorted(self._taking):
            task = self._taking[name]
            if not task.done():
                break
            del self._taking[name]
            if not accepted(task):
                for later in [other for other, task in self._taking.items() if task.done()]:
                    del self._taking[later]
                return offset, True
            offset = name + 1
        return offset, False

    # --- webhook ------------------------------------------------------------------------------

    async def _set_webhook(self) -> None:
        settings = self._settings
        await self._outlast(
            lambda: self._api.bot.set_webhook(
                f"{settings.webhook_url}{PATH}",
                allowed_updates=KINDS,
                secret_token=settings.webhook_secret(),
            )
        )

    def done(self, update: Update) -> None:
        """Forget an update that was taken over, or not."""
        task = self._taking.get(update.update_id)
        if task is not None and task.done():
            del self._taking[update.update_id]


def accepted(task: asyncio.Task[bool]) -> bool:
    """Whether an update was taken over."""
    if task.cancelled():
        return False
    error = task.exception()
    if error is not None:
        log.error("telegram.not_accepted error=%s", error)
        return False
    return task.result()

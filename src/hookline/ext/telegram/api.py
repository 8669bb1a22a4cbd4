"""The Bot API: one bot, its token kept out of sight, and calls that outlast limits and outages."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

# The library warns about its old numeric time values; these are the values it will return in future.
os.environ.setdefault("PTB_TIMEDELTA", "true")

from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest

from .settings import TelegramSettings

T = TypeVar("T")

REFUSED = (BadRequest, ChatMigrated, Forbidden, InvalidToken)
"""Errors that the same call would bring again."""
_LOGGERS = ("httpx", "telegram.Bot")
"""Who would write down the addresses of requests, and the token with them."""
_POOL = 128


class Api:
    """Telegram as one bot reaches it."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._token = settings.token.get_secret_value()
        self._secrets = (self._token, settings.webhook_secret())
        self._patience, self.retry = settings.patience, settings.retry
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._mask)
        self._requests = [_request(settings, size) for size in (1, _POOL)]
        self.bot = Bot(
            self._token,
            base_url=f"{settings.api}/bot",
            base_file_url=f"{settings.api}/file/bot",
            get_updates_request=self._requests[0],
            request=self._requests[1],
        )
        self._held: dict[int, float] = {}

    async def close(self) -> None:
        """Close the connections."""
        for request in self._requests:
            await request.shutdown()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._mask)

    def _mask(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if any(secret in text for secret in self._secrets):
            record.msg, record.args = self.masked(text), ()
        return True

    def masked(self, text: str) -> str:
        """A text without the token."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def told(self, error: Exception) -> str:
        """An error of the library as a sentence without the token."""
        if isinstance(error, InvalidToken):
            return (
                "Telegram does not know the token; ask @BotFather, and set token in [channels.telegram]"
            )
        if isinstance(error, Conflict):
            return "somebody else fetches this bot's messages: another gateway, or a webhook"
        return self.masked(str(error) or type(error).__name__)

    def is_held(self, chat: int) -> bool:
        """Whether Telegram asked to leave a chat alone for a while."""
        return self._held.get(chat, 0.0) > time.monotonic()

    async def once(self, chat: int, action: Callable[[], Awaitable[T]]) -> T | None:
        """Run an optional request. Return None if it fails, or if the chat is rate-limited."""
        if self.is_held(chat):
            return None
        try:
            return await action()
        except RetryAfter as error:
            self._hold(chat, error)
        except (BadRequest, Forbidden):
            raise
        except TelegramError:
            pass
        return None

    async def call(self, chat: int, action: Callable[[], Awaitable[T]]) -> T:
        """Do something for a chat; again while Telegram asks for patience or is out of reach."""
        until, failures = time.monotonic() + self._patience, 0
        while True:
            await asyncio.sleep(max(0.0, self._held.pop(chat, 0.0) - time.monotonic()))
            try:
                return await action()
            except REFUSED:
                raise
            except RetryAfter as error:
                wait = self._hold(chat, error)
                if time.monotonic() + wait > until:
                    raise
            except NetworkError:
                failures += 1
                wait = self.retry.delay(failures)
                if time.monotonic() + wait > until:
                    raise
                await asyncio.sleep(wait)

    def _hold(self, chat: int, error: RetryAfter) -> float:
        wait = seconds(error)
        self._held[chat] = time.monotonic() + wait
        return wait


def seconds(error: RetryAfter) -> float:
    """How long Telegram asks to wait."""
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def _request(settings: TelegramSettings, size: int) -> HTTPXRequest:
    return HTTPXRequest(
        connection_pool_size=size,
        read_timeout=settings.timeout,
        write_timeout=settings.timeout,
        connect_timeout=settings.timeout,
        pool_timeout=settings.timeout,
        media_write_timeout=3 * settings.timeout,
    )

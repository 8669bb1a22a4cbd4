"""The webhook that Telegram calls, protected by a secret that only Telegram knows."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from telegram import Bot, Update

from hookline.text.foreign_json import parse_json

from .receiver import PATH, Receiver, accepted

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


def webhook_routes(receiver: Receiver, bot: Bot, secret: str) -> APIRouter:
    """The route of a bot's webhook. Telegram repeats a call until it gets status 200."""
    router = APIRouter()

    async def webhook(request: Request) -> JSONResponse:
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), secret.encode()):
            return JSONResponse({"detail": "the secret token is missing or wrong"}, 401)
        try:
            update = _update(parse_json(await request.body()), bot)
        except (ValueError, TypeError, KeyError, AttributeError):
            return JSONResponse({"detail": "the body is no update of Telegram"}, 400)
        task = receiver.receive(update)
        try:
            await asyncio.wait([task])
            if not accepted(task):
                return JSONResponse({"detail": "not accepted; bring it again later"}, 503)
            return JSONResponse({"ok": True})
        finally:
            receiver.done(update)

    router.add_api_route(PATH, webhook, methods=["POST"], include_in_schema=False)
    return router


def _update(body: Any, bot: Bot) -> Update:
    if not isinstance(body, dict):
        raise TypeError("an update is an object")
    return Update.de_json(body, bot)  # pyright: ignore[reportUnknownArgumentType]

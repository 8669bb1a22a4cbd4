"""Asking a model and gathering what it answers."""

from contextlib import aclosing
from typing import Any

from hookline.models import Model, ModelRequest
from hookline.types import StreamEvent


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


async def events(model: Model, request: ModelRequest) -> list[StreamEvent]:
    async with aclosing(model.stream(request)) as stream:  # type: ignore[type-var]
        return [event async for event in stream]


def text_of(found: list[StreamEvent]) -> str:
    return "".join(event.data["delta"] for event in found if event.kind == "text")


def one(found: list[StreamEvent], kind: str) -> dict[str, Any]:
    [data] = [event.data for event in found if event.kind == kind]
    return data

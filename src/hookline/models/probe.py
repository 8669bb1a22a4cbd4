"""A probe: one tiny request that shows whether a model answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, cast

from hookline.errors import ModelFailed

from .model import Model, ModelRequest

SECONDS = 60.0


async def probe(model: Model, seconds: float = SECONDS) -> str:
    """Ask a model for one word and return its answer; it fails like any other request."""
    request = ModelRequest(
        messages=[{"role": "user", "content": "Reply with the word: ok"}],
        system="Answer with one word.",
        options={"max_tokens": 16},
    )
    said = ""
    try:
        async with asyncio.timeout(seconds), aclosing(cast("Any", model.stream(request))) as events:
            async for event in events:
                if event.kind == "text":
                    said += event.data["delta"]
    except TimeoutError:
        raise ModelFailed(f"{model.name} did not answer within {seconds:g} seconds") from None
    return said.strip()

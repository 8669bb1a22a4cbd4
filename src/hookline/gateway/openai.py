"""The OpenAI channel: `/v1`, so that any OpenAI client talks to the agent."""

from __future__ import annotations

from fastapi import APIRouter

from hookline.catalog.envelope import Envelope
from hookline.channel import Question

from .framed import FrameChannel


class OpenAIChannel(FrameChannel):
    """Programs that know no more of the agent than a model's API. Nobody there can be asked."""

    name = "openai"
    debounced = False

    def routes(self) -> APIRouter:
        """`/v1/models` and `/v1/chat/completions`."""
        from .routes.openai import openai_routes

        return openai_routes(self)

    async def ask(self, inbound: Envelope, question: Question) -> str | None:
        """Leave the question to its default, which denies an approval."""
        return None

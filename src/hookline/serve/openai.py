"""The OpenAI channel: `/v1`, so that any OpenAI client talks to the agent."""

from __future__ import annotations

from fastapi import APIRouter

from hookline.channel import Channel, Question
from hookline.types import Envelope

from .framed import FrameChannel, FrameReply


class OpenAIChannel(FrameChannel):
    """Programs that know no more of the agent than a model's API. Nobody there can be asked."""

    name = "openai"
    debounced = False

    def routes(self) -> APIRouter:
        """`/v1/models` and `/v1/chat/completions`."""
        from .routes.openai import openai_routes

        return openai_routes(self)

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message."""
        return UnaskedReply(self, message)


class UnaskedReply(FrameReply):
    """The channel of a message whose sender cannot be asked: an approval is denied."""

    @property
    def asks(self) -> bool:
        """No one is there."""
        return False

    async def ask(self, question: Question) -> str | None:
        """Leave the question to its default."""
        return None

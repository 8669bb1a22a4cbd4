"""The OpenAI channel: `/v1`, so that any OpenAI client can talk to the agent."""

from __future__ import annotations

from fastapi import APIRouter

from hookline.channel import Channel, Question
from hookline.types import Envelope

from .framed import FrameChannel, FrameReply


class OpenAIChannel(FrameChannel):
    """Programs that use the agent as a model. No one there can be asked."""

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
    """The channel of a message whose sender cannot be asked: approvals are denied."""

    @property
    def asks(self) -> bool:
        """Whether someone can be asked: never here."""
        return False

    async def ask(self, question: Question) -> str | None:
        """Return None, so that the question's default counts."""
        return None

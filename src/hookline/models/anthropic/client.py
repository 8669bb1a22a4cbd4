"""A model behind Anthropic's Messages API, on the connections of `models.openai`."""

from __future__ import annotations

from json import JSONEncoder

from ..model import ModelRequest
from ..openai.client import OpenAIModel
from ..openai.connections import Connections
from ..openai.settings import Endpoint
from ..openai.wire import ToolNames
from .wire import MessageReply, body

VERSION = "2023-06-01"

_encode = JSONEncoder(separators=(",", ":")).encode


class AnthropicModel(OpenAIModel):
    """Asks one model of the Messages API: tools, images, thinking, prompt caching."""

    offer = "messages"

    def __init__(
        self, model: str, endpoint: Endpoint, *, connections: Connections | None = None
    ) -> None:
        super().__init__(model, endpoint, name=f"anthropic:{model}", connections=connections)

    def _authorization(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def _write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        names = ToolNames(tool["name"] for tool in request.tools)
        return _encode(body(request, self._model, names, self._endpoint.settings)).encode(), names

    def _reply(self, names: ToolNames) -> MessageReply:
        return MessageReply(names)

"""A model behind an OpenAI-compatible endpoint, by chat completions."""

from __future__ import annotations

from ..capabilities import CAPABILITIES
from ..http.client import HttpModel
from ..http.connections import Connections
from ..http.reply import ToolNames
from ..http.settings import Endpoint
from ..model import ModelRequest
from .request import RequestWriter
from .wire import ChatReply


class OpenAIModel(HttpModel):
    """Asks one model for chat completions."""

    offer = "chat completions"
    capabilities = CAPABILITIES["openai"]

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        name: str = "",
        connections: Connections | None = None,
    ) -> None:
        super().__init__(model, endpoint, name=name, connections=connections)
        self._writer = RequestWriter(model, endpoint)

    def _write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        return self._writer.write(request)

    def _reply(self, names: ToolNames) -> ChatReply:
        return ChatReply(names)

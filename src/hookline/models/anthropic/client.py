"""A model behind Anthropic's Messages API."""

from __future__ import annotations

from json import JSONEncoder

from ..capabilities import CAPABILITIES
from ..http.client import HttpModel
from ..http.connections import Connections
from ..http.reply import ToolNames
from ..http.settings import Endpoint
from ..model import ModelRequest
from .reply import MessageReply
from .wire import body, has_schemas

VERSION = "2023-06-01"

_encode = JSONEncoder(separators=(",", ":")).encode


class AnthropicModel(HttpModel):
    """Asks one model of the Messages API: tools, images, files, thinking, prompt caching."""

    offer = "messages"
    capabilities = CAPABILITIES["anthropic"]

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        name: str = "",
        connections: Connections | None = None,
    ) -> None:
        super().__init__(model, endpoint, name=name, connections=connections)
        self.native_output = self._holds

    def _holds(self, request: ModelRequest) -> bool:
        return has_schemas(self._model) and request.output is not None and request.output.strict

    def _authorization(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def _write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        names = ToolNames(tool["name"] for tool in request.tools)
        return _encode(body(request, self._model, names, self._endpoint.settings)).encode(), names

    def _reply(self, names: ToolNames) -> MessageReply:
        return MessageReply(names)

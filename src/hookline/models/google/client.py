"""A model behind Google's Gemini API."""

from __future__ import annotations

from json import JSONEncoder

from ..capabilities import CAPABILITIES
from ..http.client import HttpModel
from ..http.connections import Connections
from ..http.reply import ToolNames
from ..http.settings import Endpoint
from ..model import ModelRequest
from .reply import ContentReply
from .wire import body, is_older

_encode = JSONEncoder(separators=(",", ":")).encode


class GoogleModel(HttpModel):
    """Asks one model by `streamGenerateContent`: tools, images, audio, files, thinking."""

    offer = "streamGenerateContent"
    capabilities = CAPABILITIES["google"]

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        name: str = "",
        connections: Connections | None = None,
    ) -> None:
        model = model.removeprefix("models/")
        super().__init__(model, endpoint, name=name, connections=connections)
        self.native_output = self._holds

    def _holds(self, request: ModelRequest) -> bool:
        """Before Gemini 3, a schema for the answer and tools exclude each other."""
        return not request.tools or not is_older(self._model)

    def _authorization(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def _write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        names = ToolNames(tool["name"] for tool in request.tools)
        return _encode(body(request, self._model, names, self._endpoint.settings)).encode(), names

    def _reply(self, names: ToolNames) -> ContentReply:
        return ContentReply(names)

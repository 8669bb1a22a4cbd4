"""Requests as the bytes that an OpenAI-compatible endpoint is sent."""

from __future__ import annotations

from json import JSONEncoder
from typing import NamedTuple

from ..http.reply import ToolNames
from ..http.settings import Endpoint
from ..model import ModelRequest, ToolSchema
from .wire import frame, tools

_encode = JSONEncoder(separators=(",", ":")).encode


class _Told(NamedTuple):
    """The tools as last sent to the endpoint."""

    schemas: list[ToolSchema]  # kept, so that no other object gets the id of one
    ids: list[int]
    names: ToolNames
    text: str


class RequestWriter:
    """Writes the requests to one model.

    The tools are most of a short request and seldom change: they are written once, and kept until a
    request has others. A schema is known again as the object that it is: change none in place, make
    another.
    """

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self._model = model
        self._endpoint = endpoint
        self._told = _Told([], [], ToolNames(()), "")

    def write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        """The body of a request, and the names that its tools have on the wire."""
        told = self._told
        ids = [*map(id, request.tools)]
        if told.ids != ids:
            names = ToolNames(tool["name"] for tool in request.tools)
            told = _Told(list(request.tools), ids, names, _encode(tools(request, names)))
            self._told = told
        # A copy: names that only this conversation knows must not reach the next request.
        names = told.names.copy()
        endpoint = self._endpoint
        text = _encode(frame(request, self._model, names, endpoint.service, endpoint.settings))
        if request.tools:
            text = f'{text[:-1]},"tools":{told.text}}}'
        return text.encode(), names

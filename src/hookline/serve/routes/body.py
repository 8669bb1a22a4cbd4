"""Request bodies: JSON with limited nesting."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from hookline.text.errors import ForeignJsonError
from hookline.text.foreign_json import parse_json


class JsonRequest(Request):
    """A request with bounded JSON."""

    async def json(self) -> Any:
        """The body as JSON. Nesting that is too deep is refused."""
        try:
            return parse_json(await self.body())
        except ForeignJsonError as error:
            raise HTTPException(400, str(error)) from None


class JsonRoute(APIRoute):
    """A route with such a body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Pass the request on with a bounded body."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handled

"""Bodies: JSON that a client sends, nested no deeper than anyone who walks through it can bear."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from hookline.text.foreign_json import ForeignJsonError, parse_json


class JsonRequest(Request):
    """A request whose JSON is bounded."""

    async def json(self) -> Any:
        """The body as JSON; one that is nested too deep is refused."""
        try:
            return parse_json(await self.body())
        except ForeignJsonError as error:
            raise HTTPException(400, str(error)) from None


class JsonRoute(APIRoute):
    """A route that takes such a body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Hand the request on with a bounded body."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handled

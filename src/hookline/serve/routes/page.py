"""The page at `/`, with one route for each of its files. Other files are not served."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parent.parent / "static"
INDEX = "index.html"


def page_routes() -> list[Route]:
    """The page and its files."""
    files = StaticFiles(directory=STATIC)
    names = sorted(path.name for path in STATIC.iterdir() if path.is_file())

    def route(path: str, name: str) -> Route:
        async def serve(request: Request) -> Response:
            return await files.get_response(name, request.scope)

        return Route(path, serve, methods=["GET"], include_in_schema=False)

    named = [
        route("/", INDEX),
        route("/favicon.ico", "icon.svg"),
    ]  # browsers request it under this name
    return [*named, *(route(f"/{name}", name) for name in names)]

"""The webhook's endpoint, in FastAPI's form; imported when a webhook asks for its routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from hookline.ext.triggers.errors import WebhookRefused

if TYPE_CHECKING:
    from .webhook import WebhookTrigger

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The turn is over, and here is its answer (`wait = true`)."},
    202: {"description": "The event is recorded, and its turn follows."},
    400: {"description": "The body is not a JSON object, or the id is malformed."},
    401: {"description": "The signature is missing or wrong, or the timestamp is too far off."},
    409: {"description": "The event was received already; `status` says how far it is."},
    413: {"description": "The body is too large."},
    422: {"description": "The body has no value for a field of the message template."},
    500: {"description": "The turn failed (`wait = true`)."},
    503: {"description": "The triggers are being stopped; send it again later."},
}

_HEADERS = [
    {"name": name, "in": "header", "required": required, "schema": {"type": "string"}}
    for name, required in (
        ("X-Hookline-Timestamp", True),
        ("X-Hookline-Signature", True),
        ("X-Hookline-Id", False),
    )
]
_BODY = {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True}


def router(trigger: WebhookTrigger) -> APIRouter:
    """The one route of a webhook."""
    made = APIRouter(tags=["triggers"])

    async def receive(request: Request) -> JSONResponse:
        try:
            body = await limited(request, trigger.settings.max_body)
            status, said = await trigger.receive(request.headers, body)
        except WebhookRefused as refused:
            status, said = refused.status, {"error": str(refused)}
        return JSONResponse(said, status)

    made.add_api_route(
        trigger.path,
        receive,
        methods=["POST"],
        status_code=202,
        responses=RESPONSES,
        name=trigger.plugin_name,
        operation_id=f"trigger_{trigger.name}",
        summary=f"Fire the trigger {trigger.name}.",
        openapi_extra={"parameters": _HEADERS, "requestBody": _BODY},
    )
    return made


async def limited(request: Request, most: int) -> bytes:
    """Read the body up to the limit; stop reading when it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise WebhookRefused(413, f"the body has more than {most} bytes")
    return bytes(body)

"""`/health`, `/ready` and `/metrics`, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from ..metrics import CONTENT_TYPE
from . import PROBLEMS, ProblemBody

if TYPE_CHECKING:
    from ..gateway import Gateway


class HealthBody(BaseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Messages are accepted."""

    status: Literal["ready"] = "ready"


def health_routes(gateway: Gateway) -> tuple[APIRouter, APIRouter]:
    """The health routes: public probes, and the metrics."""
    router, counters = APIRouter(tags=["serving"]), APIRouter(tags=["serving"])
    called: dict[int | str, dict[str, Any]] = {code: PROBLEMS[code] for code in (403, 421)}

    @router.get("/health", responses=called)
    async def health() -> HealthBody:
        """Report that the process is alive."""
        return HealthBody()

    @router.get(
        "/ready",
        response_model=Readiness,
        responses={**called, 503: {"model": ProblemBody, "description": "Not yet, or not any more."}},
    )
    async def ready(response: Response) -> Readiness | Response:
        """Report whether messages are accepted."""
        if not gateway.ready:
            problem = ProblemBody(detail="the channels are not started, or going down")
            return Response(problem.model_dump_json(), 503, media_type="application/json")
        return Readiness()

    @counters.get(
        "/metrics",
        response_class=Response,
        responses={**PROBLEMS, 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        """Return the counters for Prometheus."""
        return Response(gateway.metrics.text(), media_type=CONTENT_TYPE)

    return router, counters

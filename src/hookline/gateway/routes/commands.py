"""`/api/commands`: what may follow a slash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from pydantic import BaseModel

from . import PROBLEMS

if TYPE_CHECKING:
    from ..gateway import Gateway


class CommandLine(BaseModel):
    """A command or a tool."""

    name: str
    help: str


def command_routes(gateway: Gateway) -> APIRouter:
    """The route of commands."""
    router = APIRouter(tags=["commands"])

    @router.get("/api/commands", responses=PROBLEMS)
    async def commands() -> list[CommandLine]:
        """List what may be asked with a slash: `/name …` as a message."""
        return [CommandLine(name=name, help=text) for name, text in gateway.commands.names()]

    return router

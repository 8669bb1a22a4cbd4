"""`/api/commands`: the slash commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from pydantic import BaseModel

from ..security import user_of
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
    async def commands(request: Request) -> list[CommandLine]:
        """List the commands available to the user: `/name …` as a message."""
        role = user_of(request.scope).role
        return [CommandLine(name=name, help=text) for name, text in gateway.commands.names(role)]

    return router

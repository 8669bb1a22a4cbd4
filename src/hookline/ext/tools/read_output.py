"""`read_output`: the whole of a result that was cut, by page."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.spool import read_page
from hookline.tools.tool import tool


@tool(side_effects=SideEffects.read, registry=None)
def read_output(id: str, context: ToolContext, page: Annotated[int, Field(ge=1)] = 1) -> str:  # noqa: A002
    """Read a page of a result that was too long to be shown whole.

    id: The id from the note below the cut result.
    page: Which page, counted from 1.

    """
    return read_page(id, page, context)

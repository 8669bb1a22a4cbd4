from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.tools import Tool, ToolContext


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    return place


@pytest.fixture
def reports() -> list[Any]:
    return []


@pytest.fixture
def context(workspace: Path, reports: list[Any]) -> ToolContext:
    """One session: its state lasts from call to call."""
    return ToolContext(call_id="c1", session_id="s1", workspace=workspace, report=reports.append)


@pytest.fixture
def call(context: ToolContext, reports: list[Any]) -> Callable[..., Any]:
    """Check the arguments and reach the function, as the runner does."""
    from dataclasses import replace

    async def call(tool: Tool, /, _allowed: tuple[Path, ...] = (), **arguments: Any) -> Any:
        here = replace(context, allowed=_allowed)
        return await tool._invoke(tool.validate(arguments), here, reports.append)

    return call

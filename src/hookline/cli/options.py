"""Options that several commands have, and what they change in the app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import BadInput

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Model = Annotated[str | None, typer.Option(help="The model that answers: provider:model.")]
Workspace = Annotated[Path | None, typer.Option(help="The folder that tools work in.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log as JSON Lines.")]
Latest = Annotated[bool, typer.Option("--continue", help="Continue the latest session of this folder.")]
ApproveAll = Annotated[
    bool, typer.Option("--yes", "-y", help="Approve every call that would be asked about.")
]


def configure(
    app: Hookline,
    model: str | None,
    workspace: Path | None,
    tool: str | None = None,
    *,
    ask: bool = False,
) -> None:
    """Apply the options, and enter the project; with `ask`, a person may be asked to trust it."""
    from .project import enter

    if model is not None:
        app.model = model
    if workspace is not None:
        app.workspace = check_workspace(workspace)
        app.config.reload(app.workspace)
    if tool is not None:
        app.tool_choice = "required" if tool == "any" else {"name": tool}
    enter(app, ask=ask)
    app.hook_files.load()


def check_workspace(workspace: Path) -> Path:
    """A folder that exists."""
    if not workspace.is_dir():
        raise BadInput(f"the workspace {workspace} is not a folder")
    return workspace.resolve()

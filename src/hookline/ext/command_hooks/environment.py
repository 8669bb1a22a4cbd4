"""The environment of command hooks."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.system.children.environment import environment as child_environment


def environment(workspace: str, keep: Iterable[str] = ()) -> dict[str, str]:
    """Return what a hook sees: a few variables of ours, those of `keep`, and where the project is.

    A hook runs in the workspace. `PYTHONSAFEPATH` keeps `python3 -c` and `python3 -m` from importing
    the `json.py` that a stranger's repository may have there.
    """
    project = {"CLAUDE_PROJECT_DIR": workspace, "HOOKLINE_PROJECT_DIR": workspace}
    return child_environment({**project, "PYTHONSAFEPATH": "1"}, keep=keep)

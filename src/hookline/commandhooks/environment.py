"""The variables of the environment that hooks see."""

import os


def environment(workspace: str) -> dict[str, str]:
    """Those of this process, and where the project is."""
    return {**os.environ, "CLAUDE_PROJECT_DIR": workspace, "HOOKLINE_PROJECT_DIR": workspace}

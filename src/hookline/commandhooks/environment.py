"""The variables of the environment that hooks see."""

import os


def environment(workspace: str) -> dict[bytes, bytes]:
    """Those of this process as it is now, and where the project is; as a process takes them."""
    place = os.fsencode(workspace)
    return {**os.environb, b"CLAUDE_PROJECT_DIR": place, b"HOOKLINE_PROJECT_DIR": place}

"""The folder for Hookline's files between runs."""

import os
from pathlib import Path


def home() -> Path:
    """`$HOOKLINE_HOME`, or `~/.hookline`. It need not exist yet."""
    given = os.environ.get("HOOKLINE_HOME")
    return Path(given).expanduser() if given else Path.home() / ".hookline"


def user_home() -> Path | None:
    """The user's own home directory; None for a user without one."""
    try:
        return Path.home()
    except RuntimeError:
        return None

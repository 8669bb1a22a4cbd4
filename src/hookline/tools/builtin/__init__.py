"""The tools that come with Hookline: read, list and search files, and the shell.

They stay inside the call's workspace, with symlinks resolved. `shell` starts there, and what it
runs can go anywhere the user can: that is for the gates to judge.
"""

from __future__ import annotations

from hookline.tools.tool import Tool


def builtin_tools() -> list[Tool]:
    """The builtin tools, for a registry that wants them."""
    from .list_files import list_files
    from .read_file import read_file
    from .search_files import search_files
    from .shell import shell

    return [read_file, list_files, search_files, shell]


__all__ = ["builtin_tools"]

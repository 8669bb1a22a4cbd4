"""The tools that ship with Hookline: files, the shell, the web, the tape, and a to-do list.

The file tools stay inside the call's workspace, with symlinks resolved. `shell` starts there; the
sandbox and the gates decide what its commands can reach.
"""

from __future__ import annotations

from hookline.tools.tool import Tool


def builtin_tools() -> list[Tool]:
    """The builtin tools, for a registry that wants them."""
    from .delegate import delegate
    from .edit_file import edit_file
    from .fetch_url import fetch_url
    from .list_files import list_files
    from .read_file import read_file
    from .read_output import read_output
    from .search_files import search_files
    from .shell import shell
    from .shell_jobs import shell_jobs, shell_kill, shell_output
    from .tape_tools import tape_handoff, tape_read, tape_search
    from .todo import todo
    from .write_file import write_file

    files = [read_file, list_files, search_files, write_file, edit_file]
    commands = [shell, shell_output, shell_kill, shell_jobs]
    tape = [tape_search, tape_read, tape_handoff]
    return [*files, *commands, fetch_url, todo, read_output, *tape, delegate]


def close_jobs(session: str | None = None) -> None:
    """End the commands that `shell` left in the background: all, or those of one session."""
    import sys

    if "hookline.ext.tools.jobs" in sys.modules:  # else there is none
        from .jobs import close_jobs

        close_jobs(session)


__all__ = ["builtin_tools", "close_jobs"]

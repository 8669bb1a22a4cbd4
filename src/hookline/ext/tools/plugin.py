"""The plugin `tools`: the file, shell and web tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from hookline.tools.tool import Tool


class ToolsPlugin:
    """The tools that come with Hookline."""

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """Tools for files, the shell, the web and the tape."""
        from . import builtin_tools

        return builtin_tools()

    @hookimpl
    async def hookline_shutdown(self) -> None:
        """End the commands that still run in the background."""
        import sys

        if "hookline.ext.tools.jobs" in sys.modules:  # else there is none
            from asyncio import to_thread

            from .jobs import close_jobs

            await to_thread(close_jobs)

"""What goes wrong with tools. The message of each is written for the model that made the call."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion

_SHOWN = 20


class ToolError(HooklineError):
    """A tool call that cannot do what was asked; tools raise it to tell the model why."""


class ToolArgumentError(ToolError, ValueError):
    """Arguments that a tool does not take: one line for each wrong field."""

    def __init__(self, tool: str, faults: Iterable[str]) -> None:
        self.tool = tool
        self.faults = tuple(faults)
        lines = "".join(f"\n  {fault}" for fault in self.faults[:_SHOWN])
        if len(self.faults) > _SHOWN:
            lines += f"\n  … and {len(self.faults) - _SHOWN:,} more"
        super().__init__(f"wrong arguments for the tool {tool!r}:{lines}")


class ToolOutputError(ToolError, TypeError):
    """A tool returned something that has no form a model can read."""


class UnknownTool(ToolError, LookupError):
    """A name that no registered tool has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        hint = suggestion(name, names) or _list(names)
        super().__init__(f"unknown tool {name!r}{hint}")
        self.name = name


class DuplicateTool(HooklineError, ValueError):
    """A name that is already taken by another tool."""


def _list(names: list[str]) -> str:
    if not names:
        return "; there are no tools"
    shown = ", ".join(names[:20])
    return f"; there are: {shown}{' …' if len(names) > 20 else ''}"

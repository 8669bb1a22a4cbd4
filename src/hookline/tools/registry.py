"""Registry: the tools that there are, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hookline.specs import ToolSpec

from .errors import DuplicateTool, UnknownTool

if TYPE_CHECKING:
    from .tool import Tool


class Registry:
    """Tools by their qualified name, in the order in which they came.

    A registry with a parent shows the parent's tools too, and changes only its own: an app adds
    to and hides from what modules registered at import without touching it.
    """

    def __init__(
        self, tools: Iterable[Tool | ToolSpec] = (), *, parent: Registry | None = None
    ) -> None:
        self.parent = parent
        self._own: dict[str, Tool] = {}
        self._hidden: set[str] = set()
        self._changes = 0
        self._told: tuple[int, _Schemas] | None = None
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | ToolSpec, *, replace: bool = False) -> Tool:
        """Add a tool, or a spec that is only listed; give back what can be looked up now.

        A name that is taken is refused, unless it is to be replaced, or the same lines of a
        module declare it again because the module was read again.
        """
        if isinstance(tool, ToolSpec):
            from .tool import Tool

            tool = Tool.from_spec(tool)
        present = self._find(tool.name)
        if (
            present is not None
            and present is not tool
            and not replace
            and not _read_again(present, tool)
        ):
            raise DuplicateTool(
                f"two tools are named {tool.name!r}: one from {present.place}, one from {tool.place}; "
                "give one of them another name or a namespace"
            )
        self._own[tool.name] = tool
        self._changes += 1
        return tool

    def remove(self, name: str) -> Tool:
        """Take a tool away, here only: a parent keeps it.

        A tool that replaced one of the parent's makes room for it again; one of the parent's
        own is hidden.
        """
        tool = self.get(name)
        self._changes += 1
        if self._own.pop(name, None) is None:
            self._hidden.add(name)
        return tool

    def get(self, name: str) -> Tool:
        """The tool of that name; an unknown one raises `UnknownTool` with the nearest names."""
        tool = self._find(name)
        if tool is None:
            raise UnknownTool(name, self.names())
        return tool

    def names(self) -> _Names:
        """Every name, in order."""
        return [tool.name for tool in self]

    def schemas(self, names: Iterable[str] | None = None) -> _Schemas:
        """What a model is told of the tools: all of them, or those named.

        The parameters are the tool's own schema, not a copy. The list of all is made when the tools
        have changed: every model call asks for it.
        """
        if names is not None:
            return [_schema(tool) for tool in map(self.get, names)]
        changes = self._all_changes()
        if self._told is None or self._told[0] != changes:
            self._told = changes, [_schema(tool) for tool in self]
        return list(self._told[1])

    def _all_changes(self) -> int:
        return self._changes + (self.parent._all_changes() if self.parent is not None else 0)

    def _find(self, name: str) -> Tool | None:
        tool = self._own.get(name)
        if tool is None and self.parent is not None and name not in self._hidden:
            tool = self.parent._find(name)
        return tool

    def __iter__(self) -> Iterator[Tool]:
        if self.parent is not None:
            for tool in self.parent:
                if tool.name not in self._hidden:
                    yield self._own.get(tool.name, tool)
        for name, tool in list(self._own.items()):
            if self.parent is None or name in self._hidden or name not in self.parent:
                yield tool

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def list(self) -> _Tools:
        """Every tool, in order: the parent's first."""
        return [*self]


_Tools = list["Tool"]
_Names = list[str]
_Schemas = list[dict[str, Any]]


def _schema(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _read_again(present: Tool, tool: Tool) -> bool:
    return present.place == tool.place and "<locals>" not in tool.place and ":" in tool.place


REGISTRY = Registry()
"""The tools that `@tool` registered when their modules were imported."""

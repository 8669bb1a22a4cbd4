"""Registry: the tools that there are, by name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hookline.errors import DuplicateTool, UnknownTool
from hookline.specs import ToolSpec

if TYPE_CHECKING:
    from .tool import Tool


class Registry:
    """Tools by their qualified name, in the order in which they came."""

    def __init__(self, tools: Iterable[Tool | ToolSpec] = ()) -> None:
        self._own: dict[str, Tool] = {}
        self._told: _Schemas | None = None
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
        self._told = None
        return tool

    def remove(self, name: str) -> Tool:
        """Take a tool away."""
        tool = self.get(name)
        self._own.pop(name, None)
        self._told = None
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
        if self._told is None:
            self._told = [_schema(tool) for tool in self]
        return list(self._told)

    def _find(self, name: str) -> Tool | None:
        return self._own.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter([*self._own.values()])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def list(self) -> _Tools:
        """Every tool, in order."""
        return [*self]


_Tools = list["Tool"]
_Names = list[str]
_Schemas = list[dict[str, Any]]


def _schema(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _read_again(present: Tool, tool: Tool) -> bool:
    return present.place == tool.place and "<locals>" not in tool.place and ":" in tool.place


class Declarations(Registry):
    """Every tool that `@tool` registered in this process, of all modules.

    No app has all of them: it has those of the plugins that it loaded, and what it was given. Two
    modules may each declare a tool of one name; by its name the newest is found.
    """

    def __init__(self) -> None:
        super().__init__()
        self.declared: _Tools = []
        self._imported: dict[str, _Tools] = {}

    def add(self, tool: Tool | ToolSpec, *, replace: bool = False) -> Tool:
        """Keep what a module declares; a second tool of one name in one module is refused."""
        if not isinstance(tool, ToolSpec):
            present = self._find(tool.name)
            if present is not None:
                replace |= present.module != tool.module or present.place == tool.place
        added = super().add(tool, replace=replace)
        kept = (t for t in self.declared if (t.name, t.place) != (added.name, added.place))
        self.declared = [*kept, added]
        return added

    def remove(self, name: str) -> Tool:
        """Forget the newest tool of a name."""
        tool = super().remove(name)
        self.declared = [other for other in self.declared if other is not tool]
        for other in self.declared:
            if other.name == name:
                self._own[name] = other
        return tool

    def note_import(self, module: str, tools: _Tools) -> None:
        """Remember what was declared while a plugin's module was imported: that happens only once."""
        self._imported.setdefault(module, tools)

    def brought_by(self, module: str, package: str = "") -> _Tools:
        """The tools that come with a plugin's module.

        They are those that it declares or imports, those of modules that it imports by name, those that
        were declared while it was imported, and those of its package if it has one to itself.
        """
        held = [*vars(sys.modules[module]).values()] if module in sys.modules else []
        modules = {module, *(value.__name__ for value in held if isinstance(value, ModuleType))}
        known = {*map(id, held), *map(id, self._imported.get(module, ()))}
        return [
            tool
            for tool in self.declared
            if id(tool) in known or tool.module in modules or _is_within(tool.module, package)
        ]


def _is_within(module: str, package: str) -> bool:
    return bool(package) and (module == package or module.startswith(f"{package}."))


REGISTRY = Declarations()
"""The tools that `@tool` registered when their modules were imported."""

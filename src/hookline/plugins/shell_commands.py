"""The commands that a line for the shell, or a script, runs: their words as far as they are fixed.

Parsed with tree-sitter's grammar of bash. A word that is not fixed, such as a variable, is None.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "HOOKLINE_PROJECT_DIR")

_ASSIGNED = re.compile(r"\$\{(\w+):?=")
_WILD = re.compile(r"(?<!\\)[*?\[{]")


LONGEST = 64_000
"""Bytes of one text; a longer one is not read."""


class Unreadable(Exception):
    """A text that the grammar does not understand."""


@dataclass(slots=True)
class ShellCommand:
    """One simple command."""

    words: list[str | None]


@dataclass(slots=True)
class ShellText:
    """What a line or a script runs."""

    commands: list[ShellCommand] = field(default_factory=list[ShellCommand])
    functions: set[str] = field(default_factory=set[str])
    variables: set[str] = field(default_factory=set[str])
    """Names that are assigned to."""
    redirects: list[str | None] = field(default_factory=list[str | None])


def read_shell(text: bytes, project: Path) -> ShellText:
    """Everything that a text runs, wherever in it that stands."""
    if len(text) > LONGEST:
        raise Unreadable(f"it has more than {LONGEST:,} bytes")
    parser = _parser()
    if parser is None:
        raise Unreadable("tree-sitter-bash is not installed")
    tree = parser.parse(text)
    if tree.root_node.has_error:
        raise Unreadable("it cannot be parsed")
    return _Walk(project).of(tree.root_node)


@cache
def _parser() -> Any:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        return None
    return Parser(Language(tree_sitter_bash.language()))


class _Walk:
    def __init__(self, project: Path) -> None:
        self._project = str(project)
        self._found = ShellText()

    def of(self, root: Any) -> ShellText:
        found = self._found
        for node in _nodes(root):
            if node.type == "command":
                found.commands.append(ShellCommand([*self._words(node)]))
            elif node.type == "function_definition":
                found.functions.add(_text(node.child_by_field_name("name")))
            elif node.type == "variable_assignment":
                found.variables.add(_text(node.child_by_field_name("name")))
            elif node.type == "for_statement":  # `select` too
                found.variables.add(_text(node.child_by_field_name("variable")))
            elif node.type == "expansion" and (name := _ASSIGNED.match(_text(node))):
                found.variables.add(name[1])
            elif node.type in ("file_redirect", "herestring_redirect"):
                targets = node.children_by_field_name("destination")
                found.redirects += [self._word(each) for each in targets]
        return found

    def _words(self, command: Any) -> Iterator[str | None]:
        name = command.child_by_field_name("name")
        yield self._word(name.named_children[0]) if name is not None and name.named_children else None
        for each in command.children_by_field_name("argument"):
            word, bare = self._word(each), each.type in ("word", "concatenation")
            if word is not None and bare and _WILD.search(_text(each)):
                yield from self._matching(word)
            else:
                yield word

    def _matching(self, pattern: str) -> Iterator[str | None]:
        """The files of one folder of the project that a pattern stands for now."""
        yield None  # another one may come
        folder, _, name = pattern.rpartition("/")
        if pattern.startswith("/") or ".." in pattern or "{" in pattern or _WILD.search(folder):
            return  # never a walk through the whole disk
        try:
            entries = os.listdir(os.path.join(self._project, folder))  # noqa: PTH118, PTH208
        except OSError:
            return
        matching = sorted(fnmatch.filter(entries, name))[:200]
        yield from (f"{folder}/{entry}" if folder else entry for entry in matching)

    def _word(self, node: Any) -> str | None:
        kind = node.type
        if kind in ("word", "number"):
            return _unescaped(_text(node))
        if kind == "raw_string":
            return _text(node)[1:-1]
        if kind == "string":
            return self._string(node)
        if kind == "concatenation":
            parts = [self._word(each) for each in node.children]
            return None if None in parts else "".join(part for part in parts if part is not None)
        if kind in ("simple_expansion", "expansion"):
            name = re.fullmatch(r"\$\{?(\w+)\}?", _text(node))
            return self._project if name and name[1] in PROJECT_VARIABLES else None
        return None

    def _string(self, node: Any) -> str | None:
        parts: list[str] = []
        at = node.start_byte + 1
        for child in node.named_children:
            parts.append(_between(node, at, child.start_byte))
            part = _unescaped(_text(child)) if child.type == "string_content" else self._word(child)
            if part is None:
                return None
            parts.append(part)
            at = child.end_byte
        return "".join([*parts, _between(node, at, node.end_byte - 1)])


def _between(node: Any, start: int, end: int) -> str:
    """The blanks that the grammar leaves out between the parts of a string."""
    text = bytes(node.text)[start - node.start_byte : end - node.start_byte]
    return text.decode(errors="surrogateescape")


def _nodes(root: Any) -> Iterator[Any]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _text(node: Any) -> str:
    return "" if node is None else bytes(node.text).decode(errors="surrogateescape")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(\n|.)", lambda found: "" if found[1] == "\n" else found[1], text)

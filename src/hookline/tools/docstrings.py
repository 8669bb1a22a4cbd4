"""Docstrings: a tool's description, and what it says about each parameter.

Understood are Google's `Args:`, NumPy's underlined `Parameters`, Sphinx's `:param name:`, and
plain lines `name: text`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from inspect import cleandoc

_PARAMETERS = {"args", "arguments", "parameters", "params", "keyword arguments", "other parameters"}
_DESCRIBING = {"notes", "note", "example", "examples", "see also", "warnings"}
"""Sections that help a model too; the others are for people who read the code."""

_SECTIONS = {
    *_PARAMETERS,
    *_DESCRIBING,
    "attributes",
    "raises",
    "references",
    "return",
    "returns",
    "yields",
}

_GOOGLE_ENTRY = re.compile(r"^[-*]?\s*`{0,2}(\w+)`{0,2}\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^(\w+)\s*(?::.*)?$")
_SPHINX_ENTRY = re.compile(r"^:(?:param|parameter|arg|argument|key)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(?:returns?|rtype|raises?|type|yields?|ytype)\b[^:]*:")


def parse_docstring(doc: str | None, parameters: Collection[str]) -> tuple[str, dict[str, str]]:
    """The description without its parameters, and the text of each parameter."""
    reader = _DocstringReader(parameters)
    lines = cleandoc(doc or "").splitlines()
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        reader.take(line, following)
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(reader.description)).strip()
    return description, {name: " ".join(text).strip() for name, text in reader.texts.items()}


class _DocstringReader:
    """Goes through a docstring line by line and remembers in what section it is."""

    def __init__(self, parameters: Collection[str]) -> None:
        self.parameters = parameters
        self.description: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.section: str | None = None
        self.numpy = False
        self.entry: list[str] | None = None
        self.entry_indent = 0

    def take(self, line: str, following: str) -> None:
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if _is_rule(text) and self.numpy:
            return
        if indent == 0 and self._opens_section(text, following):
            return
        if self.section in _PARAMETERS and (indent > 0 or self.numpy or not text):
            self._parameter_line(text, indent)
        elif self.section is not None and (indent > 0 or self.numpy or not text):
            if self.section in _DESCRIBING:
                self.description.append(line)
        else:
            self.section = None
            self._free_line(line, text, indent)

    def _opens_section(self, text: str, following: str) -> bool:
        title = text.rstrip(":").lower()
        underlined = bool(text) and _is_rule(following.strip())
        if title not in _SECTIONS or not (underlined or text.endswith(":")):
            return False
        if title in self.parameters and not underlined and not following.startswith(" "):
            return False  # a parameter that is named like a section, with nothing said about it
        self.section, self.numpy, self.entry = title, underlined, None
        if title in _DESCRIBING:
            self.description.append(text.rstrip(":") + ":")
        return True

    def _parameter_line(self, text: str, indent: int) -> None:
        found = (_NUMPY_ENTRY if self.numpy else _GOOGLE_ENTRY).match(text)
        starts = found is not None and found[1] in self.parameters
        if found and starts and (self.entry is None or indent <= self.entry_indent):
            self._open_entry(found[1], "" if self.numpy else found[2], indent)
        elif self.entry is not None and indent > self.entry_indent:
            self.entry.append(text)
        elif text:
            self.entry = None

    def _free_line(self, line: str, text: str, indent: int) -> None:
        found = _SPHINX_ENTRY.match(text) or _GOOGLE_ENTRY.match(text)
        if found and found[1] in self.parameters and indent == 0:
            self._open_entry(found[1], found[2], indent)
        elif self.entry is not None and text and indent > self.entry_indent:
            self.entry.append(text)
        else:
            self.entry = None
            if not _SPHINX_OTHER.match(text):
                self.description.append(line)

    def _open_entry(self, name: str, text: str, indent: int) -> None:
        self.entry = self.texts[name] = [text] if text else []
        self.entry_indent = indent


def _is_rule(text: str) -> bool:
    return len(text) >= 3 and set(text) <= {"-", "="}

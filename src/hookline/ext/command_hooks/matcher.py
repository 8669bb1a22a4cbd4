"""Matchers: for which tools, sources or kinds a hook runs, and the finer `if` on a tool's input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from hookline.text.patterns import Pattern, matches_glob

_NAMES = re.compile(r"[\w\-|, ]+\Z", re.ASCII)
_CONDITION = re.compile(r"([\w\-]+)(?:\((.*)\))?\Z", re.DOTALL)


class Matcher:
    """`*` or nothing: everything. Names alone, with `|` between them: exactly these. Otherwise a
    regular expression in RE2 syntax, which may match anywhere.
    """

    __slots__ = ("_names", "_pattern", "text")

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._names: frozenset[str] | None = None
        self._pattern: Pattern | None = None
        if text.strip() in ("", "*"):
            return
        if _NAMES.match(text):
            self._names = frozenset(name.strip() for name in re.split(r"[|,]", text))
        else:
            self._pattern = Pattern(text)

    def matches(self, subjects: tuple[str, ...]) -> bool:
        """Whether one of the names that something has is meant."""
        if self._names is not None:
            return not self._names.isdisjoint(subjects)
        if self._pattern is not None:
            return any(map(self._pattern.search, subjects))
        return True


class ToolCondition:
    """`Bash(git *)`: a tool, and a pattern on its command, path or address.

    Where it cannot be told whether the pattern holds, the hook runs.
    """

    __slots__ = ("_name", "_pattern")

    def __init__(self, text: str) -> None:
        found = _CONDITION.match(text.strip())
        if found is None:
            raise ValueError("must be a tool, with a pattern if you like: Bash(git *)")
        self._name, self._pattern = found[1], found[2]

    def holds(self, subjects: tuple[str, ...], tool_input: Mapping[str, Any], cwd: str) -> bool:
        """Whether a call of a tool is meant."""
        if self._name not in subjects:
            return False
        pattern = self._pattern
        if pattern is None or pattern in ("", "*"):
            return True
        command, path, url = (tool_input.get(key) for key in ("command", "file_path", "url"))
        if isinstance(command, str):
            return _command_matches(command, pattern)
        if isinstance(path, str):
            return any(_path_matches(each, pattern) for each in _spellings(path, cwd))
        if isinstance(url, str) and pattern.startswith("domain:"):
            host, domain = urlsplit(url).hostname or "", pattern.removeprefix("domain:")
            return host == domain or host.endswith(f".{domain}")
        return True


def _command_matches(command: str, pattern: str) -> bool:
    """Whether a line runs a command that is meant, or may run one because it cannot be read."""
    from hookline.text.shell import command_pattern, commands_of

    prefix = pattern.endswith(":*")
    patterns = [f"{pattern[:-2]}*", f"{pattern[:-2]} *"] if prefix else [pattern]
    if any(matches_glob(command.strip(), one) for one in patterns):
        return True
    found = commands_of(command)
    return found.opaque or any(command_pattern(one).match(found) is not None for one in patterns)


def _spellings(path: str, cwd: str) -> Iterator[str]:
    yield path
    if path.startswith(f"{cwd}/"):
        yield path[len(cwd) + 1 :]
    yield path.rpartition("/")[2]


def _path_matches(path: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./")
    if pattern.startswith("//"):
        pattern = pattern[1:]
    return matches_glob(path, pattern) or matches_glob(path, pattern.replace("**/", ""))

"""Scripts: the interpreter of a file, and the other files that its text names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

from hookline.text.shell.effects import base_of

SYSTEM = ("/bin/", "/opt/", "/sbin/", "/usr/", "/nix/", f"{Path(sys.executable).parent}/")
"""Where the programs of the system and of this installation lie."""
COMPUTES = re.compile(
    rb"\b(eval|exec\w*|system|popen|spawn\w*|subprocess|importlib|__import__|runpy|dlopen|ctypes|cffi"
    rb"|child_process|pickle|marshal|sys\.path|require\s*\(\s*[^'\"\s]|import\s*\(\s*[^'\"\s])|`"
)
"""Marks of code that decides at run time which file it runs."""

IMPORTS = re.compile(rb"\b(?:from|import)[\s\\(]+([\w., \t\\()]+)")
_NAMES = re.compile(rb"[\w@%+,./~-]{1,300}")
_QUOTED = re.compile(rb"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'")
SUFFIXES = (
    "", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".json", "/index.js", "/__init__.py",
)  # fmt: skip
_BY_SUFFIX = {
    ".cjs": "node", ".js": "node", ".mjs": "node", ".pl": "perl", ".py": "python", ".rb": "ruby",
}  # fmt: skip
CODE_SUFFIXES = (".bash", ".cjs", ".js", ".lua", ".mjs", ".php", ".pl", ".py", ".rb", ".sh", ".ts")


def names_in(text: bytes) -> Iterator[str]:
    """The names in a text that may be those of files: paths, modules and quoted text."""
    seen: set[bytes] = set()
    quoted = (one or other for one, other in _QUOTED.findall(text))
    for found in (*_NAMES.findall(text), *quoted):
        for name in (found, found.replace(b".", b"/")):
            if name not in seen and name.strip(b"./~") and len(seen) < 20_000:
                seen.add(name)
                yield os.path.expanduser(name.decode(errors="surrogateescape"))  # noqa: PTH111


def interpreter_of(path: Path, content: bytes) -> str:
    """The interpreter of a script, by its first line or its name."""
    if content.startswith(b"#!"):
        words = content.split(b"\n", 1)[0][2:].decode(errors="replace").split()
        if not words or not words[0].startswith(SYSTEM):
            return ""
        names = [PurePath(word).name for word in words if not word.startswith("-")]
        name = names[1] if names[:1] == ["env"] and len(names) > 1 else names[0]
        return base_of(name)
    return _BY_SUFFIX.get(path.suffix, "sh")

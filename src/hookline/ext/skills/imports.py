"""Imports of `CLAUDE.md`: the files that a text names as `@path`, which are shown after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DEEPEST = 5
"""Files that may import one another in a row."""
TEXTS = (".md", ".mdc", ".markdown", ".txt")
"""What may be imported: other files may hold keys, and a project must not read them out."""

_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?<!\S)@([\w.~/][^\s`]*)")


def imports_of(text: str, file: Path) -> Iterator[tuple[int, Path]]:
    """Each file that exists and that a text imports, with its line.

    Code is left alone, and so is `@name` where no such file exists: it may be a person's name.
    """
    plain = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for number, line in enumerate(plain.splitlines(), 1):
        for found in _IMPORT.finditer(line):
            name = found[1].rstrip(".,;:!?)")
            path = Path(name).expanduser() if name.startswith("~/") else file.parent / name
            try:
                if path.is_file():
                    yield number, path
            except (OSError, ValueError):  # too long, or a NUL character
                continue

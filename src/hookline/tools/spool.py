"""Spool: results too long for a model are kept whole in a file, and read on by page.

    content = fit(content, context)    # cut, with a note such as
                                       # [… read_output(id="5f3a9c1e-49800", page=1) …]

The files lie in `outputs` of the app's home; without an app in a folder that goes with the process.
Only the session that an output belongs to can read it.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from hookline.errors import ToolError
from hookline.system.private_files import private_folder
from hookline.types import Content, TextPart

from .context import ToolContext
from .output import LIMIT, cut, readable_bytes

KEPT_BYTES = 64_000_000
"""The maximum size of one stored output; only its beginning is kept."""

KEPT_FILES = 200
"""Outputs that are kept; the oldest make room."""

NOTE = 200
"""Characters that the note below a cut text may take."""

_SMALLEST = 500
_ID = re.compile(r"[0-9a-f]{8}-([0-9]{3,7})")


def fit(content: Content, context: ToolContext, limit: int = LIMIT) -> Content:
    """Content that a model can take: text above the limit is cut, and the whole of it kept."""
    if isinstance(content, str):
        return _fit_text(content, context, limit)
    return [
        TextPart(_fit_text(part.text, context, limit)) if isinstance(part, TextPart) else part
        for part in content
    ]


class Spool:
    """An output as it comes: nothing is written until it is longer than the limit."""

    def __init__(self, context: ToolContext, limit: int = LIMIT) -> None:
        self._context = context
        self._limit = limit
        self._page = max(limit - NOTE, _SMALLEST)
        self._held = bytearray()
        self._file: BinaryIO | None = None
        self._id = f"{secrets.token_hex(4)}-{self._page}"
        self._failed = ""
        self.size = 0

    def add(self, data: bytes) -> None:
        """Keep some more."""
        room = KEPT_BYTES - self.size
        self.size += len(data)
        if room <= 0 or self._failed:
            return
        data = data[:room]
        try:
            if self._file is None:
                self._held += data
                if len(self._held) <= self._limit:
                    return
                self._file = _create(_path(self._id, self._context))
                data, self._held = bytes(self._held), bytearray()
            self._file.write(data)
        except OSError as error:
            self._failed = error.strerror or str(error)

    def discard(self) -> None:
        """Keep nothing of it."""
        if self._file is not None:
            self._file.close()
            self._file = None
            _path(self._id, self._context).unlink(missing_ok=True)

    def close(self) -> str:
        """End it; give the note that says how to read on, empty if all of it fitted."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._failed = error.strerror or str(error)
        if self._failed:
            return f"[the whole could not be kept: {self._failed}]"
        if self._file is None:
            return ""
        kept = min(self.size, KEPT_BYTES)
        what = "the whole is kept" if kept == self.size else f"the first {kept:,} bytes are kept"
        pages = -(-kept // self._page)
        return f'[{what}: read_output(id="{self._id}", page=1), up to page {pages:,}]'


def read_page(output: str, page: int, context: ToolContext) -> str:
    """One page of a kept output, and which one of how many it is."""
    named = _ID.fullmatch(output)
    path = _path(output, context) if named else None
    if named is None or path is None or not path.is_file():
        raise ToolError(
            f"this session has no kept output {output!r}; the oldest are removed after a while"
        )
    size = int(named[1])
    with path.open("rb") as file:
        pages = max(1, -(-os.fstat(file.fileno()).st_size // size))
        if page > pages:
            raise ToolError(f"the output {output} has {pages:,} pages; page is {page:,}")
        file.seek((page - 1) * size)
        data = file.read(size + 3)
    return f"{readable_bytes(_whole_characters(data, size, page))}\n[page {page:,} of {pages:,}]"


def folder(context: ToolContext) -> Path:
    """Where outputs are kept."""
    home: Path | None = getattr(context.app, "home", None)
    return _temporary() if home is None else home / "outputs"


def _path(name: str, context: ToolContext) -> Path:
    """The file of an output; its name has the session in it, which no model can choose."""
    owner = sha256(context.session_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return folder(context) / f"{name}.{owner}.txt"


def _fit_text(text: str, context: ToolContext, limit: int) -> str:
    if len(text) <= limit:
        return text
    if getattr(context.app, "embedded", False):  # no file may be written, and no tool could read it
        return cut(text, limit)
    spool = Spool(context, limit)
    spool.add(text.encode("utf-8", errors="replace"))
    note = spool.close()
    return f"{cut(text, max(limit - len(note) - 1, 0))}\n{note}"


def _whole_characters(data: bytes, size: int, page: int) -> bytes:
    """A character that lies across two pages belongs to the first."""
    begin = 0
    while page > 1 and begin < min(3, len(data)) and data[begin] & 0xC0 == 0x80:
        begin += 1
    end = size
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return data[begin:end]


def _create(path: Path) -> BinaryIO:
    private_folder(path.parent)
    _make_room(path.parent)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(handle, "wb")


def _make_room(place: Path) -> None:
    with os.scandir(place) as entries:
        found = [entry for entry in entries if entry.name.endswith(".txt")]
    if len(found) < KEPT_FILES:
        return
    by_age = sorted(found, key=_written)
    for entry in by_age[: len(found) - KEPT_FILES + 1]:
        Path(entry.path).unlink(missing_ok=True)


def _written(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


@cache
def _temporary() -> Path:
    place = Path(tempfile.mkdtemp(prefix="hookline-outputs-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place

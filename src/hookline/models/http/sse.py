"""Server-sent events, read from bytes as they arrive.

Only `data` matters: comments, names and ids of events are passed over.
"""

from __future__ import annotations

from hookline.errors import BadResponse

LIMIT = 16 * 1024 * 1024
"""The most bytes that one event may have. A tool call's arguments can come in a single one."""

_BOM = b"\xef\xbb\xbf"


class EventReader:
    """Takes bytes in any pieces, gives the data of each event that is complete."""

    __slots__ = ("_buffer", "_data", "_fresh", "_limit", "_size")

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._fresh = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that end in this piece, in their order."""
        buffer = self._buffer
        end = chunk.rfind(b"\n") + 1
        if not end:
            buffer += chunk
            if self._size + len(buffer) > self._limit:
                raise self._too_long()
            return []
        if buffer:
            buffer += chunk[:end]
            lines = bytes(buffer)
            buffer.clear()
        else:
            lines = chunk[:end]
        buffer += chunk[end:]
        return self._read(lines)

    def end(self) -> list[bytes]:
        """The rest of a stream that ended without an empty line."""
        lines = bytes(self._buffer) + b"\n\n"
        self._buffer.clear()
        return self._read(lines)

    def _read(self, lines: bytes) -> list[bytes]:
        if self._fresh:
            self._fresh = False
            lines = lines.removeprefix(_BOM)
        found: list[bytes] = []
        data = self._data
        for line in lines.split(b"\n")[:-1]:
            if line.startswith(b"data:"):
                # Empty lines count too, or endless ones would fill the memory.
                self._size += len(line)
                if self._size > self._limit:
                    raise self._too_long()
                data.append(line[5:].strip())
            elif data and (not line or line == b"\r"):
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._size = 0
        return found

    def _too_long(self) -> BadResponse:
        return BadResponse(f"an event of more than {self._limit} bytes")

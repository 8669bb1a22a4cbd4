"""A tape's file read only, row by row: for whoever goes through all of it.

    with TapeReader("tape.db") as reader:
        for session in reader.sessions():
            for row in reader.calls(session.id):
                ...

Nothing is decoded, and what nobody asks for is not read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ..placement import PLACES
from .schema import telling

CallRow: TypeAlias = tuple[str, str, float, str, str]
"""kind, id, time, meta and payload, the last two as JSON."""

REFUSED: Final = '"ran":false'
"""What the payload of a call's result has that did not run; within a text the quotes are escaped."""

_SESSIONS = f"""
    SELECT sessions.id, last % {PLACES} + 1, time FROM (
        SELECT number, (
            SELECT max(seq) FROM entries
            WHERE seq BETWEEN number * {PLACES} AND number * {PLACES} + {PLACES - 1}
        ) AS last FROM sessions
    ) JOIN sessions USING (number) CROSS JOIN entries ON seq = last
    WHERE time >= ? ORDER BY number
"""
_CALLS = f"""
    SELECT kind, id, time, meta, payload FROM entries WHERE seq BETWEEN ? AND ? AND (
        kind IN ('tool_call', 'turn') OR (kind = 'tool_result' AND instr(payload, '{REFUSED}'))
    ) ORDER BY seq
"""
_CALLS_AND_USAGE = f"""
    SELECT kind, id, time, meta, CASE WHEN kind = 'message' THEN '{{}}' ELSE payload END
    FROM entries WHERE seq BETWEEN ? AND ? AND (
        kind IN ('tool_call', 'turn', 'message')
        OR (kind = 'tool_result' AND instr(payload, '{REFUSED}'))
    ) ORDER BY seq
"""
_ASKED = """
    SELECT id, payload FROM entries
    WHERE seq BETWEEN ? AND ? AND kind = 'message' AND instr(payload, '"tool_calls":[') ORDER BY seq
"""


class SessionSize(NamedTuple):
    """A session and how long it is."""

    id: str
    entries: int
    updated: float


class TapeReader:
    """One reader of a tape's file; each process has its own."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with telling(self.path, "read"):
            address = f"{Path(self.path).absolute().as_uri()}?mode=ro"
            self._db = sqlite3.connect(address, uri=True, timeout=10.0, isolation_level=None)

    def __enter__(self) -> TapeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def sessions(self, since: float = 0.0) -> list[SessionSize]:
        """The sessions that were written to since a time, the oldest first."""
        with telling(self.path, "read"):
            return [SessionSize(*row) for row in self._db.execute(_SESSIONS, (since,))]

    def calls(self, session_id: str, *, usage: bool = False) -> Iterator[CallRow]:
        """A session's turns, the calls that ran, and the results of those that did not.

        With `usage`, its messages too, with only their meta.
        """
        return self._rows(_CALLS_AND_USAGE if usage else _CALLS, session_id)

    def asked(self, session_id: str) -> Iterator[tuple[str, str]]:
        """The messages with tool calls: id and payload."""
        return self._rows(_ASKED, session_id)

    def _rows(self, statement: str, session_id: str) -> Iterator[Any]:
        with telling(self.path, "read"):
            found = self._db.execute("SELECT number FROM sessions WHERE id = ?", (session_id,))
            row = found.fetchone()
            if row is not None:
                first = row[0] * PLACES
                yield from self._db.execute(statement, (first, first + PLACES - 1))

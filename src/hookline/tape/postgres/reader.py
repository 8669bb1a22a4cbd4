"""A tape in PostgreSQL read only, row by row: `TapeReader` for whoever goes through all of a schema.

    with PostgresReader(url, "hookline") as reader:
        for session in reader.sessions():
            for row in reader.calls(session.id):
                ...

It has one connection of its own, so that each of several processes can have one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from ..entry import storable
from ..placement import PLACES
from ..sqlite.reader import REFUSED, CallRow, SessionSize
from .failures import place_of, told
from .tables import within

_SESSIONS: Final = f"""
    SELECT s.id, leaf.seq %% {PLACES} + 1, leaf.time
    FROM {{schema}}.sessions s CROSS JOIN LATERAL (
        SELECT seq, time FROM {{schema}}.entries
        WHERE seq BETWEEN s.number * {PLACES} AND s.number * {PLACES} + {PLACES - 1}
        ORDER BY seq DESC LIMIT 1
    ) leaf WHERE leaf.time >= %s ORDER BY s.number
"""
_OWN: Final = f"""
    FROM {{schema}}.sessions s JOIN {{schema}}.entries e
    ON e.seq BETWEEN s.number * {PLACES} AND s.number * {PLACES} + {PLACES - 1}
    WHERE s.id = %s
"""
_RAN_NOT: Final = f"e.kind = 'tool_result' AND strpos(e.payload, '{REFUSED}') > 0"
_CALLS: Final = f"""
    SELECT e.kind, e.id, e.time, e.meta, e.payload {_OWN}
    AND (e.kind IN ('tool_call', 'turn') OR ({_RAN_NOT})) ORDER BY e.seq
"""
_CALLS_AND_USAGE: Final = f"""
    SELECT e.kind, e.id, e.time, e.meta, CASE WHEN e.kind = 'message' THEN '{{{{}}}}' ELSE e.payload END
    {_OWN} AND (e.kind IN ('tool_call', 'turn', 'message') OR ({_RAN_NOT})) ORDER BY e.seq
"""
_ASKED: Final = f"""
    SELECT e.id, e.payload {_OWN}
    AND e.kind = 'message' AND strpos(e.payload, '"tool_calls":[') > 0 ORDER BY e.seq
"""


class PostgresReader:
    """One reader of the tapes in a schema; each process has its own."""

    def __init__(self, url: str, schema: str) -> None:
        self._place = f"{place_of(url)} schema {schema}"
        self._schema = schema
        with self._telling():
            self._db = psycopg.connect(url, autocommit=True, application_name="hookline")
            self._db.execute("SET default_transaction_read_only = on")

    def __enter__(self) -> PostgresReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def sessions(self, since: float = 0.0) -> list[SessionSize]:
        """The sessions that were written to since a time, the oldest first."""
        return [SessionSize(*row) for row in self._rows(_SESSIONS, since)]

    def calls(self, session_id: str, *, usage: bool = False) -> Iterator[CallRow]:
        """Rows of a session, as `TapeReader.calls` has them."""
        return self._of(session_id, _CALLS_AND_USAGE if usage else _CALLS)

    def asked(self, session_id: str) -> Iterator[tuple[str, str]]:
        """The messages with tool calls: id and payload."""
        return self._of(session_id, _ASKED)

    def _of(self, session_id: str, statement: str) -> Iterator[Any]:
        return iter(self._rows(statement, session_id) if storable(session_id) else [])

    def _rows(self, statement: str, value: Any) -> list[Any]:
        with self._telling():
            return self._db.execute(within(statement, self._schema), (value,)).fetchall()

    @contextmanager
    def _telling(self) -> Generator[None]:
        """Raise what the database raises as an error of the tape."""
        try:
            yield
        except psycopg.Error as error:
            raise told(error, self._place, "read") from error

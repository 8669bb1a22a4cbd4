"""Rows: records as they are kept, short, and written in one go.

A chunk is `{"v": 2, "p": prefix of ids, "s": session, "t": seconds to add to times, "h": handlers,
"w": places, "r": rows}`. Rows refer to handlers (`[name, file and line]`) and to places (`[turn, model
turn, call]`) by number. Times are in nanoseconds. In version 1, payloads are JSON texts. A row that has
more than this version knows is read as far as it is known; one that has less is filled up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from .record import HandlerRecord, Kind, TraceRecord, span_id
from .snapshot import digest, encode

VERSION: Final = 2

(KIND, ID, NAME, PLACE, STARTED, LASTED, DECISION, REASON, ERROR, PAYLOAD, HANDLERS, DIGEST) = range(12)
"""What stands where in a row."""

(BY, AFTER, TOOK, DID, WHY, FAILED, CHANGES, RETURNED) = range(8)
"""What stands where in a handler's part; a silent one ends with `TOOK`."""

DECISIONS: Final = {"denied": "deny", "asked": "ask"}

Row = list[Any]


def records_of(body: str) -> tuple[list[TraceRecord], int]:
    """The records of a chunk, and how many of it could not be read."""
    try:
        chunk: dict[str, Any] = json.loads(body)
        rows: list[Row] = chunk["r"]
    except (LookupError, TypeError, ValueError):
        return [], 1
    records: list[TraceRecord] = []
    damaged = 0
    for row in rows:
        try:
            records.append(record_of(row, chunk))
        except (AttributeError, LookupError, TypeError, ValueError):
            damaged += 1
    return records, damaged


def record_of(row: Row, chunk: Mapping[str, Any]) -> TraceRecord:
    """One row as a record."""
    row = [*row, *[None] * (DIGEST + 1 - len(row))]
    kind = cast("Kind", row[KIND])
    turn, step, call = chunk["w"][row[PLACE]]
    payload = read_back(row[PAYLOAD], chunk)
    found = TraceRecord(
        id=f"{chunk['p']}.{row[ID]}" if kind == "hook" else own_id(kind, turn, step, call),
        kind=kind,
        name=str(row[NAME]),
        session=str(chunk["s"]),
        turn=turn,
        step=step,
        call=call,
        parent=parent_id(kind, turn, step, call),
        time=chunk["t"] + row[STARTED] / 1e9,
        duration=row[LASTED] / 1e9,
        decision=row[DECISION] or "",
        reason=row[REASON] or "",
        error=row[ERROR] or "",
        digest=row[DIGEST] or (digest(encode(payload)) if payload is not None else ""),
        payload=payload,
    )
    found.handlers = [handler_of(part, chunk) for part in row[HANDLERS] or ()]
    return found


def handler_of(part: Row, chunk: Mapping[str, Any]) -> HandlerRecord:
    """One handler's part."""
    part = [*part, *[None] * (RETURNED + 1 - len(part))]
    by, place = chunk["h"][part[BY]]
    changes = read_back(part[CHANGES], chunk)
    if changes is not None and not isinstance(changes, dict):  # too long to be kept, or withheld
        changes = {"…": [None, changes]}
    return HandlerRecord(
        by=str(by),
        place=str(place),
        after=part[AFTER] / 1e9,
        duration=part[TOOK] / 1e9,
        did=part[DID] or "none",
        changes=cast("dict[str, list[Any]]", changes or {}),
        decision=DECISIONS.get(part[DID], ""),
        reason=part[WHY] or "",
        error=part[FAILED] or "",
        returned=read_back(part[RETURNED], chunk),
    )


def read_back(kept: Any, chunk: Mapping[str, Any]) -> Any:
    """A payload from what is kept of it; in version 1 that is a JSON text."""
    if chunk["v"] > 1 or not isinstance(kept, str):
        return kept
    try:
        return json.loads(kept)
    except ValueError:
        return kept


def own_id(kind: Kind, turn: str, step: int | None, call: str) -> str:
    """The id of a span: a turn's own, a model turn's, a tool call's."""
    return span_id(turn, step if kind == "model" else None, call if kind == "tool" else "")


def parent_id(kind: Kind, turn: str, step: int | None, call: str) -> str:
    """The span that something is in."""
    if kind == "turn":
        return ""
    if kind == "model":
        return turn
    return span_id(turn, step, "" if kind == "tool" else call)

"""Chunks of versions 1 and 2, as earlier releases wrote them.

`{"v": 2, "p": prefix of ids, "s": session, "t": seconds to add to times, "h": handlers, "w": places,
"r": rows}`. A row has all of a record; spans are rows too. In version 1, payloads are JSON texts. A row
that has more than this version knows is read as far as it is known; one that has less is filled up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from .record import HandlerRecord, Kind, TraceRecord, changes_of, decision_by, parent_id, span_id

(KIND, ID, NAME, PLACE, STARTED, LASTED, DECISION, REASON, ERROR, PAYLOAD, HANDLERS) = range(11)
"""What stands where in a row."""

(BY, AFTER, TOOK, DID, WHY, FAILED, CHANGES, RETURNED) = range(8)
"""What stands where in a handler's part; a silent one ends with `TOOK`."""

Row = list[Any]
UNREADABLE: Final = (AttributeError, LookupError, TypeError, ValueError)


def records_of(chunk: Mapping[str, Any]) -> tuple[list[TraceRecord], int]:
    """The records of a chunk, and how many of it could not be read."""
    records: list[TraceRecord] = []
    damaged = 0
    for row in cast("list[Row]", chunk["r"]):
        try:
            records.append(record_of(row, chunk))
        except UNREADABLE:
            damaged += 1
    return records, damaged


def record_of(row: Row, chunk: Mapping[str, Any]) -> TraceRecord:
    """One row as a record."""
    row = [*row, *[None] * (HANDLERS + 1 - len(row))]
    kind = cast("Kind", row[KIND])
    turn, step, call = chunk["w"][row[PLACE]]
    return TraceRecord(
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
        payload=read_back(row[PAYLOAD], chunk),
        handlers=[handler_of(part, chunk) for part in row[HANDLERS] or ()],
    )


def handler_of(part: Row, chunk: Mapping[str, Any]) -> HandlerRecord:
    """One handler's part."""
    part = [*part, *[None] * (RETURNED + 1 - len(part))]
    by, place = chunk["h"][part[BY]]
    return HandlerRecord(
        by=str(by),
        place=str(place),
        after=part[AFTER] / 1e9,
        duration=part[TOOK] / 1e9,
        did=part[DID] or "none",
        changes=changes_of(read_back(part[CHANGES], chunk)),
        decision=decision_by(part[DID]),
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

"""Chunks of versions 1, 2 and 3, as they were written earlier.

`{"v": 2, "p": prefix of ids, "s": session, "t": seconds to add to times, "h": handlers, "w": places,
"r": rows}`. A row has all of a record; spans are rows too. In version 1, payloads are JSON texts. A row
that has more than this version knows is read as far as it is known; one that has less is filled up.

Version 3 is as `rows` has it, with these differences. A row is `[shape, place, started, lasted,
decision]`, then for each handler its number, when after the start it was called, and how long it took;
times are in nanoseconds. "n" are shapes, `[hook, names of its payload]`, "h" the handlers. A text is
`[values, reason, error]`, then the parts, each with what was returned at its end.
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
FIRST_OF_DISPATCHES: Final = 3
"""The first version in which spans are no rows."""
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


# --- version 3 ---


def renewed(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk of version 3 as the next one has it; what is damaged in it stays so."""
    number, session, places, turns, rows = chunk["d"]
    turns = [[place, started / 1e9, *rest] for place, started, *rest in turns]
    castings = [casting_of(row, chunk) for row in rows]
    texts = [[*text[:1], text[3:], *text[1:3]] for text in chunk["x"]]
    rows = [renewed_row(at, row) for at, row in enumerate(rows)]
    return {**chunk, "d": [number, session, places, turns, rows], "n": castings, "x": texts}


def casting_of(row: Row, chunk: Mapping[str, Any]) -> list[Any]:
    """Who was called in a row of version 3."""
    handlers: list[Any] = chunk["h"]
    return [*chunk["n"][row[0]], [handlers[who] if who >= 0 else None for who in row[5::3]]]


def renewed_row(at: int, row: Row) -> Row:
    """A row of version 3 as the next one has it."""
    _, place, started, lasted, decision, *times = row
    begun = [(started + after) / 1e9 for after in times[1::3]]
    ended = [first + took / 1e9 for first, took in zip(begun, times[2::3], strict=True)]
    pairs = [each for pair in zip(begun, ended, strict=True) for each in pair]
    return [at, place, decision, started / 1e9, (started + lasted) / 1e9, *pairs]

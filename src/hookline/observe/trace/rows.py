"""Rows: records as they are kept, short, and written in one go.

A chunk is `{"v": 1, "p": prefix of ids, "t": seconds to add to times, "d": tables, "n": castings,
"x": texts}`. The tables are the number of the first id, the session, the places
(`[turn, model turn, call]`), the model turns that began (`[place, time, model, agent]`), and the rows:
for each dispatch `[casting, place, decision, began, ended]`, then for each handler when it began and
ended; where that is missing there was one, all the time. A casting is `[hook, names of its payload,
handlers]`, a handler `[name, file and line]`, or null for a part of the trace itself. The text of a row
is `[values of its payload, parts, reason, error]`. A part is of a handler that said something:
`[which of the row's, what it returned]`, or else `[which, what it did, reason, error, changes]`. A
payload that was too long is a table or a text; at level "decisions" it is null. What is missing at an
end is null. Times are in seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from hookline.hooks import Decision

from .record import HandlerRecord, TraceRecord, changes_of, decision_by, parent_id, span_id

VERSION: Final = 1
UNREADABLE: Final = (AttributeError, LookupError, TypeError, ValueError)

HEAD: Final = 5
"""Where in a row the handlers begin."""
RETURNED: Final = 2
"""The length of a part that has only the result."""


def records_of(body: str) -> tuple[list[TraceRecord], int]:
    """The records of a chunk, and how many of it could not be read."""
    records: list[TraceRecord] = []
    damaged = 0
    try:
        chunk: dict[str, Any] = json.loads(body)
        if chunk["v"] != VERSION:
            return [], 1
        turns, rows = chunk["d"][3], chunk["d"][4]
    except UNREADABLE:
        return [], 1
    for number, row in enumerate(rows):
        try:
            records.append(hook_record(number, row, chunk))
        except UNREADABLE:
            damaged += 1
    for turn in turns:
        try:
            records.append(model_record(turn, chunk))
        except UNREADABLE:
            damaged += 1
    return records, damaged


def hook_record(number: int, row: list[Any], chunk: Mapping[str, Any]) -> TraceRecord:
    """A dispatch."""
    first, session, places = chunk["d"][:3]
    casting, place, decision, started, ended = row[:HEAD]
    hook, names, handlers = chunk["n"][casting]
    values: Any
    values, parts, reason, error = filled(chunk["x"][number], 4)
    said = {part[0]: part for part in parts or ()}
    turn, step, call = places[place]
    times = row[HEAD:] or (started, ended)
    return TraceRecord(
        id=f"{chunk['p']}.{first + number}",
        name=str(hook),
        session=str(session),
        turn=turn,
        step=step,
        call=call,
        parent=parent_id("hook", turn, step, call),
        time=chunk["t"] + started,
        duration=ended - started,
        decision="" if decision is None else Decision(decision).name.lower(),
        reason=reason or "",
        error=error or "",
        payload=dict(zip(names, cast("list[Any]", values), strict=False))
        if isinstance(values, list)
        else values,
        handlers=[
            handler_record(handler, times[2 * at : 2 * at + 2], started, said.get(at, ()))
            for at, handler in enumerate(handlers)
            if handler is not None  # not a part of the trace itself
        ],
    )


def handler_record(handler: list[str], times: Any, started: float, said: Any) -> HandlerRecord:
    """One handler's part in a dispatch."""
    by, place = handler
    begun, ended = times
    returned: Any = None
    if len(said) == RETURNED:
        did, reason, error, changes, returned = "value", None, None, None, said[1]
    else:
        _, did, reason, error, changes, returned = filled(said, 6)
    return HandlerRecord(
        by=str(by),
        place=str(place),
        after=begun - started,
        duration=ended - begun,
        did=did or "none",
        changes=changes_of(changes),
        decision=decision_by(did),
        reason=reason or "",
        error=error or "",
        returned=returned,
    )


def words_in(part: list[Any]) -> slice:
    """Where in the part of a handler its own words are."""
    return slice(1 if len(part) == RETURNED else 2, None)


def filled(values: Any, count: int) -> list[Any]:
    """Pad a list with null to this many values."""
    return [*values, *[None] * (count - len(values))][:count]


def model_record(turn: list[Any], chunk: Mapping[str, Any]) -> TraceRecord:
    """Where a model turn started; its duration is on the tape."""
    place, started, model, agent = turn[:4]
    own, step, _ = chunk["d"][2][place]
    return TraceRecord(
        id=span_id(own, step),
        kind="model",
        name=str(model),
        session=str(chunk["d"][1]),
        turn=own,
        step=step,
        parent=own,
        time=chunk["t"] + started,
        payload={"agent": agent},
    )

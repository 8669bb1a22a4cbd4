"""Rows: records as they are kept, short, and written in one go.

A chunk is `{"v": 3, "p": prefix of ids, "t": seconds to add to times, "d": tables, "n": shapes,
"h": handlers, "x": texts}`. The tables are the number of the first id, the session, the places
(`[turn, model turn, call]`), the model turns that began (`[place, time, model, agent]`), and the rows:
for each dispatch `[shape, place, started, lasted, decision]`, then for each handler its number, when
after the start it was called, and how long that took. A shape is `[hook, names of its payload]`, a
handler `[name, file and line]`. The text of a row is `[values of its payload, reason, error]`, then for
each handler that said something `[which of the row's, what it did, reason, error, changes, what it
returned]`. A payload that was too long is a table or a text; at level "decisions" it is null. What is
missing at an end is null. Times are in nanoseconds. Chunks of versions 1 and 2 are read by `older`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from hookline.hooks import Decision

from . import older
from .record import HandlerRecord, TraceRecord, changes_of, decision_by, parent_id, span_id

VERSION: Final = 3

HEAD: Final = 5
"""Where in a row the handlers begin."""
SAID: Final = 3
"""Where in a text the parts of handlers begin."""
WHY: Final = 2
"""Where in such a part the handler's own words begin."""


def records_of(body: str) -> tuple[list[TraceRecord], int]:
    """The records of a chunk, and how many of it could not be read."""
    records: list[TraceRecord] = []
    damaged = 0
    try:
        chunk: dict[str, Any] = json.loads(body)
        if chunk["v"] < VERSION:
            return older.records_of(chunk)
        turns, rows = chunk["d"][3], chunk["d"][4]
    except older.UNREADABLE:
        return [], 1
    for number, row in enumerate(rows):
        try:
            records.append(hook_record(number, row, chunk))
        except older.UNREADABLE:
            damaged += 1
    for turn in turns:
        try:
            records.append(model_record(turn, chunk))
        except older.UNREADABLE:
            damaged += 1
    return records, damaged


def hook_record(number: int, row: list[Any], chunk: Mapping[str, Any]) -> TraceRecord:
    """A dispatch."""
    first, session, places = chunk["d"][:3]
    shape, place, started, lasted, decision = row[:HEAD]
    hook, names = chunk["n"][shape]
    text: list[Any] = chunk["x"][number]
    values: Any
    values, reason, error = [*text, None, None][:SAID]
    said = {part[0]: part for part in text[SAID:]}
    turn, step, call = places[place]
    times = [row[at : at + 3] for at in range(HEAD, len(row), 3)]
    return TraceRecord(
        id=f"{chunk['p']}.{first + number}",
        name=str(hook),
        session=str(session),
        turn=turn,
        step=step,
        call=call,
        parent=parent_id("hook", turn, step, call),
        time=chunk["t"] + started / 1e9,
        duration=lasted / 1e9,
        decision="" if decision is None else Decision(decision).name.lower(),
        reason=reason or "",
        error=error or "",
        payload=dict(zip(names, cast("list[Any]", values), strict=False))
        if isinstance(values, list)
        else values,
        handlers=[
            handler_record(each, said.get(which, ()), chunk)
            for which, each in enumerate(times)
            if each[0] >= 0  # not a part of the trace itself
        ],
    )


def handler_record(times: list[int], said: Any, chunk: Mapping[str, Any]) -> HandlerRecord:
    """One handler's part in a dispatch."""
    who, after, took = times
    by, place = chunk["h"][who]
    _, did, reason, error, changes, returned = [*said, *[None] * (6 - len(said))][:6]
    return HandlerRecord(
        by=str(by),
        place=str(place),
        after=after / 1e9,
        duration=took / 1e9,
        did=did or "none",
        changes=changes_of(changes),
        decision=decision_by(did),
        reason=reason or "",
        error=error or "",
        returned=returned,
    )


def model_record(turn: list[Any], chunk: Mapping[str, Any]) -> TraceRecord:
    """Where a model turn began; how long it took is on the tape."""
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
        time=chunk["t"] + started / 1e9,
        payload={"agent": agent},
    )

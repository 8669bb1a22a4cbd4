"""Whether a hook fired: how often, which handlers ran, what they did, and the last times."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hookline.observe.trace.plugin import Tracing

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from ..trace import TraceRecord
    from .reader import AppReader

LATEST: Final = 10
"""How many dispatches are listed individually."""


async def hook_activity(reader: AppReader, hook: str, since: float) -> dict[str, Any]:
    """The trace of one hook since a given time."""
    app = reader.app
    trace = await reader.trace(None, since)
    found = [record for record in trace.records if record.kind == "hook" and record.name == hook]
    did: dict[str, Counter[str]] = {}
    for record in found:
        for handler in record.handlers:
            did.setdefault(handler.by, Counter())[handler.did] += 1
    return {
        "hook": hook,
        "since": since,
        "calls": len(found),
        "unseen": "" if found else unseen(app, hook),
        "handlers": [{"by": by, "calls": each.total(), "did": each} for by, each in did.items()],
        "latest": [await _told(reader, record) for record in reversed(found[-LATEST:])],
    }


def unseen(app: Hookline, hook: str) -> str:
    """Why the trace may have no call of a hook."""
    from ..trace.tracer import decides

    level = Tracing.of(app).level
    if level == "off":
        return (
            "Not known: no trace is kept. `hookline config set trace.level decisions` keeps one from "
            "then on."
        )
    if not app.hooks[hook].count():
        return "Not known: calls of a hook are recorded while something is attached to it."
    if level == "decisions" and not decides(app.hooks[hook].spec):
        return (
            "Not known: at level “decisions” the trace keeps hooks that decide or rewrite. "
            "`hookline config set trace.level full` keeps every hook."
        )
    if level == "decisions":
        return (
            "No handler decided, changed or failed. At level “decisions” the trace keeps nothing of "
            "calls in which no handler said anything."
        )
    return "No."


async def _told(reader: AppReader, record: TraceRecord) -> dict[str, Any]:
    return {
        "session": record.session,
        "turn": await _number(reader, record),
        "record": record.id,
        "time": record.time,
        "duration": record.duration,
        "decision": record.decision,
    }


async def _number(reader: AppReader, record: TraceRecord) -> int | None:
    """The number of its turn in the session; None if the tape has no such turn."""
    outline = await reader.outlines.of(reader.app.store(), record.session)
    turns = outline.turns if outline is not None else []
    return next((turn.number for turn in turns if turn.turn_id == record.turn), None)

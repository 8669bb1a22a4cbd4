"""A trace as a document: each dispatch and span on a timeline, and who decided. Notebooks show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hookline.text.document import BarCell, Cell, ReportDocument, ReportTable, Tone, counted

from .record import FAILED

if TYPE_CHECKING:
    from .record import TraceRecord
    from .store import Trace

MOST: Final = 500
"""Records that are shown; of a longer trace, the newest."""


def trace_document(trace: Trace) -> ReportDocument:
    """The document of a trace."""
    shown = trace.records[-MOST:]
    left_out = len(trace.records) - len(shown)
    notes = [f"{counted(left_out, 'older record')} not shown"] if left_out else []
    notes += [f"{counted(trace.dropped, 'older record')} dropped to make room"] if trace.dropped else []
    notes += [f"{counted(trace.damaged, 'part')} could not be read"] if trace.damaged else []
    parts = [timeline(shown)] if shown else []
    return ReportDocument("Trace", [counted(len(trace.records), "record")], parts, notes)


def timeline(records: list[TraceRecord]) -> ReportTable:
    """The records as bars, with the handlers that did something."""
    start = min(record.time for record in records)
    whole = max(max(record.time + record.duration for record in records) - start, 1e-9)
    rows = [
        (
            record.kind,
            record.name,
            BarCell((record.time - start) / whole, record.duration / whole, tone(record)),
            f"{record.duration * 1e3:,.1f} ms",
            Cell(record.decision, tone(record)) if record.decision else "",
            record.error or record.reason,
            ", ".join(f"{handler.by} {handler.did}" for handler in record.handlers if handler.did),
        )
        for record in records
    ]
    columns = ("kind", "name", "when", "took", "decision", "why", "handlers")
    return ReportTable("Timeline", columns, rows, frozenset({"took"}))


def tone(record: TraceRecord) -> Tone:
    """The tone of a record: denied, asked, failed, or nothing special."""
    if record.decision in ("deny", "denied"):
        return "deny"
    failed = record.error or any(handler.did in FAILED for handler in record.handlers)
    return "ask" if failed or record.decision in ("ask", "asked") else "allow"

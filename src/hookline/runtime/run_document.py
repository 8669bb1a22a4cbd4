"""A run as a document: its answer, the timeline, tool calls and decisions. Notebooks show it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hookline.text.document import Article, BarCell, Cell, ReportDocument, ReportTable, Tone, counted
from hookline.types import text_of

if TYPE_CHECKING:
    from .run_record import MadeToolCall, RunResult, RunStep

TONES: Final[dict[str, Tone]] = {"ok": "allow", "failed": "ask", "denied": "deny"}


def run_document(result: RunResult[Any]) -> ReportDocument:
    """The document of a run."""
    parts: list[ReportTable | Article | str] = [Article("Answer", lines=[("", result.text)])]
    if result.timeline:
        parts.append(timeline(result.timeline))
    if result.decisions:
        rows = [
            (
                Cell(each.decision if not each.changed else f"{each.decision}, rewritten", tone(each)),
                each.on,
                each.by,
                each.reason or ", ".join(each.changed),
            )
            for each in result.decisions
        ]
        parts.append(ReportTable("Decisions", ("decision", "on", "by", "reason"), rows))
    if result.tool_calls:
        parts += ["Tool calls", *map(called, result.tool_calls)]
    return ReportDocument("Run", [summary(result)], parts)


def summary(result: RunResult[Any]) -> str:
    """What a run did and what it took, in one line."""
    models = sum(step.kind == "model" for step in result.timeline)
    denied = sum(each.decision == "deny" for each in result.decisions)
    tokens = result.usage.get("input_tokens", 0) + result.usage.get("output_tokens", 0)
    facts = [
        counted(models, "model call"),
        counted(len(result.tool_calls), "tool call"),
        f"{denied} denied" if denied else "",
        f"{result.seconds:.2f} s",
        counted(tokens, "token") if tokens else "",
        f"${result.cost:.4f}" if result.cost is not None else "",
    ]
    return " · ".join(filter(None, facts))


def timeline(steps: list[RunStep]) -> ReportTable:
    """The steps of a run as bars."""
    start, end = min(step.start for step in steps), max(step.end for step in steps)
    whole = max(end - start, 1e-9)
    rows = [
        (
            step.kind,
            step.name,
            BarCell((step.start - start) / whole, step.seconds / whole, TONES[step.state]),
            f"{step.seconds * 1e3:,.0f} ms",
            Cell(step.state if step.kind == "tool" else "", TONES[step.state]),
        )
        for step in steps
    ]
    return ReportTable("Timeline", ("step", "name", "when", "took", "state"), rows, frozenset({"took"}))


def called(call: MadeToolCall) -> Article:
    """A tool call with its arguments and its result."""
    result: Any = call.result
    shown = result if isinstance(result, str) else text_of(result or ())
    outcome: tuple[str, str | Cell] = ("failed:", Cell(shown, "deny")) if call.is_error else ("", shown)
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
    return Article(f"{call.name} {arguments}", call.id, [outcome])


def tone(decision: Any) -> Tone:
    """The tone of a decision."""
    found: Tone = decision.decision
    return found

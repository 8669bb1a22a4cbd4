"""The report of a backtest: counts, examples and cost; as data, and put together from parts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from math import log2
from typing import Any, Final, Literal, TypeAlias

from hookline.text.document import Article, Cell, ReportDocument, ReportTable, counted, one_line

Word: TypeAlias = Literal["allow", "ask", "deny"]
FailOn: TypeAlias = Literal["new-allow", "new-deny", "any"]

EXAMPLES: Final = 5
"""How many examples are kept of each kind of change by the same party."""
_FINE = 8  # buckets for each doubling of a duration


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A recorded call on which another decision would be made now."""

    kind: str
    """`allow → deny` and so on; `rewritten` if it would run with other arguments."""
    session_id: str
    entry: str
    call: str
    tool: str
    requested: Any
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def party(self) -> str:
        """Who makes the difference: who decides now, or who decided then."""
        return ", ".join(self.after["by"] or self.before["by"]) or "the arguments"


@dataclass(slots=True)
class BacktestReport:
    """The results of a backtest."""

    calls: int = 0
    sessions: int = 0
    changes: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    """How many, by kind, tool and party."""
    examples: list[DecisionChange] = field(default_factory=list[DecisionChange])
    random: int = 0
    """How many calls were judged otherwise when they were judged once more."""
    random_examples: list[DecisionChange] = field(default_factory=list[DecisionChange])
    seconds: float = 0.0
    """What the judging took, of all processes together."""
    elapsed: float = 0.0
    """What the whole backtest took."""
    notes: list[str] = field(default_factory=list[str])
    durations: Counter[int] = field(default_factory=Counter[int])

    def judged(self, seconds: float) -> None:
        """Count a call and its duration."""
        self.calls += 1
        self.seconds += seconds
        self.durations[int(log2(seconds * 1e6 + 1e-3) * _FINE)] += 1

    def changed(self, change: DecisionChange) -> None:
        """Count a change; the first ones of each kind and party are kept."""
        self.changes[change.kind, change.tool, change.party] += 1
        self._keep(change)

    def _keep(self, change: DecisionChange) -> None:
        alike = sum((e.kind, e.party) == (change.kind, change.party) for e in self.examples)
        if alike < EXAMPLES:
            self.examples.append(change)

    def unsteady(self, change: DecisionChange) -> None:
        """Count a call whose hooks do not answer the same each time."""
        self.random += 1
        if len(self.random_examples) < EXAMPLES:
            self.random_examples.append(change)

    def add(self, other: BacktestReport) -> None:
        """Take in what another process found."""
        self.calls += other.calls
        self.sessions += other.sessions
        self.changes += other.changes
        self.random += other.random
        self.seconds += other.seconds
        self.durations += other.durations
        for example in other.examples:
            self._keep(example)
        self.random_examples = [*self.random_examples, *other.random_examples][:EXAMPLES]
        self.notes += [note for note in other.notes if note not in self.notes]

    def count(self, kind: str) -> int:
        """How many changes there are of one kind."""
        return sum(number for key, number in self.changes.items() if key[0] == kind)

    @property
    def kinds(self) -> dict[str, int]:
        """How many changes there are of each kind, most first."""
        found: Counter[str] = Counter()
        for (kind, _, _), number in self.changes.items():
            found[kind] += number
        return dict(found.most_common())

    def fails(self, wanted: FailOn) -> bool:
        """Whether something changed of what must not."""
        if wanted == "any":
            return bool(self.changes)
        last = wanted.removeprefix("new-")
        return any(kind.endswith(f"→ {last}") for kind in self.kinds)

    def percentile(self, share: float) -> float:
        """Microseconds within which this share of the calls was judged, to a tenth or so."""
        wanted, seen = share * self.calls, 0
        for bucket in sorted(self.durations):
            seen += self.durations[bucket]
            if seen >= wanted:
                return 2.0 ** ((bucket + 1) / _FINE)
        return 0.0

    def data(self) -> dict[str, Any]:
        """The whole report as JSON data."""
        return {
            "calls": self.calls,
            "sessions": self.sessions,
            "changed": sum(self.changes.values()),
            "kinds": self.kinds,
            "changes": [
                {"kind": kind, "tool": tool, "by": party, "calls": number}
                for (kind, tool, party), number in self.changes.most_common()
            ],
            "examples": [asdict(change) for change in self.examples],
            "random": self.random,
            "random_examples": [asdict(change) for change in self.random_examples],
            "cost": {
                "seconds": round(self.seconds, 6),
                "elapsed": round(self.elapsed, 6),
                "p50_us": round(self.percentile(0.5), 1),
                "p95_us": round(self.percentile(0.95), 1),
            },
            "notes": self.notes,
        }

    def document(self, title: str = "Backtest") -> ReportDocument:
        """The report for people."""
        changed = sum(self.changes.values())
        judged = f"{counted(self.calls, 'recorded call')} in {counted(self.sessions, 'session')}"
        # For a few calls it would say how long the start takes.
        rate = f", {self.calls / self.elapsed:,.0f} calls/s" if self.elapsed > 1 else ""
        took = (
            f"{self.seconds:.2f} s of judging: half of the calls within {self.percentile(0.5):.0f} µs, "
            f"95 % within {self.percentile(0.95):.0f} µs{rate}"
        )
        parts: list[ReportTable | Article | str] = []
        if changed:
            rows = [
                (kind, tool, party, f"{number:,}")
                for (kind, tool, party), number in self.changes.most_common()
            ]
            parts.append(
                ReportTable("Changes", ("change", "tool", "by", "calls"), rows, frozenset({"calls"}))
            )
            parts += ["Examples", *map(article_of, self.examples)]
        if self.random:
            parts += [f"{counted(self.random, 'call')} not decided the same each time"]
            parts += map(article_of, self.random_examples)
        return ReportDocument(
            title, [f"{judged}, {changed:,} decided differently", took], parts, self.notes
        )

    def _repr_html_(self) -> str:
        return self.document().fragment()


def article_of(change: DecisionChange) -> Article:
    """A call with the decision of then and the one of now."""
    lines = [("then", side_of(change.before)), ("now", side_of(change.after))]
    if change.kind == "rewritten":
        lines.append(("with", Cell(as_text(change.after["arguments"]))))
    return Article(
        f"{change.tool} {as_text(change.requested)}", f"{change.session_id}  {change.call}", lines
    )


def side_of(side: dict[str, Any]) -> Cell:
    """A decision, who made it and why."""
    by = f" by {', '.join(side['by'])}" if side["by"] else ""
    why = f": {side['reason']}" if side["reason"] else ""
    word: Any = side["decision"] if side["decision"] in ("allow", "ask", "deny") else ""
    return Cell(one_line(f"{side['decision']}{by}{why}", 2_000), word)


def as_text(value: Any) -> str:
    """A value as JSON, unless it is text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

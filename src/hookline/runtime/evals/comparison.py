"""Two evaluations over the same cases: what a change of hooks, policy, model or prompt did."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

from hookline.text.document import Article, Cell, ReportDocument, ReportTable, Tone, counted

from .report import CaseResult, EvalReport, PassRate

TONES: Final[dict[str, Tone]] = {"worse": "deny", "better": "allow", "denials": "ask"}


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case before and after the change; None if the case was not in that evaluation."""

    name: str
    before: CaseResult | None
    after: CaseResult | None

    @property
    def difference(self) -> float:
        """By how much the pass rate changed."""
        if self.before is None or self.after is None:
            return 0.0
        return self.after.rate.rate - self.before.rate.rate

    @property
    def kind(self) -> str:
        """`worse`, `better`, `denials` (the same rate, other calls denied), `new`, `gone` or `same`."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        if self.difference:
            return "worse" if self.difference < 0 else "better"
        return "denials" if self.before.denials != self.after.denials else "same"

    @property
    def is_clear(self) -> bool:
        """Whether the interval of the difference leaves out 0: it is hardly chance."""
        if self.before is None or self.after is None:
            return False
        low, high = difference_interval(self.before.rate, self.after.rate)
        return low > 0 or high < 0

    def data(self) -> dict[str, Any]:
        """The change as JSON data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "before": self.before.rate.data() if self.before else None,
            "after": self.after.rate.data() if self.after else None,
            "clear": self.is_clear,
        }

    def cells(self) -> tuple[str | Cell, ...]:
        """The change as a row of the table."""
        before = self.before.rate.cells()[0] if self.before else ""
        after = self.after.rate.cells()[0] if self.after else ""
        kind = Cell(self.kind, TONES.get(self.kind, "dim"))
        if self.before is None or self.after is None or not self.difference:
            return self.name, kind, before, after, "", ""
        low, high = difference_interval(self.before.rate, self.after.rate)
        by, interval = f"{self.difference * 100:+.0f} %", f"{low * 100:+.0f} to {high * 100:+.0f}"
        return self.name, kind, before, after, by, interval

    def article(self) -> Article:
        """What failed or was denied after the change, and was not before."""
        failed = _added(self.before, self.after, "reasons")
        fixed = _added(self.after, self.before, "reasons")
        lines = [("fails now", Cell(reason, "deny")) for reason in failed]
        lines += [("failed before", Cell(reason, "dim")) for reason in fixed]
        lines += [("denied now", line) for line in _added(self.before, self.after, "denials")]
        lines += [("denied before", line) for line in _added(self.after, self.before, "denials")]
        return Article(self.name, lines=lines)


def _added(old: CaseResult | None, new: CaseResult | None, what: str) -> list[str]:
    known = getattr(old, what, [])
    return [line for line in getattr(new, what, []) if line not in known][:3]


def difference_interval(before: PassRate, after: PassRate) -> tuple[float, float]:
    """Newcombe's interval of 95 % for the difference of two pass rates."""
    (low_1, high_1), (low_2, high_2) = before.interval, after.interval
    one, two = before.rate, after.rate
    low = two - one - sqrt((two - low_2) ** 2 + (high_1 - one) ** 2)
    return low, two - one + sqrt((high_2 - two) ** 2 + (one - low_1) ** 2)


@dataclass(frozen=True, slots=True)
class EvalComparison:
    """Two reports over the same cases."""

    before: EvalReport
    after: EvalReport

    @property
    def cases(self) -> list[CaseChange]:
        """Every case: worse ones first, then better, other denials, new, gone, the same."""
        before = {case.name: case for case in self.before.cases}
        after = {case.name: case for case in self.after.cases}
        names = dict.fromkeys([*after, *before])
        found = [CaseChange(name, before.get(name), after.get(name)) for name in names]
        order = ("worse", "better", "denials", "new", "gone", "same")
        return sorted(found, key=lambda change: (order.index(change.kind), -abs(change.difference)))

    @property
    def changes(self) -> list[CaseChange]:
        """The cases that came out differently."""
        return [change for change in self.cases if change.kind != "same"]

    def data(self) -> dict[str, Any]:
        """The comparison as JSON data; the report after the change is its `after`."""
        changes = [change.data() for change in self.changes]
        return {"changes": changes, "before": self.before.data(), "after": self.after.data()}

    def document(self) -> ReportDocument:
        """The comparison for people: what changed, then the report after the change."""
        report, changes = self.after.document(), self.changes
        same = len(self.cases) - len(changes)
        summary = [
            f"{counted(len(changes), 'case')} changed, {same} came out the same",
            *self.after.summary(),
        ]
        parts: list[ReportTable | Article | str] = []
        if changes:
            columns = ("case", "change", "before", "after", "by", "95 %")
            rows = [change.cells() for change in changes]
            parts.append(ReportTable("Changes", columns, rows, frozenset(columns[2:])))
            parts += [article for change in changes if (article := change.article()).lines]
        return ReportDocument(self.after.title, summary, [*parts, *report.parts])

    def __str__(self) -> str:
        return self.document().text(80)

    def _repr_html_(self) -> str:
        return self.document().fragment()

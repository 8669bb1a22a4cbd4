"""The report of an evaluation: pass rates with intervals, cost and time; as text, HTML and data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from hookline.errors import EvalError
from hookline.text.document import Article, Cell, ReportDocument, ReportTable, counted

if TYPE_CHECKING:
    from hookline.runtime.run_record import RunResult

    from .comparison import EvalComparison

Z: Final = 1.959964
"""For intervals of 95 %."""
REASONS: Final = 3
"""Different reasons of a failed case that are shown."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """One run of a case."""

    reason: str
    """Why it failed; empty if it passed."""
    seconds: float = 0.0
    cost: float | None = None
    text: str = ""
    denials: list[str] = field(default_factory=list[str])
    """The tool calls that were denied, by whom and why."""
    is_error: bool = False
    """Whether the run ended with an error, so that there was no answer to judge."""
    result: RunResult[Any] | None = field(default=None, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether the run met everything that the case expects."""
        return not self.reason and not self.is_error

    def data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {
            "passed": self.passed,
            "reason": self.reason,
            "error": self.is_error,
            "seconds": self.seconds,
            "cost": self.cost,
            "text": self.text,
            "denials": self.denials,
        }


class PassRate:
    """How many runs passed."""

    def __init__(self, runs: Iterable[EvalRun]) -> None:
        found = [run.passed for run in runs]
        self.runs, self.passed = len(found), sum(found)

    @property
    def rate(self) -> float:
        """The share of the runs that passed."""
        return self.passed / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson interval of the share, of 95 %."""
        if not self.runs:
            return 0.0, 1.0
        share, squared = self.rate, Z * Z / self.runs
        middle = (share + squared / 2) / (1 + squared)
        spread = Z * sqrt(share * (1 - share) / self.runs + squared / (4 * self.runs)) / (1 + squared)
        low = 0.0 if self.passed == 0 else max(0.0, middle - spread)
        high = 1.0 if self.passed == self.runs else min(1.0, middle + spread)
        return low, high

    def cells(self) -> tuple[str, str, str]:
        """The counts, the rate and the interval as text."""
        low, high = (round(end * 100) for end in self.interval)
        return f"{self.passed}/{self.runs}", percent(self.rate), f"{low} to {high} %"

    def data(self) -> dict[str, Any]:
        """The rate as JSON data."""
        low, high = (round(end, 6) for end in self.interval)
        return {"passed": self.passed, "rate": round(self.rate, 6), "interval": [low, high]}


@dataclass(slots=True)
class CaseResult:
    """The runs of one case."""

    name: str
    runs: list[EvalRun] = field(default_factory=list[EvalRun])
    at_least: float | None = None

    @property
    def rate(self) -> PassRate:
        """How many of the runs passed."""
        return PassRate(self.runs)

    @property
    def ok(self) -> bool:
        """Whether the case reached its own threshold; without one, it did."""
        return self.at_least is None or self.rate.rate >= self.at_least

    @property
    def reasons(self) -> list[str]:
        """Why runs failed, each reason once."""
        return [*dict.fromkeys(run.reason for run in self.runs if not run.passed)]

    @property
    def denials(self) -> list[str]:
        """What was denied in any of the runs."""
        return sorted({denial for run in self.runs for denial in run.denials})

    def cells(self) -> tuple[str | Cell, ...]:
        """The case as a row of the table."""
        passed, rate, interval = self.rate.cells()
        tone = "allow" if self.rate.passed == self.rate.runs else "deny"
        return self.name, passed, Cell(rate, tone), interval, money(self.runs), seconds(self.runs)

    def data(self) -> dict[str, Any]:
        """The case as JSON data."""
        found = {"name": self.name, **self.rate.data(), "at_least": self.at_least, "ok": self.ok}
        return {**found, **totals(self.runs), "runs": [run.data() for run in self.runs]}


@dataclass(slots=True)
class EvalReport:
    """The results of an evaluation."""

    cases: list[CaseResult]
    at_least: float = 1.0
    """The share of all runs that must pass."""
    elapsed: float = 0.0
    """How long the evaluation took, in seconds; cases ran at the same time."""
    title: str = "Evaluation"

    @property
    def runs(self) -> list[EvalRun]:
        """All runs of all cases."""
        return [run for case in self.cases for run in case.runs]

    @property
    def rate(self) -> PassRate:
        """How many of all runs passed."""
        return PassRate(self.runs)

    @property
    def cost(self) -> float | None:
        """What all runs cost in US dollars; None if no price is known."""
        return totals(self.runs)["cost"]

    @property
    def ok(self) -> bool:
        """Whether enough of all runs passed, and of each case that has a threshold of its own."""
        return not self.missed

    @property
    def missed(self) -> list[str]:
        """The thresholds that were missed, for people."""
        found = [
            f"{case.name}: {percent(case.rate.rate)} passed, {percent(case.at_least)} needed"
            for case in self.cases
            if case.at_least is not None and not case.ok
        ]
        if self.rate.rate < self.at_least:
            found.append(
                f"{percent(self.rate.rate)} of all runs passed, {percent(self.at_least)} needed"
            )
        return found

    def __getitem__(self, name: str) -> CaseResult:
        for case in self.cases:
            if case.name == name:
                return case
        raise EvalError(f"no case is named {name!r}")

    def compare(self, before: EvalReport) -> EvalComparison:
        """Compare this report with an earlier one over the same cases."""
        from .comparison import EvalComparison

        return EvalComparison(before, self)

    def data(self) -> dict[str, Any]:
        """The whole report as JSON data."""
        return {
            "ok": self.ok,
            "missed": self.missed,
            "at_least": self.at_least,
            **self.rate.data(),
            **totals(self.runs),
            "elapsed": round(self.elapsed, 6),
            "cases": [case.data() for case in self.cases],
        }

    def junit(self) -> str:
        """The report as JUnit XML, in which a case fails if it makes the evaluation fail."""
        from .junit import junit

        return junit(self)

    def document(self) -> ReportDocument:
        """The report for people."""
        parts: list[ReportTable | Article | str] = [self.table()]
        failed = [case for case in self.cases if case.reasons]
        if failed:
            parts += ["Failures", *map(failure, failed)]
        return ReportDocument(self.title, self.summary(), parts)

    def summary(self) -> list[str]:
        """What the report comes to, and the thresholds that were missed."""
        rate, runs = self.rate, self.runs
        _, share, interval = rate.cells()
        price = f", {money(runs)} for all" if self.cost is not None else ""
        errors = sum(run.is_error for run in runs)
        broken = f", {counted(errors, 'error')}" if errors else ""
        passed = f"{rate.passed} of {counted(rate.runs, 'run')} of {counted(len(self.cases), 'case')}"
        return [
            f"{passed} passed: {share} ({interval}){broken}",
            f"{self.elapsed:.1f} s{price}",
            *(f"missed: {line}" for line in self.missed),
        ]

    def table(self) -> ReportTable:
        """A row for each case."""
        columns = ("case", "passed", "rate", "95 %", "cost", "time")
        return ReportTable(
            "Cases", columns, [case.cells() for case in self.cases], frozenset(columns[1:])
        )

    def __str__(self) -> str:
        return self.document().text(80)

    def _repr_html_(self) -> str:
        return self.document().fragment()


def percent(share: float) -> str:
    """A share as text."""
    return f"{share * 100:.0f} %"


def failure(case: CaseResult) -> Article:
    """Why runs of a case failed."""
    more = len(case.reasons) - REASONS
    lines = [("", reason) for reason in case.reasons[:REASONS]]
    lines += [("", f"and {counted(more, 'other reason')}")] if more > 0 else []
    return Article(case.name, lines=lines)


def totals(runs: list[EvalRun]) -> dict[str, Any]:
    """Cost and time of runs: together, and each on average."""
    costs = [run.cost for run in runs if run.cost is not None]
    return {
        "cost": round(sum(costs), 9) if costs else None,
        "mean_cost": round(fmean(costs), 9) if costs else None,
        "mean_seconds": round(fmean(run.seconds for run in runs), 6) if runs else None,
    }


def money(runs: list[EvalRun]) -> str:
    """What runs cost together."""
    cost = totals(runs)["cost"]
    return "" if cost is None else f"${cost:.4f}"


def seconds(runs: list[EvalRun]) -> str:
    """What a run took on average."""
    mean = totals(runs)["mean_seconds"]
    return "" if mean is None else f"{mean:.2f} s"


def read_report(data: Any, where: str) -> EvalReport:
    """Read a report that `data` wrote; `where` names its file in errors."""
    try:
        cases = [
            CaseResult(
                str(case["name"]),
                [
                    EvalRun(
                        str(run["reason"]),
                        float(run["seconds"]),
                        None if run["cost"] is None else float(run["cost"]),
                        str(run["text"]),
                        [*map(str, run["denials"])],
                        is_error=bool(run["error"]),
                    )
                    for run in case["runs"]
                ],
                case["at_least"],
            )
            for case in data["cases"]
        ]
        return EvalReport(cases, float(data["at_least"]), float(data["elapsed"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise EvalError(f"{where} is not a report that `hookline eval --json` wrote") from None

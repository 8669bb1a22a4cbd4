"""What the benchmarks share: thresholds, versions, and a line that tells how far a run has come."""

import importlib.metadata
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """A threshold, and what was measured."""

    what: str
    measured: float | None  # None: not measured in this run
    limit: float
    at_least: bool = False
    unit: str = "x"

    @property
    def passed(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "passed": self.passed}


def print_outcomes(checks: Sequence[Check], note: str = "") -> bool:
    """Print a line for every threshold; return whether something was measured and nothing missed."""
    print("\nThresholds")
    words = {True: "pass", False: "FAIL", None: "not measured"}
    for check in checks:
        measured = "" if check.measured is None else f"{check.measured:.3f}"
        bound = f"{'at least' if check.at_least else 'at most'} {check.limit:g} {check.unit}"
        print(f"{words[check.passed]:13} {measured:>8}  {bound:16} {check.what}")
    outcomes = [check.passed for check in checks]
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed, ", end="")
    print(f"{outcomes.count(None)} not measured.{note and f' {note}'}")
    return False not in outcomes and True in outcomes


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator is not None and denominator else None


def environment(distributions: Iterable[str], rounds: int) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "rounds": rounds,
        "versions": {name: version(name) for name in sorted({*distributions} - {""})},
    }


def print_environment(environment: dict[str, Any]) -> None:
    print(f"Python {environment['python']}, {environment['rounds']} rounds")
    for name, found in environment["versions"].items():
        print(f"  {name} {found or '(no version: not installed, or imported from a checkout)'}")
    print()


def version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def why_not(error: Exception, distribution: str) -> str:
    """Say why something cannot be measured."""
    missing = isinstance(error, ImportError) and version(distribution) is None
    return "not installed" if missing else f"cannot be measured: {type(error).__name__}: {error}"


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:40}", end="\r", file=sys.stderr, flush=True)

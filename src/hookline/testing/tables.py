"""Decision tables: which event leads to which decision, row by row.

    @decisions("decisions.toml")
    def test_policy(row, fire):
        row.check(fire, at=MyPlugin())

A table is a list of mappings, a TOML file with `[[row]]` tables, or a CSV file. A row names the
`event`, its fields, and the `decision` that is expected (allow, ask or deny); `reason` and `by`, where
given, must match too, and `then.FIELD` is what a field of the event must be afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from hookline.errors import BadInput
from hookline.hooks import Decision
from hookline.hooks.errors import suggestion
from hookline.hookspecs import CATALOG
from hookline.text.untrusted import load_toml

if TYPE_CHECKING:
    from .dispatcher import Fire

F = TypeVar("F", bound=Callable[..., Any])

DECISIONS = ("allow", "ask", "deny")
EXPECTED = ("event", "decision", "reason", "by", "name")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    place: str
    """Its location: `decisions.toml, row 3`."""
    event: str
    fields: dict[str, Any]
    decision: str
    reason: str | None
    by: str | None
    then: dict[str, Any]
    """What fields of the event must be afterwards."""
    name: str

    def check(self, fire: Fire, *, at: object) -> None:
        """Fire the row's event at a plugin and compare; an `AssertionError` tells the row."""
        self.compare(fire(self.event, at=at, **self.fields))

    async def check_async(self, fire: Fire, *, at: object) -> None:
        """The same, in an async test."""
        self.compare(await fire.call(self.event, at=at, **self.fields))

    def compare(self, verdict: Any) -> None:
        """Compare a verdict with the row's expectation, and report all differences at once."""
        got = Decision(verdict.decision).name.lower()
        pairs: list[tuple[str, Any, Any]] = [("decision", self.decision, got)]
        if self.reason is not None:
            pairs.append(("reason", self.reason, verdict.reason))
        if self.by is not None:
            pairs.append(("by", self.by, verdict.decided_by))
        pairs += [(name, value, getattr(verdict.event, name)) for name, value in self.then.items()]
        wrong = [f"{name}: expected {a!r}, got {b!r}" for name, a, b in pairs if a != b]
        if wrong:
            if got != self.decision and verdict.decided_by:
                wrong.append(f"decided by {verdict.decided_by}: {verdict.reason}")
            shown = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
            pytest.fail(f"{self.place}: {self.event}({shown})\n  " + "\n  ".join(wrong), pytrace=False)


def decisions(table: str | Path | Iterable[Mapping[str, Any]]) -> Callable[[F], F]:
    """Run a test once for each row of a table, as its argument `row`.

    A file is looked for beside the test.
    """

    def mark(function: F) -> F:
        beside = Path(str(function.__globals__.get("__file__", "."))).parent
        found = rows(beside / table if isinstance(table, str | Path) else table)
        cases = [pytest.param(row, id=row.name) for row in found]
        return pytest.mark.parametrize("row", cases)(function)

    return mark


def rows(table: str | Path | Iterable[Mapping[str, Any]]) -> list[Row]:
    """The validated rows of a table; an error names its location."""
    if not isinstance(table, str | Path):
        return [_row(each, f"row {n}") for n, each in enumerate(table, 1)]
    path = Path(table)
    read = {".toml": _from_toml, ".csv": _from_csv}.get(path.suffix)
    if read is None:
        raise BadInput(f"{path}: a decision table is a .toml or a .csv file")
    try:
        given = read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read the decision table {path}: {error}") from None
    return [_row(each, f"{path.name}, row {n}") for n, each in enumerate(given, 1)]


def _from_toml(path: Path) -> list[Mapping[str, Any]]:
    try:
        given: Any = load_toml(path.read_text(encoding="utf-8")).get("row")
    except ValueError as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    if not isinstance(given, list) or not given:
        raise BadInput(f"{path} has no [[row]] tables")
    return cast("list[Mapping[str, Any]]", given)


def _from_csv(path: Path) -> list[Mapping[str, Any]]:
    """The lines of a CSV; an empty cell says nothing, and one that is JSON is read as JSON."""
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    if not lines:
        raise BadInput(f"{path} has no rows")
    return [{str(k).strip(): _cell(v) for k, v in line.items() if v} for line in lines]


def _cell(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _row(given: Mapping[str, Any], place: str) -> Row:
    event, decision = given.get("event"), given.get("decision")
    judged = [name for name, spec in CATALOG.items() if spec.reducer.folds]
    if event not in judged:
        near = suggestion(str(event), judged)
        raise BadInput(f"{place}: event {event!r} is none that is decided{near}")
    if decision not in DECISIONS:
        raise BadInput(f"{place}: decision must be one of {', '.join(DECISIONS)}, not {decision!r}")
    kind: Any = CATALOG[event].event
    known = [field.name for field in fields_of(kind) if field.name != "type"]
    fields: dict[str, Any] = {}
    then: dict[str, Any] = dict(given.get("then", {}))
    for name, value in given.items():
        if name.startswith("then."):
            then[name.removeprefix("then.")] = value
        elif name not in (*EXPECTED, "then"):
            fields[name] = value
    for name in (*fields, *then):
        if name not in known:
            raise BadInput(f"{place}: event {event!r} has no field {name!r}{suggestion(name, known)}")
    default = f"{place.replace(', ', ' ')} {event} {decision}".replace(" ", "-")
    return Row(
        place,
        event,
        fields,
        decision,
        given.get("reason"),
        given.get("by"),
        then,
        str(given.get("name") or default),
    )

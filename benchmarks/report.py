"""The tables, the thresholds and the JSON of one run."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import Check, print_outcomes, ratio
from peers import BARE_LOOP, SAME_MEANING
from rows import COUNTS, MEANINGS, MODES, THOUSAND, Meaning, Mode, Row

MEANING_TEXT: dict[Meaning, str] = {
    "notify": "results are dropped",
    "first": "the first result that is not None; here nobody answers, so all run",
    "chain": "each result goes to the next handler",
    "collect": "a list of the results that are not None",
}
# pluggy has no chain and awaits no first result: these compare with what it does instead.
PLUGGY_MEANING: dict[Meaning, Meaning] = {"first": "notify", "chain": "collect"}


@dataclass
class Timing:
    row: Row
    handlers: int
    calls_per_sample: int
    samples: list[float] = field(default_factory=list)

    @property
    def min_ns(self) -> float:
        return min(self.samples)

    @property
    def median_ns(self) -> float:
        return statistics.median(self.samples)


@dataclass
class Results:
    rows: Sequence[Row]
    environment: dict[str, Any]
    timings: dict[tuple[str, Mode, Meaning, int], Timing] = field(default_factory=dict)
    unavailable: dict[Row, str] = field(default_factory=dict)
    rebuild: dict[str, dict[str, float]] = field(default_factory=dict)
    imports: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, row: Row, handlers: int, samples: list[float], calls: int) -> None:
        key = (row.name, row.mode, row.meaning, handlers)
        self.timings.setdefault(key, Timing(row, handlers, calls)).samples.extend(samples)

    def best(self, name: str, mode: Mode, meaning: Meaning, handlers: int) -> float | None:
        timing = self.timings.get((name, mode, meaning, handlers))
        return timing.min_ns if timing else None

    def pluggy(self, mode: Mode, meaning: Meaning, handlers: int) -> float | None:
        same = self.best("pluggy", mode, meaning, handlers)
        if same is None and meaning in PLUGGY_MEANING:
            return self.best("pluggy", mode, PLUGGY_MEANING[meaning], handlers)
        return same

    def as_json(self) -> dict[str, Any]:
        dispatch = [
            {
                "contender": timing.row.name,
                "mode": timing.row.mode,
                "meaning": timing.row.meaning,
                "handlers": timing.handlers,
                "call": timing.row.call,
                "isolates_errors": timing.row.isolates,
                "note": timing.row.note,
                "min_ns": timing.min_ns,
                "median_ns": timing.median_ns,
                "samples": len(timing.samples),
                "calls_per_sample": timing.calls_per_sample,
                **self.ratios(timing),
            }
            for timing in self.timings.values()
        ]
        unavailable = [
            {"contender": row.name, "mode": row.mode, "meaning": row.meaning, "reason": reason}
            for row, reason in self.unavailable.items()
        ]
        return {
            **self.environment,
            "dispatch": dispatch,
            "unavailable": unavailable,
            "rebuild": self.rebuild,
            "import": self.imports,
            "checks": [check.as_json() for check in checks(self)],
        }

    def ratios(self, timing: Timing) -> dict[str, float | None]:
        mode, meaning, handlers = timing.row.mode, timing.row.meaning, timing.handlers
        pluggy = self.pluggy(mode, meaning, handlers)
        return {
            "times_loop": ratio(timing.min_ns, self.best(BARE_LOOP, mode, meaning, handlers)),
            "times_same_meaning": ratio(
                timing.min_ns, self.best(SAME_MEANING, mode, meaning, handlers)
            ),
            "faster_than_pluggy": ratio(pluggy, timing.min_ns),
        }


def duration(ns: float) -> str:
    if ns < 100_000:
        return f"{ns:.0f}"
    return f"{ns / 1000:.0f} µs" if ns < 1_000_000 else f"{ns / 1_000_000:.1f} ms"


def times(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


# --- Tables ---


def print_dispatch(results: Results) -> None:
    print("Nanoseconds per dispatch: minimum, median, and the minimum as a multiple of the loop's.")
    print("pluggy/: how many times faster than pluggy at 5 handlers; pluggy has no chain (its collect")
    print("stands in) and no async first (its notify). isolates: one failing handler leaves the others")
    print("running.")
    for mode in MODES:
        for meaning in MEANINGS:
            rows = [row for row in results.rows if (row.mode, row.meaning) == (mode, meaning)]
            print(f"\n{mode} {meaning}: {MEANING_TEXT[meaning]}")
            heads = "".join(f"{plural(count):>22}" for count in COUNTS)
            print(f"{'':25}{'isolates':>8}{heads}")
            group = f"{'min':>8}{'med':>8}{'/loop':>6}"
            print(f"{'':25}{'':>8}{group * len(COUNTS)}{'pluggy/':>9}")
            notes: dict[str, None] = {}
            for row in rows:
                if row.note:
                    notes[f"  {row.name}: {row.note}."] = None
                print(f"{row.name:26}{'yes' if row.isolates else 'no':>7}{cells(results, row)}")
            print(*notes, sep="\n", end="\n" if notes else "")


def cells(results: Results, row: Row) -> str:
    if row in results.unavailable:
        return f"     {results.unavailable[row]}"
    text = ""
    faster: float | None = None
    for count in COUNTS:
        timing = results.timings.get((row.name, row.mode, row.meaning, count))
        if timing is None:
            text += " " * 22
            continue
        ratios = results.ratios(timing)
        text += f"{duration(timing.min_ns):>8}{duration(timing.median_ns):>8}"
        text += f"{times(ratios['times_loop']):>6}"
        if count == 5:
            faster = ratios["faster_than_pluggy"]
    return f"{text}{times(faster):>9}"


def plural(count: int) -> str:
    return f"{count} handler{'' if count == 1 else 's'}"


def print_upkeep(results: Results) -> None:
    print("\nA thousand handlers on one hook (notify): nanoseconds per handler, minimum")
    print(f"{'':26}{'at 20':>9}{'at 1000':>9}{'1000 : 20':>11}{'/loop at 1000':>16}")
    for mode in MODES:
        for name in (BARE_LOOP, "hookline"):
            at_20, at_1000 = per_handler(results, name, mode, 20), per_handler(results, name, mode)
            if at_20 is None or at_1000 is None:
                continue
            loop = per_handler(results, BARE_LOOP, mode)
            print(
                f"{f'{mode} {name}':26}{at_20:>9.1f}{at_1000:>9.1f}"
                f"{times(at_1000 / at_20):>11}{times(ratio(at_1000, loop)):>16}"
            )
    if results.rebuild:
        pluggy = results.rebuild["pluggy"]["min_ns"]
        print("\nA fifth handler is registered and the hook is called once (sync): microseconds")
        print(f"{'':40}{'min':>9}{'median':>9}{'/pluggy':>10}")
        for name, timing in results.rebuild.items():
            low, middle = timing["min_ns"], timing["median_ns"]
            print(f"{name:40}{low / 1e3:>9.1f}{middle / 1e3:>9.1f}{times(low / pluggy):>10}")
    if results.imports:
        pluggy = results.imports["pluggy"]["min_ns"]
        print("\nImport in a new interpreter: milliseconds")
        print(f"{'':26}{'min':>9}{'median':>9}{'/pluggy':>10}   packages outside the standard library")
        for module, timing in results.imports.items():
            low, middle = timing["min_ns"], timing["median_ns"]
            packages = ", ".join(timing["packages"])
            columns = f"{low / 1e6:>9.1f}{middle / 1e6:>9.1f}{times(low / pluggy):>10}"
            print(f"{module:26}{columns}   {packages}")


def per_handler(results: Results, name: str, mode: Mode, handlers: int = THOUSAND) -> float | None:
    return ratio(results.best(name, mode, "notify", handlers), handlers)


# --- Thresholds ---


def checks(results: Results) -> list[Check]:
    """Return every threshold with what was measured, all of them minimum against minimum."""
    return [
        *against_the_loop(results),
        *by_name(results),
        *against_pluggy(results),
        *against_isolating_peers(results),
        *nothing_attached(results),
        *upkeep(results),
    ]


def against_the_loop(results: Results) -> Iterator[Check]:
    for mode in MODES:
        for meaning in MEANINGS:
            loop = SAME_MEANING if meaning == "collect" else BARE_LOOP
            for count in (1, 5, 20):
                measured = ratio(
                    results.best("hookline", mode, meaning, count),
                    results.best(loop, mode, meaning, count),
                )
                yield Check(f"{mode} {meaning}, {plural(count)}: against the {loop}", measured, 1.0)


def by_name(results: Results) -> Iterator[Check]:
    for row in results.rows:
        if row.name.startswith("hookline, hooks."):
            loop = SAME_MEANING if row.meaning == "collect" else BARE_LOOP
            measured = ratio(
                results.best(row.name, row.mode, row.meaning, 5),
                results.best(loop, row.mode, row.meaning, 5),
            )
            face = row.name.removeprefix("hookline, ")
            yield Check(
                f"{row.mode} {row.meaning}, 5 handlers: {face} against the {loop}", measured, 2.0
            )


def against_pluggy(results: Results) -> Iterator[Check]:
    for mode in MODES:
        for meaning in MEANINGS:
            least = 5 if mode == "async" else 8 if meaning == "collect" else 12
            measured = ratio(
                results.pluggy(mode, meaning, 5), results.best("hookline", mode, meaning, 5)
            )
            what = f"{mode} {meaning}, 5 handlers: faster than pluggy"
            yield Check(what, measured, least, at_least=True)


def against_isolating_peers(results: Results) -> Iterator[Check]:
    for row in results.rows:
        if not row.isolates or row.distribution == "hookline":
            continue
        compared = [
            ratio(
                results.best("hookline", row.mode, row.meaning, count),
                results.best(row.name, row.mode, row.meaning, count),
            )
            for count in COUNTS
        ]
        known = [value for value in compared if value is not None]
        what = f"{row.mode} {row.meaning}, every count: against {row.name}"
        yield Check(what, max(known, default=None), 1.0)


def nothing_attached(results: Results) -> Iterator[Check]:
    for mode in MODES:
        empty = results.best(BARE_LOOP, mode, "notify", 0)
        guarded = results.best("hookline, if hook.live", mode, "notify", 0)
        what = f"{mode}, nothing attached: `if hook.live` against an empty loop"
        yield Check(what, ratio(guarded, empty), 0.3)
        for meaning in MEANINGS:
            loop = SAME_MEANING if meaning == "collect" else BARE_LOOP
            measured = ratio(
                results.best("hookline", mode, meaning, 0), results.best(loop, mode, meaning, 0)
            )
            what = f"{mode} {meaning}, nothing attached: unguarded against an empty {loop}"
            yield Check(what, measured, 0.8 if mode == "sync" else 0.9)


def upkeep(results: Results) -> Iterator[Check]:
    for shape, limit in (("known", 50), ("new", 1000)):
        worst = max(
            (results.rebuild[f"{meaning}, {shape} shape"]["min_ns"] / 1000 for meaning in MEANINGS)
            if results.rebuild
            else (),
            default=None,
        )
        yield Check(f"fifth handler and first call, {shape} shape", worst, limit, unit="µs")
    for mode in MODES:
        measured = ratio(
            per_handler(results, "hookline", mode), per_handler(results, "hookline", mode, 20)
        )
        # Beyond the unrolled calls there is a loop, so some growth is expected: linear means bounded.
        yield Check(f"{mode} notify, a handler of 1000 against one of 20", measured, 2.0)
    if results.imports:
        ours, pluggy = results.imports["hookline.hooks"], results.imports["pluggy"]
        over = (ours["min_ns"] - pluggy["min_ns"]) / 1e6
        foreign = len(set(ours["packages"]) - {"hookline", *pluggy["packages"]})
    else:
        over = foreign = None
    yield Check("import hookline.hooks, over import pluggy", over, 25, unit="ms")
    yield Check("import hookline.hooks: packages besides pluggy", foreign, 0, unit="")


def print_checks(results: Results) -> bool:
    """Print a line for every threshold; return whether Hookline was measured and none was missed."""
    return print_outcomes(checks(results), "Scopes and `emit` with nothing attached: see the tests.")

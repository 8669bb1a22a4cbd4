"""Hookline's rows, and what only Hookline is asked: the cost of a change and of the import."""

import dataclasses
import functools
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from peers import attach_pluggy
from rows import (
    COUNTS,
    EVENT,
    MEANINGS,
    MODES,
    THOUSAND,
    Handler,
    Meaning,
    Mode,
    Names,
    Row,
    clock,
    make_handler,
)

WIDE = "abcdef"  # the parameters of the hooks that are rebuilt


@functools.cache
def catalog() -> Any:
    from hookline.hooks import OLDEST, SKIP, Catalog, Family, chain, collect, first, hookspec, notify

    class BenchHooks(Family, name="bench"):
        @hookspec(notify, order=OLDEST, errors=SKIP, sync=True)
        def sync_notify(self, event: object) -> None:
            """Drop the results."""

        @hookspec(first, order=OLDEST, errors=SKIP, sync=True)
        def sync_first(self, event: object) -> int | None:
            """Return the first result that is not None."""

        @hookspec(chain("value"), order=OLDEST, errors=SKIP, sync=True)
        def sync_chain(self, value: int) -> int | None:
            """Hand each result to the next."""

        @hookspec(collect(), order=OLDEST, errors=SKIP, sync=True)
        def sync_collect(self, event: object) -> int | None:
            """Return the results that are not None."""

        @hookspec(notify, order=OLDEST, errors=SKIP)
        def async_notify(self, event: object) -> None:
            """Drop the results."""

        @hookspec(first, order=OLDEST, errors=SKIP)
        def async_first(self, event: object) -> int | None:
            """Return the first result that is not None."""

        @hookspec(chain("value"), order=OLDEST, errors=SKIP)
        def async_chain(self, value: int) -> int | None:
            """Hand each result to the next."""

        @hookspec(collect(), order=OLDEST, errors=SKIP)
        def async_collect(self, event: object) -> int | None:
            """Return the results that are not None."""

        # Handlers may take any subset of six parameters: there is always a shape not seen before.
        @hookspec(notify, order=OLDEST, errors=SKIP, sync=True)
        def wide_notify(self, a: int, b: int, c: int, d: int, e: int, f: int) -> None:
            """Drop the results."""

        @hookspec(first, order=OLDEST, errors=SKIP, sync=True)
        def wide_first(self, a: int, b: int, c: int, d: int, e: int, f: int) -> int | None:
            """Return the first result that is not None."""

        @hookspec(chain("a"), order=OLDEST, errors=SKIP, sync=True)
        def wide_chain(self, a: int, b: int, c: int, d: int, e: int, f: int) -> int | None:
            """Hand each result to the next."""

        @hookspec(collect(), order=OLDEST, errors=SKIP, sync=True)
        def wide_collect(self, a: int, b: int, c: int, d: int, e: int, f: int) -> int | None:
            """Return the results that are not None."""

    return Catalog(BenchHooks)


def new_hooks() -> Any:
    from hookline.hooks import HookRegistry

    return HookRegistry(catalog())


def attach_hookline(handlers: Sequence[Handler], name: str) -> Names:
    hooks = new_hooks()
    for handler in handlers:
        hooks.register(name, handler)
    return {"hooks": hooks, "hook": hooks[name]}


def hookline() -> list[Row]:
    return [row for mode in MODES for meaning in MEANINGS for row in hookline_rows(mode, meaning)]


def faces(mode: Mode, meaning: Meaning) -> list[str]:
    """The methods that call a hook by name with this meaning."""
    suffix = "_sync" if mode == "sync" else ""
    also = {"first": ["call_first"], "collect": ["call_many"]}.get(meaning, [])
    run = ["run"] if mode == "sync" and meaning in ("chain", "collect") else []
    return [f"{face}{suffix}" for face in ("call", *also)] + run


def hookline_rows(mode: Mode, meaning: Meaning) -> list[Row]:
    name = f"{mode}_{meaning}"
    parameter = "value" if meaning == "chain" else "event"
    attach = functools.partial(attach_hookline, name=name)
    await_ = "await " if mode == "async" else ""

    def row(label: str, call: str, before: str = "pass", counts: tuple[int, ...] = COUNTS) -> Row:
        return Row(
            label,
            mode,
            meaning,
            call,
            attach,
            isolates=True,
            distribution="hookline",
            parameters=parameter,
            returns=parameter if meaning in ("chain", "collect") else "None",
            before=before,
            counts=counts,
        )

    held = row("hookline", f"{await_}fire(event)", before="fire = hook.fire", counts=COUNTS)
    by_name = [
        row(f"hookline, hooks.{face}", f'{await_}hooks.{face}("{name}", {parameter}=event)')
        for face in faces(mode, meaning)
    ]
    if meaning != "notify":
        return [held, *by_name]
    return [
        dataclasses.replace(held, counts=(*COUNTS, THOUSAND)),
        row("hookline, hook.fire", f"{await_}hook.fire(event)"),
        row("hookline, if hook.live", f"if hook.live: {await_}hook.fire(event)"),
        *by_name,
    ]


# --- The cost of a change ---


def summary(samples: Sequence[float]) -> dict[str, float]:
    return {"min_ns": min(samples), "median_ns": statistics.median(samples)}


def measure_rebuild(rounds: int) -> dict[str, dict[str, float]]:
    """Register a fifth handler and call the hook once, with and without a shape seen before."""
    hooks = new_hooks()
    seen: set[tuple[str, ...]] = set()
    subsets = [
        ", ".join(names)
        for size in range(len(WIDE) + 1)
        for names in itertools.combinations(WIDE, size)
    ]
    known = ("a",) * 5

    def new() -> tuple[str, ...]:
        while (shape := tuple(random.choices(subsets, k=5))) in seen:
            pass
        seen.add(shape)
        return shape

    def change(meaning: Meaning, shape: tuple[str, ...]) -> tuple[int, int]:
        name = f"wide_{meaning}"
        *attached, fifth = [
            make_handler(index, "sync", parameters, "return None")
            for index, parameters in enumerate(shape)
        ]
        removals = [hooks.register(name, handler) for handler in attached]
        hook = hooks[name]
        started = clock()
        removals.append(hooks.register(name, fifth))
        registered = clock()
        hook.fire(1, 2, 3, 4, 5, 6)
        called = clock()
        for remove in removals:
            remove()
        return registered - started, called - registered

    def change_pluggy() -> int:
        *attached, fifth = [make_handler(index, "sync", "event", "return None") for index in range(5)]
        names = attach_pluggy(attached)
        hook = names["hook"]
        plugin = SimpleNamespace(fired=names["hookimpl"](fifth))
        started = clock()
        names["manager"].register(plugin)
        hook(event=EVENT)
        return clock() - started

    samples: dict[str, list[float]] = {"pluggy": []}
    for meaning in MEANINGS:
        change(meaning, known)
        for label in ("known", "new"):
            samples[f"{meaning}, {label} shape"] = []
            samples[f"{meaning}, {label} shape, first call alone"] = []
    seen.add(known)
    for _ in range(rounds):
        for meaning in random.sample(MEANINGS, len(MEANINGS)):
            for label, shape in (("known", known), ("new", new())):
                registering, calling = change(meaning, shape)
                row = f"{meaning}, {label} shape"
                samples[row].append(registering + calling)
                samples[f"{row}, first call alone"].append(calling)
        samples["pluggy"].append(change_pluggy())
    return {name: summary(values) for name, values in samples.items()}


# --- The cost of the import ---

IMPORT = """
import sys, time
before = set(sys.modules)
started = time.perf_counter_ns()
import {module}
elapsed = time.perf_counter_ns() - started
packages = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(elapsed, *sorted(packages - sys.stdlib_module_names))
"""


def measure_import(rounds: int) -> dict[str, dict[str, Any]]:
    """Import each module in a new interpreter, alternating, with bytecode cached for both."""
    samples: dict[str, list[float]] = {"pluggy": [], "hookline.hooks": []}
    packages: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as cache:
        # A checkout may have no bytecode and an environment may forbid it; an installed package has it.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(rounds + 1):
            for module in random.sample(list(samples), len(samples)):
                done = subprocess.run(
                    [sys.executable, "-c", IMPORT.format(module=module)],
                    env=environment,
                    check=True,
                    capture_output=True,
                    text=True,
                )
                elapsed, *packages[module] = done.stdout.split()
                if turn > 0:  # the first time compiles
                    samples[module].append(int(elapsed))
    return {
        module: {**summary(values), "packages": packages[module]} for module, values in samples.items()
    }

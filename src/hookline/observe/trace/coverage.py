"""Coverage: every declared hook with its call sites, and handlers that can never run.

Call sites are found in the source, so that nothing must run to know them: a hook's name where hooks are
looked up or called, or its event where one is dispatched.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from hookline.hooks import Implementation
from hookline.hookspecs import Hooks

SOURCE: Final = Path(__file__).parents[2]
DECLARING: Final = (
    "hookspecs.py",
    "events.py",
    "types.py",
    "observe/reference",
    "hooks",
    "testing",
)
"""Folders of Hookline in which a hook's name is no call: where it is declared, handled or tested."""
CALLING: Final = frozenset(
    {"call", "call_sync", "run", "call_first", "call_many", "call_first_sync", "call_many_sync"}
    | {"subset_hook_caller"}
)
"""The methods of `Hooks` and of the plugin manager that dispatch a hook by its name."""
RUNNER: Final = {
    "_invoke": ("tools/runner.py",),
    "stream": (
        "models/output.py",
        "models/probe.py",
        "observe/replay/playback.py",
        "runtime/embedded.py",
        "cli/bench.py",
    ),
}
"""Where tools and models may be reached: the one runner, and the function by which the one model turn
asks for an answer. A probe asks a model whether it answers at all; a playback, an embedded model and a
bench pass on what the model turn asked of them."""
NAMED: Final = ("event", "hook", "hook_name", "name")
"""What a parameter that names a hook is called."""
FILES: Final = 2_000


@dataclass(slots=True)
class Covered:
    """One declared hook."""

    hook: str
    family: str
    sites: list[str] = field(default_factory=list[str])
    """Where it is called: `file.py:12`."""
    attached: list[str] = field(default_factory=list[str])
    fired: int = 0
    """How often it was traced."""
    last: float | None = None


@dataclass(frozen=True, slots=True)
class CoverageProblem:
    """Something that can never run, or that goes around the one runner."""

    what: str
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text} ({self.place})"


@dataclass(slots=True)
class Coverage:
    """What was found."""

    hooks: list[Covered]
    faults: list[CoverageProblem]

    @property
    def complete(self) -> bool:
        """Whether every hook is called somewhere, and every handler can run."""
        return not self.faults and all(each.sites for each in self.hooks)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {**asdict(self), "complete": self.complete}


def cover(
    hooks: Hooks,
    fired: Mapping[str, tuple[int, float]] | None = None,
    *,
    tools: Iterable[str] = (),
) -> Coverage:
    """Look at every declared hook, in Hookline's source and in that of the plugins that are loaded."""
    events = {spec.event.__name__: name for name, spec in hooks.catalog.items() if spec.event}
    sites: dict[str, list[str]] = {name: [] for name in hooks.catalog}
    faults: list[CoverageProblem] = []
    read: list[tuple[str, SourceFile]] = []
    for path, shown in sources(hooks):
        try:
            source = read_source(path, path.stat().st_mtime_ns)
        except (OSError, SyntaxError, ValueError):
            continue  # whoever imports it is told
        read.append((shown, source))
        if path.is_relative_to(SOURCE):
            faults += around_the_runner(source, shown)
    calling = callers(source for _, source in read)
    for shown, source in read:
        for name, line in calls_in(source, sites, events, calling):
            sites[name].append(f"{shown}:{line}")
    seen = fired or {}
    covered = [
        Covered(
            name,
            spec.family,
            sorted(set(sites[name])),
            [impl.name for impl in hooks[name].run_order()],
            *seen.get(name, (0, None)),
        )
        for name, spec in hooks.catalog.items()
    ]
    return Coverage(covered, [*faults, *unreachable(hooks, list(tools))])


# --- call sites ---


def sources(hooks: Hooks) -> Iterator[tuple[Path, str]]:
    """Hookline's own files, and those of the plugins, each with the name that is shown."""
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside.parts[0] not in DECLARING:
            yield path, f"hookline/{inside.as_posix()}"
    for count, path in enumerate(sorted(plugin_files(hooks))):
        if count >= FILES:
            return
        yield path, str(path)


def plugin_files(hooks: Hooks) -> set[Path]:
    """The modules that plugins come from, with the package that each is in."""
    found: set[Path] = set()
    for _, plugin in hooks.pm.list_name_plugin():
        name = getattr(plugin, "__module__", None) or getattr(plugin, "__name__", "")
        module = sys.modules.get(str(name))
        file = getattr(module, "__file__", None)
        if file is None or Path(file).is_relative_to(SOURCE):
            continue
        top = sys.modules.get(str(name).partition(".")[0])
        folders = list(getattr(top, "__path__", ()))
        found.update(p for folder in folders for p in Path(folder).rglob("*.py"))
        found.add(Path(file))
    return found


@dataclass(slots=True)
class SourceFile:
    """What matters of a file, found in one go over it."""

    calls: list[tuple[str, str, tuple[str, ...], int]] = field(
        default_factory=list[tuple[str, str, tuple[str, ...], int]]
    )
    """What is called, what it is called on, the texts among the arguments, the line."""
    looked_up: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """The texts by which hooks are looked up."""
    handing_on: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Functions, each with what it calls with a name that it was given; "" is a look-up of a hook."""

    def visit(self, node: ast.AST, function: str = "", given: frozenset[str] = frozenset()) -> None:
        """Note what a node says, and go into it."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
            arguments = (*node.args.posonlyargs, *node.args.args)
            given = frozenset(each.arg for each in arguments if each.arg in NAMED)
        elif isinstance(node, ast.Subscript) and last_name(node.value).endswith("hooks"):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                self.looked_up.append((node.slice.value, node.lineno))
            elif mentions(node.slice, given):
                self.handing_on.setdefault(function, set()).add("")
            elif isinstance(node.slice, ast.Name):
                self.looked_up.append((node.slice.id, node.lineno))
        elif isinstance(node, ast.Call):
            called, on = last_name(node.func), ""
            if isinstance(node.func, ast.Attribute):
                on = last_name(node.func.value)
            values = (each.value for each in node.args if isinstance(each, ast.Constant))
            texts = tuple(value for value in values if isinstance(value, str))
            self.calls.append((called, on, texts, node.lineno))
            if given and any(mentions(each, given) for each in node.args):
                self.handing_on.setdefault(function, set()).add(called)
        for child in ast.iter_child_nodes(node):
            self.visit(child, function, given)


@cache
def read_source(path: Path, changed: int) -> SourceFile:
    """A file's source; read anew when it changed."""
    source = SourceFile()
    source.visit(ast.parse(path.read_bytes()))
    return source


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def mentions(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether an expression uses one of these names."""
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Call) and any(mentions(each, names) for each in node.args)


def callers(sources: Iterable[SourceFile]) -> set[str]:
    """The functions that dispatch the hook which they are given by name, by way of others too."""
    handing_on: dict[str, set[str]] = {}
    for source in sources:
        for function, called in source.handing_on.items():
            handing_on.setdefault(function, set()).update(called)
    found, before = {*CALLING, ""}, 0
    while len(found) > before:
        before = len(found)
        found.update(function for function, called in handing_on.items() if called & found)
    return found


def calls_in(
    source: SourceFile, names: Mapping[str, Any], events: Mapping[str, str], calling: Collection[str]
) -> Iterator[tuple[str, int]]:
    """The hooks that a file calls, each with the line: by name, or by an event that it makes."""
    for name, line in source.looked_up:
        if events.get(name, name) in names:
            yield events.get(name, name), line
    for called, _, texts, line in source.calls:
        if called in events:
            yield events[called], line
        if called in calling:
            yield from ((text, line) for text in texts if text in names)


def around_the_runner(source: SourceFile, shown: str) -> Iterator[CoverageProblem]:
    """Calls that reach a tool or a model from elsewhere than the one place for it."""
    for called, on, _, line in source.calls:
        where = RUNNER.get(called)
        if where is None or not on.endswith(("tool", "model", "real")):
            continue
        if not any(shown.endswith(f"/{place}") for place in where):
            what = "tool" if called == "_invoke" else "model"
            text = f"{on}.{called}() reaches a {what} around the one runner"
            yield CoverageProblem("runner", f"{shown}:{line}", text)


# --- handlers that can never run ---


def unreachable(hooks: Hooks, tools: list[str]) -> Iterator[CoverageProblem]:
    """Handlers that no call can reach."""
    for name in hooks.catalog:
        hook = hooks[name]
        attached = [*hook.run_order(), *(i for key in hook.scope_keys() for i in hook.scoped(key))]
        for impl in attached:
            reason = never_runs(impl, tools)
            if reason:
                yield CoverageProblem(f"{impl.name} on {name}", impl.location, reason)
    yield from unknown_names(hooks)


def never_runs(impl: Implementation, tools: list[str]) -> str | None:
    """Why an implementation is never called, if that is so."""
    spec = impl.spec
    if spec.sync and impl.is_async:
        return (
            "the hook is called synchronously, so that an async function is skipped; write a plain def"
        )
    if impl.when is None or impl.when_arguments.subject is None:
        return None
    values = tools if spec.match == "tool_name" else literals(spec)
    if not values or any(impl.when(value) for value in values):
        return None
    shown = ", ".join(sorted(values)[:8])
    return f"its when= matches no {spec.match} that there is ({shown})"


def literals(spec: Any) -> list[str]:
    """The values that a hook's match field can have, where its type says."""
    from typing import Literal, get_args, get_origin, get_type_hints

    try:
        hint = get_type_hints(spec.event).get(spec.match) if spec.event else None
    except Exception:
        return []
    parts = get_args(hint) if get_origin(hint) is not Literal else [hint]
    return [str(v) for part in parts if get_origin(part) is Literal for v in get_args(part)]


def unknown_names(hooks: Hooks) -> Iterator[CoverageProblem]:
    """Implementations that a plugin marks as optional, of hooks that nobody declares."""
    for plugin_name, plugin in hooks.pm.list_name_plugin():
        for name in dir(plugin) if plugin is not None else ():
            marked: Any = getattr(getattr(plugin, name, None), "hookline_impl", None)
            if not isinstance(marked, dict):
                continue
            hook = str(marked.get("specname") or name)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            if hook not in hooks:
                from hookline.hooks.errors import suggestion
                from hookline.hooks.implementation import callable_location

                place = callable_location(getattr(plugin, name))
                text = f"nobody declares a hook {hook!r}{suggestion(hook, hooks.catalog)}"
                yield CoverageProblem(str(plugin_name), place, text)

"""Checking a plugin or a hook file as it would be checked when it is loaded, without an agent.

The file is imported; nothing of it is attached or called.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from hookline.errors import BadHookEntry, HookFileError, SourceError, Untrusted
from hookline.hooks import HooklineError
from hookline.hooks.implementation import callable_location, is_async
from hookline.hookspecs import Hooks

from .hook_files import HookFile, claimed_tools, implementation, imported, line_of_hooks
from .hookpackage import HookPackage
from .project import HOOKS
from .sources import FileSource, files_below, read_source
from .trust import Trust

IMPL = "hookline_impl"
"""What `@hookimpl` leaves on a function."""


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """Something wrong in a file, and where."""

    place: str
    """`file.py:12`, or only the file if the line is unknown."""
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A file's hooks, and its problems."""

    hooks: list[str]
    problems: list[PluginProblem]


def check(path: Path, hooks: Hooks, trust: Trust) -> Checked:
    """Check every implementation in a file against its hook. The file is imported."""
    names: list[str] = []
    problems: list[PluginProblem] = []
    try:
        file = opened(path, hooks, trust)
        module = imported(file)
    except (HookFileError, SourceError, OSError) as error:
        return Checked(names, [_split(str(error), path)])
    for name, problem in (*_entries(file, module, hooks), *_plugins(module, hooks)):
        names.append(name)
        problems += [problem] if problem else []
    if claimed_tools(file.package.name):
        names.append("register_tools")
    file.package.close()
    if not names:
        text = "exports no hooks = [(event_type, handler), …] and marks nothing with @hookimpl or @tool"
        problems.append(PluginProblem(str(path), text))
    return Checked(names, problems)


def opened(path: Path, hooks: Hooks, trust: Trust) -> HookFile:
    """A file with its siblings, which it may import; a project's hook files must be trusted."""
    path = path.absolute()

    def judge(source: FileSource) -> None:
        if is_of_project(source.path, trust) and not trust.allows(source.path, source.content):
            raise Untrusted(
                f"{source.path} is not trusted, and would be run; `hookline trust` shows it and asks"
            )

    source = read_source(path)
    beside = [read_source(p) for p in files_below(path.parent) if p.suffix == ".py" and p != path]
    package = HookPackage(path.parent, [source, *beside], judge, hooks)
    return HookFile(path.name, source, package)


def is_of_project(path: Path, trust: Trust) -> bool:
    """Whether a file is one of a project's, in its folder for Hookline: such a file must be trusted."""
    real = path.resolve()
    own = real.is_relative_to(trust.path.parent.resolve())
    return f"/{HOOKS.parent.as_posix()}/" in real.as_posix() and not own


def _entries(
    file: HookFile, module: ModuleType, hooks: Hooks
) -> Iterator[tuple[str, PluginProblem | None]]:
    """The entries of `hooks`, each with its problems."""
    if not hasattr(module, "hooks"):
        return
    given: Any = module.hooks
    where = f"{file.source.path}:{line_of_hooks(file.source)}"
    if not isinstance(given, list | tuple):
        kind = type(given).__name__
        yield (
            "hooks",
            PluginProblem(where, f"`hooks` must be a list of (event_type, handler), not {kind}"),
        )
        return
    for number, entry in enumerate(cast("Iterable[Any]", given), 1):
        name = f"entry {number}"
        try:
            impl = implementation(file, entry, hooks, 0)
        except BadHookEntry as error:
            yield name, PluginProblem(where, f"{name} of `hooks`{error}")
        except HookFileError as error:
            yield name, _split(str(error), file.source.path)
        else:
            yield impl.spec.name, _mismatch(impl.spec.name, impl.function, hooks)


def _plugins(module: ModuleType, hooks: Hooks) -> Iterator[tuple[str, PluginProblem | None]]:
    """Marked implementations in the module itself, and in its classes and objects."""
    classes = [c for c in vars(module).values() if inspect.isclass(c)]
    own = [object.__new__(c) for c in classes if c.__module__ == module.__name__]
    for holder in [module, *own]:
        implements = any(_is_marked(holder, name) for name in dir(holder))
        for name in dir(holder) if implements else ():
            if _is_marked(holder, name) or name in hooks.catalog:
                yield from _attribute(holder, name, hooks)


def _attribute(holder: object, name: str, hooks: Hooks) -> Iterator[tuple[str, PluginProblem | None]]:
    function: Any = getattr(holder, name)
    if not inspect.isroutine(function) or getattr(function, "hookline_spec", None) is not None:
        return
    if isinstance(holder, ModuleType) and function.__module__ != holder.__name__:
        return
    marked: dict[str, Any] = getattr(function, IMPL, {})
    shown = str(marked.get("specname") or name)
    alone = Hooks(hooks.catalog)
    try:
        alone.add(SimpleNamespace(**{name: function}), name="plugin")
    except HooklineError as error:
        yield shown, _of(function, str(error))
    else:
        yield shown, _mismatch(shown, function, hooks)


def _is_marked(holder: object, name: str) -> bool:
    static: Any = inspect.getattr_static(holder, name, None)
    return hasattr(getattr(static, "__func__", static), IMPL)


def _mismatch(name: str, function: Any, hooks: Hooks) -> PluginProblem | None:
    """An async implementation of a hook that is called synchronously."""
    spec = hooks.catalog.get(name)
    if spec is None or not spec.sync or not is_async(function):
        return None
    text = f"{name!r} is called synchronously: an async function would be skipped; write a plain def"
    return _of(function, text)


def _of(function: Any, text: str) -> PluginProblem:
    place = callable_location(function)
    text = text.removesuffix(f" ({place})").removeprefix("plugin 'plugin': ")
    return PluginProblem(place, re.sub(r"hookline_hook_files_\d+\.", "", text))


def _split(text: str, path: Path) -> PluginProblem:
    """A message that begins with its place, as place and text."""
    found = re.match(r"(?s)(\S[^:\n]*(?::\d+)?): (.*)", text)
    return PluginProblem(found[1], found[2]) if found else PluginProblem(str(path), text)

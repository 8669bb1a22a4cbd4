"""Hook files: a Python file that exports `hooks = [(event_type, handler), …]`.

Loading reads a folder once, imports each file in the folder's private package, and checks every entry
against the hooks there are. Nothing is attached here; what fails is told with file and line, and the
rest of the folder loads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import BadHookEntry, HookFileError, SourceError, Untrusted
from hookline.hooks.errors import HooklineError, RegistrationError, error_text, suggestion
from hookline.hooks.implementation import Implementation, Options, callable_location
from hookline.hooks.registry import once
from hookline.hookspecs import Hooks

from .sources import FileSource, files_below, read_sources, real_path

if TYPE_CHECKING:
    from .hookpackage import HookPackage, Judge

TOO_EARLY = "register_cli_commands"
"""The command line is built before hook files are read."""


@dataclass(frozen=True, slots=True)
class HookFolder:
    """A place of hook files."""

    label: str
    """Its name in reports: `profile`, `project`."""
    path: Path
    """A folder, or one file, which then stands alone."""
    project: Path | None = None
    """The project that it belongs to: links must stay in it, and its files must be trusted."""
    named: bool = False
    """Whether `resources_discover` named it, so that it should be there."""


@dataclass(eq=False)
class HookFile:
    """A loaded file and the handlers it attaches."""

    name: str
    """Its folder's label and its own name: `project/tidy.py`."""
    source: FileSource
    package: HookPackage
    implementations: list[Implementation] = field(default_factory=list[Implementation])


@dataclass
class Loaded:
    """The result of loading a folder."""

    files: list[HookFile] = field(default_factory=list[HookFile])
    problems: list[tuple[str, HooklineError]] = field(default_factory=list[tuple[str, HooklineError]])
    """Each file that could not be used, by name."""
    inert: list[FileSource] = field(default_factory=list[FileSource])
    """The files that wait for being trusted."""


def get_builtins_hooks_dir() -> Path:
    """The folder of the hook files that come with Hookline."""
    return Path(__file__).parents[1] / "ext" / "voice" / "hooks"


def load_folder(
    folder: HookFolder,
    hooks: Hooks,
    *,
    seq: int,
    judge: Judge,
    skips: Callable[[str], bool] = lambda name: False,
) -> Loaded:
    """Load the hook files of a folder, in the order of their names.

    `judge` raises `Untrusted` for a file that may not run; `seq` is their place in the order of
    handlers. Files named in `skips` are left out.
    """
    loaded = Loaded()
    root = folder.path.parent if folder.path.suffix == ".py" else folder.path
    sources = read_folder(folder, root, loaded)
    chosen = [s for s in sources if is_hook_file(s.path, folder, root)]
    if not chosen:
        return loaded
    from .hookpackage import HookPackage  # not where there are no files

    package = HookPackage(root, sources, judge, hooks)
    left: list[Any] = []
    for source in chosen:
        name = f"{folder.label}/{source.path.name}"
        if skips(name):
            continue
        try:
            judge(source)
        except Untrusted:
            loaded.inert.append(source)
            continue
        file = HookFile(name, source, package)
        tools: list[Any] = left
        try:
            module = imported(file)
            declared = claimed_tools(package.name)
            tools, left = [*left, *declared], []
            if not declared or hasattr(module, "hooks"):  # a file may have tools alone
                file.implementations = [*entries(file, module, hooks, seq)]
            if tools:
                file.implementations.append(providing(tools, hooks, name, seq))
            refuse_exclusive(file)
        except HookFileError as error:
            own = f"{package.module_name(source)}."
            left = [t for t in (*tools, *claimed_tools(package.name)) if not t.place.startswith(own)]
            loaded.problems.append((name, error))
        else:
            loaded.files.append(file)
    if not loaded.files:
        package.close()
    return loaded


def read_folder(folder: HookFolder, root: Path, loaded: Loaded) -> list[FileSource]:
    """Every Python file below a folder, read once; what cannot be read is a problem of its own."""
    try:
        real_path(root, folder.project)
        if not folder.path.exists():
            if folder.named:
                raise SourceError(f"{folder.path} does not exist; resources_discover named it")
            return []
        alone = folder.path != root
        paths = [folder.path] if alone else [p for p in files_below(root) if p.suffix == ".py"]
    except (SourceError, OSError) as error:
        loaded.problems.append((folder.label, HookFileError(str(error))))
        return []
    sources: list[FileSource] = []
    for path, read in read_sources(paths, folder.project):
        if isinstance(read, FileSource):
            sources.append(read)
        else:
            name = f"{folder.label}/{path.relative_to(root).as_posix()}"
            loaded.problems.append((name, HookFileError(str(read))))
    return sources


def is_hook_file(path: Path, folder: HookFolder, root: Path) -> bool:
    """Whether a file is a hook file; `_name.py` and subfolders are for shared code."""
    if folder.path != root:
        return path == folder.path
    return path.parent == root and not path.name.startswith("_")


# --- one file ---------------------------------------------------------------------------------------


def imported(file: HookFile) -> ModuleType:
    """The module of a hook file, or the error with its line."""
    try:
        return file.package.load(file.source)
    except SyntaxError as error:
        place = f"{error.filename}:{error.lineno}" if error.filename else str(file.source.path)
        raise HookFileError(f"{place}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        text = "it ends the program" if isinstance(error, SystemExit) else error_text(error)
        raise HookFileError(f"{place_of(error, file)}: {text}{hint(error, file)}") from error


def place_of(error: BaseException, file: HookFile) -> str:
    """The last line of the folder's own files that an error went through."""
    import traceback

    own = {str(source.path) for source in file.package.modules.values() if source is not None}
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in own]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(file.source.path)


def hint(error: BaseException, file: HookFile) -> str:
    """How to import a sibling file, if that was the intention."""
    if isinstance(error, ModuleNotFoundError) and f"{file.package.name}.{error.name}" in (
        file.package.modules
    ):
        return f"; a file beside it is imported with `from . import {error.name}`"
    return ""


def entries(file: HookFile, module: ModuleType, hooks: Hooks, seq: int) -> Iterable[Implementation]:
    """The checked entries of a file's `hooks`."""
    path = file.source.path
    if not hasattr(module, "hooks"):
        raise HookFileError(
            f"{path}: has no `hooks`; export hooks = [(event_type, handler), …], or name the file "
            f"_{path.name} if others only import it"
        )
    given: Any = module.hooks
    if not isinstance(given, list | tuple):
        raise HookFileError(
            f"{path}:{line_of_hooks(file.source)}: `hooks` must be a list of (event_type, handler), "
            f"not {type(given).__name__}"
        )
    for number, entry in enumerate(cast("Iterable[Any]", given), 1):
        try:
            yield implementation(file, entry, hooks, seq)
        except BadHookEntry as error:
            where = f"{path}:{line_of_hooks(file.source)}: entry {number} of `hooks`"
            raise HookFileError(f"{where}{error}") from error.__cause__


def implementation(file: HookFile, entry: Any, hooks: Hooks, seq: int) -> Implementation:
    """One entry, checked against its hook."""
    if not isinstance(entry, list | tuple) or len(cast("list[Any]", entry)) not in (2, 3):
        raise BadHookEntry(
            f" must be (event_type, handler) or (event_type, handler, options), not {entry!r}"
        )
    event, handler, *rest = cast("list[Any]", entry)
    options = checked_options(rest[0] if rest else {})
    if not callable(handler):
        raise BadHookEntry(f": the handler must be callable, not {handler!r}")
    try:
        hook = hooks[event]
    except HooklineError as error:
        raise BadHookEntry(f": {error}") from error
    if hook.spec.name == TOO_EARLY:
        raise BadHookEntry(f": {TOO_EARLY!r} is asked before hook files are read; a package can do it")
    try:
        impl = Implementation(hook.spec, handler, options, name=file.name, seq=seq)
    except RegistrationError as error:
        place = callable_location(handler)
        text = str(error).removesuffix(f" ({place})").replace(f"{file.package.name}.", "")
        if ":" not in place:
            raise BadHookEntry(f": {text}") from error
        raise HookFileError(f"{place}: {text}") from error
    if options.get("once"):
        impl.take = once(lambda: void(hook.detach(lambda other: other is not impl)))
    return impl


def void(_: object) -> None:
    """Drop a value."""


def checked_options(given: Any) -> Options:
    """The options of an entry."""
    if not isinstance(given, Mapping):
        raise BadHookEntry(f": options must be a mapping such as {{'when': 'shell'}}, not {given!r}")
    options = cast("Mapping[str, Any]", given)
    for option in options:
        if option not in Options.__annotations__:
            near = suggestion(str(option), Options.__annotations__)
            raise BadHookEntry(f": unknown option {option!r}{near}")
    return cast("Options", dict(options))


def claimed_tools(package: str) -> list[Any]:
    """Take the tools that a package's modules registered at import out of the common registry."""
    module = sys.modules.get("hookline.tools.registry")
    if module is None:
        return []
    tools = [tool for tool in module.REGISTRY.declared if tool.module.startswith(f"{package}.")]
    for tool in tools:
        module.REGISTRY.remove(tool.name)
    return tools


def providing(tools: list[Any], hooks: Hooks, name: str, seq: int) -> Implementation:
    """What gives the tools that a file declared with `@tool` when the registry is built."""

    def declared_tools() -> list[Any]:
        return tools

    return Implementation(hooks["register_tools"].spec, declared_tools, {}, name=name, seq=seq)


def refuse_exclusive(file: HookFile) -> None:
    """Refuse two exclusive hooks in one plugin."""
    present = {impl.spec.name for impl in file.implementations}
    for impl in file.implementations:
        for other in present.intersection(impl.spec.excludes):
            raise HookFileError(
                f"{impl.location}: the file has both {other!r} and {impl.spec.name!r}; keep one"
            )


def line_of_hooks(source: FileSource) -> int:
    """The line where `hooks` is assigned last."""
    import ast

    line = 1
    for node in ast.parse(source.content).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "hooks" for target in targets):
            line = node.lineno
    return line

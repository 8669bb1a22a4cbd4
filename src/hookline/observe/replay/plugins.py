"""Plugins that are tried out: a hook file, a plugin's module or a package's folder, in today's app.

One that is loaded already, as a hook file or plugin of the same name, makes room for it.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hookline.errors import ReplayError
from hookline.hooks.errors import error_text
from hookline.plugins.check import IMPL, opened
from hookline.plugins.hook_files import HookFile, claimed_tools, entries, imported, refuse_exclusive
from hookline.plugins.packages import made

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add_plugin(app: Hookline, path: Path) -> list[str]:
    """Attach the contents of a file to an app, after everything else. Returns what it replaced."""
    place = path / "__init__.py" if path.is_dir() else path
    if not place.is_file():
        raise ReplayError(f"--plugin {path}: there is no such file; name a hook file or a plugin")
    file = opened(place, app.hooks, app.trust)
    module = imported(file)
    name = path.stem if path.is_dir() or place.stem != "__init__" else path.parent.name
    told = [*_displace_file(app, place), *_displace_plugin(app, name)]
    plugins, tools = plugins_in(module, app, path), claimed_tools(file.package.name)
    for number, plugin in enumerate(plugins):
        app.hooks.add(plugin, name=name if number == 0 else f"{name}.{number + 1}")
    if hasattr(module, "hooks"):
        file.implementations = [*entries(file, module, app.hooks, app.hooks.next_seq())]
        refuse_exclusive(file)
        with app.hooks.lock:
            for impl in file.implementations:
                app.hooks[impl.spec.name].attach(impl)
    elif not plugins and not tools:
        raise ReplayError(
            f"--plugin {path}: exports no hooks = [(event_type, handler), …] and marks nothing with "
            "@hookimpl or @tool"
        )
    for tool in tools:
        app.tools.add(tool, replace=True)
    return told


def plugins_in(module: ModuleType, app: Hookline, path: Path) -> list[object]:
    """The module where its functions are marked, objects of its classes, or those made of them."""
    values = list(vars(module).values())
    classes = [c for c in values if inspect.isclass(c) and c.__module__ == module.__name__]
    marked = [c for c in classes if _marks(c)]
    found: list[object] = [module] if _marks(module, module.__name__) else []
    for plugin_class in marked:
        ready = [value for value in values if type(value) is plugin_class]
        try:
            found += ready or [made(plugin_class, app)]
        except Exception as error:
            raise ReplayError(
                f"--plugin {path}: {plugin_class.__name__} cannot be made: {error_text(error)}"
            ) from error
    return found


def _marks(holder: Any, module: str | None = None) -> bool:
    for value in (inspect.getattr_static(holder, name, None) for name in dir(holder)):
        function: Any = getattr(value, "__func__", value)
        if hasattr(function, IMPL) and (module is None or function.__module__ == module):
            return True
    return False


def _displace_file(app: Hookline, path: Path) -> list[str]:
    """Take the hook file of this name out."""
    found: list[HookFile] = [f for f in app.hook_files.files if f.source.path.name == path.name]
    for file in found:
        with app.hooks.lock:
            for impl in file.implementations:
                app.hooks[impl.spec.name].exchange([impl], ())
    return [f"{path} stands in for the hook file {file.name}" for file in found]


def _displace_plugin(app: Hookline, name: str) -> list[str]:
    """Take the plugin of this name out."""
    present = [n for n in (name, name.replace("_", "-")) if app.hooks.pm.has_plugin(n)]
    for one in dict.fromkeys(present):
        app.hooks.remove(one)
    return [f"the plugin {one!r} is left out for it" for one in dict.fromkeys(present)]

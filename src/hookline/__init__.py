"""Hookline: a hook-first agent runtime.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

import sys

if sys.argv[:1] == ["-m"] and any(
    word.removeprefix("-m").partition(".")[0] == "hookline" for word in sys.orig_argv
):
    # `python -m hookline`: before anything is imported from the current folder
    from .children.own import settle

    settle()
    del settle

TYPE_CHECKING = False  # as in `typing`, which is too much to load for one constant

if TYPE_CHECKING:
    from .app import Hookline
    from .catalog import Hooks
    from .catalog import Hooks as HookRunner
    from .catalog.envelope import content_of, field_of
    from .catalog.stream import AsyncStreamEvents, StreamEvent
    from .hooks import HooklineError, hookimpl, hookspec
    from .tools import tool

    __version__: str
else:
    _HOMES = {
        "AsyncStreamEvents": "hookline.catalog.stream",
        "Hookline": "hookline.app",
        "HookRunner": "hookline.catalog:Hooks",
        "HooklineError": "hookline.hooks",
        "Hooks": "hookline.catalog",
        "StreamEvent": "hookline.catalog.stream",
        "content_of": "hookline.catalog.envelope",
        "field_of": "hookline.catalog.envelope",
        "hookimpl": "hookline.hooks",
        "hookspec": "hookline.hooks",
        "tool": "hookline.tools",
    }

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            value = version("hookline")
        elif name in _HOMES:
            from importlib import import_module

            module, _, own_name = _HOMES[name].partition(":")
            value = getattr(import_module(module), own_name or name)
        else:
            raise AttributeError(f"module 'hookline' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "AsyncStreamEvents",
    "HookRunner",
    "Hookline",
    "HooklineError",
    "Hooks",
    "StreamEvent",
    "__version__",
    "content_of",
    "field_of",
    "hookimpl",
    "hookspec",
    "tool",
]

"""Hookline: a hook-first agent runtime.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

import sys

if sys.argv[:1] == ["-m"] and any(
    word.removeprefix("-m").partition(".")[0] == "hookline" for word in sys.orig_argv
):
    # `python -m hookline`: before anything is imported from the current folder
    from .system.children.own import settle

    settle()
    del settle

TYPE_CHECKING = False  # as in `typing`, which is too much to load for one constant

if TYPE_CHECKING:
    from .hooks import HooklineError, hookimpl, hookspec
    from .hookspecs import Hooks
    from .hookspecs import Hooks as HookRunner
    from .runtime.agent import Agent
    from .runtime.app import Hookline
    from .runtime.evals import Case
    from .tools import tool
    from .types import AsyncStreamEvents, StreamEvent, content_of, field_of

    __version__: str
else:
    _HOMES = {
        "Agent": "hookline.runtime.agent",
        "AsyncStreamEvents": "hookline.types",
        "Case": "hookline.runtime.evals",
        "Hookline": "hookline.runtime.app",
        "HookRunner": "hookline.hookspecs:Hooks",
        "HooklineError": "hookline.hooks",
        "Hooks": "hookline.hookspecs",
        "StreamEvent": "hookline.types",
        "content_of": "hookline.types",
        "field_of": "hookline.types",
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
    "Agent",
    "AsyncStreamEvents",
    "Case",
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

"""Hookline: a hook-first agent runtime.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

TYPE_CHECKING = False  # as in `typing`, which is too much to load for one constant

if TYPE_CHECKING:
    from .catalog import Hooks
    from .catalog.stream import AsyncStreamEvents, StreamEvent
    from .hooks import HooklineError, hookimpl, hookspec

    __version__: str
else:
    _HOMES = {
        "AsyncStreamEvents": "hookline.catalog.stream",
        "HooklineError": "hookline.hooks",
        "Hooks": "hookline.catalog",
        "StreamEvent": "hookline.catalog.stream",
        "hookimpl": "hookline.hooks",
        "hookspec": "hookline.hooks",
    }

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            value = version("hookline")
        elif name in _HOMES:
            from importlib import import_module

            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'hookline' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "AsyncStreamEvents",
    "HooklineError",
    "Hooks",
    "StreamEvent",
    "__version__",
    "hookimpl",
    "hookspec",
]

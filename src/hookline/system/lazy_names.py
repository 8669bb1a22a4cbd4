"""Names of a package that are imported when they are first used.

if TYPE_CHECKING:
    from .settings import VoiceSettings
    from .voice import Voice
else:
    __getattr__ = lazy_names(__name__, "settings voice")

__all__ = ["Voice", "VoiceSettings"]
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package: looks for a name of `__all__` in its modules, in order."""

    def find(name: str) -> Any:
        own = sys.modules[package]
        for module in modules.split() if name in own.__all__ else ():
            found = vars(import_module(f"{package}.{module}"))
            if name in found:
                setattr(own, name, found[name])
                return found[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find

"""What four other hook systems document, stated one by one and seen to hold here through a real app.

The statements left out are those in `docs/differences.md`, which `tests/test_differences.py` shows.
"""

from itertools import count
from types import SimpleNamespace
from typing import Any

from hookline import hookimpl
from hookline.runtime.app import Hookline
from hookline.runtime.turn import TurnResult

_numbers = count(1)
KEPT: list[Any] = []
"""The events that the hook file of `test_event_bus` kept, each with the scene at that time."""
SCENE = [""]


def add(app: Hookline, name: str = "", **hooks: Any) -> Any:
    """Register a plugin with these hooks."""
    plugin = SimpleNamespace(**{hook: hookimpl(function) for hook, function in hooks.items()})
    app.hooks.add(plugin, name=name or f"plugin-{next(_numbers)}")
    return plugin


async def say(app: Hookline, content: str = "hello", *, via: Any = None, **fields: Any) -> TurnResult:
    """Run the app for one message."""
    async with app.running():
        given = () if via is None else (via,)
        return await app.process({"content": content, **fields}, *given)

"""The plugin: looks for command hooks when an app starts or reloads, and attaches what there is.

Where nobody has any, nothing else of this package is imported and no event gets a handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl
from hookline.system.home import user_home

if TYPE_CHECKING:
    from pathlib import Path

    from hookline.runtime.app import Hookline

    from .attached import Attached

_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")


class CommandHooksPlugin:
    """The hooks of settings files, as handlers of our events."""

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self.attached: Attached | None = None

    @hookimpl
    def resources_discover(self) -> None:
        """Load what there is, at the start and at every reload."""
        self.load()

    @hookimpl
    async def hookline_shutdown(self) -> None:
        """Wait for hooks that run in the background."""
        if self.attached is not None:
            await self.attached.handlers.close()

    def load(self) -> None:
        """Read every place again, and put its hooks in the place of those that were there."""
        if self.attached is None:
            if not self._any():
                return
            from .attached import Attached

            self.attached = Attached(self.app)
        self.attached.load(self._home())

    def _any(self) -> bool:
        app, home = self.app, self._home()
        places = [home / _SETTINGS[0]] if home is not None else []
        if app.project:
            places += [app.workspace / name for name in _SETTINGS]
        return any(path.exists() for path in places) or app.config.get("hooks.commands") is not None

    def _home(self) -> Path | None:
        return self.app.user_home or user_home()

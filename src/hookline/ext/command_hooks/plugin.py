"""The plugin: looks for command hooks when an app starts or reloads, and attaches what there is.

Where nobody has any, nothing else of this package is imported and no event gets a handler.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from .attached import Attached

_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")


class CommandHooksPlugin:
    """The hooks of settings files, as handlers of our events."""

    def __init__(self, app: Hookline, *, home: Path | None = None) -> None:
        self.app = app
        self.home = home
        """The user's home; by default the one of whoever runs this."""
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

    def has(self, name: str) -> bool:
        """Whether the hooks of a file take part."""
        return self.attached is not None and self.attached.has(name)

    def _any(self) -> bool:
        app, home = self.app, self._home()
        places = [home / _SETTINGS[0]] if home is not None else []
        if app.project:
            places += [app.workspace / name for name in _SETTINGS]
        return any(path.exists() for path in places) or app.config.get("hooks.commands") is not None

    def _home(self) -> Path | None:
        try:
            return self.home or Path.home()
        except RuntimeError:  # a user without a home
            return None

"""The plugin `stores`: what the settings and other plugins describe is ready while the app runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


class StoresPlugin:
    """Gathers the stores at the start, and closes them at the end."""

    def __init__(self, app: Hookline) -> None:
        self._app = app

    @hookimpl(tryfirst=True)
    def hookline_startup(self) -> None:
        """Gather the stores, if there are any, before other plugins start."""
        if self._app.hooks["register_stores"].live or self._app.config.section("stores"):
            from . import Stores

            Stores.of(self._app).gather()

    @hookimpl(trylast=True)
    async def hookline_shutdown(self) -> None:
        """Close the stores, after all other plugins stopped."""
        from sys import modules

        if "hookline.ext.stores.registry" in modules:  # else none was opened
            from .registry import Stores

            if stores := self._app.extensions.get(Stores):
                await stores.close()

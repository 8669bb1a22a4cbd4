"""The plugin `interceptors`: attaches what `[agent_hooks]` names when the app starts.

Without this section nothing of the specification is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from .plugin import AgentHooks

PLUGIN = "interceptors"


class InterceptorsPlugin:
    """Loads the interceptors of an app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self.attached: AgentHooks | None = None
        """The plugin that the interceptors are behind; None if none is configured."""

    @hookimpl
    def resources_discover(self) -> None:
        """Attach the interceptors, once. A failure stops the run: the manifest says `required`."""
        app = self._app
        if self.attached is not None or not app.config.section("agent_hooks"):
            return
        app.plugins.forget_failures([PLUGIN])
        try:
            from .host import load

            self.attached = load(app)
        except Exception as error:
            app.plugins.failed(PLUGIN, "loading", error)

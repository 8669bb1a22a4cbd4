"""The plugin `voice`: its hook files hear and speak, and its engines close with the app."""

from __future__ import annotations

from sys import modules
from typing import TYPE_CHECKING

from hookline.hooks import hookimpl
from hookline.plugins.hook_files import get_builtins_hooks_dir

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


class VoicePlugin:
    """Brings the hook files `stt.py` and `tts.py`."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        app.hook_files.shipped.append(get_builtins_hooks_dir())

    @hookimpl(trylast=True)
    async def hookline_shutdown(self) -> None:
        """Close the engines, after all other plugins stopped."""
        if "hookline.ext.voice.voice" in modules:  # else none was made
            from .voice import Voice

            if voice := self._app.extensions.get(Voice):
                await voice.close()

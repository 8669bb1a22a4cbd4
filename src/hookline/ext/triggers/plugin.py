"""The plugin `triggers`: the form of each `[triggers.<name>]`. `Triggers` runs them in a gateway."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hookline.errors import ConfigError
from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


class TriggersPlugin:
    """Makes the sections of the configured triggers known."""

    def __init__(self, app: Hookline) -> None:
        self._app = app

    @hookimpl
    def resources_loaded(self) -> None:
        """Declare the form of each trigger, by its type, so that a review of the settings checks it."""
        with suppress(ConfigError):  # invalid settings raise where they are used
            config = self._app.config
            for name in config.section("triggers"):
                from .settings import KINDS

                kind = str(config.get(f"triggers.{name}.type"))
                if kind in KINDS:
                    config.declare(f"triggers.{name}", f"{KINDS[kind]}.form")

"""`ReplayApp`: an app with today's plugins, whose model, tools, people and tape are the record's.

    app = ReplayApp.like(other, plugins=[Path("new_rule.py")])

Hooks, packs, floor and runner are those of any app. What cannot happen: a tool's function runs, a model
is called, an answer is sent, an approval is kept, the audit log grows, the tape is written.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hookline.channel import Channel
from hookline.hooks import hookimpl
from hookline.models import Models
from hookline.policy.pack import find_pack, load_pack
from hookline.runtime.app import Hookline
from hookline.runtime.confinement import Confinement
from hookline.runtime.pipeline import Pipeline
from hookline.runtime.turn import ActiveTurn
from hookline.tape import TapeStore
from hookline.tools.registry import Registry
from hookline.tools.runner import ToolRunner
from hookline.types import Envelope

from .playback import Playback, RecordedModels, RecordedRegistry
from .plugins import add_plugin

PLUGIN = "replay"


class ReplayApp(Hookline):
    """An app that plays a record."""

    def __init__(self, *, plugins: Sequence[Path] = (), **options: Any) -> None:
        super().__init__(**options)
        self.pipeline = ReplayPipeline(self)
        self.passive = True
        self.playback = Playback()
        self.notes: list[str] = []
        """Notes for the reader of the result."""
        self._plugin_files = plugins

    @classmethod
    def like(
        cls, app: Hookline, *, plugins: Sequence[Path] = (), packs: Sequence[str | Path] = ()
    ) -> ReplayApp:
        """One with another app's home, settings and policy, and plugins and packs on top.

        Its plugins are loaded by `load_hooks`, like any app's.
        """
        return cls(**cls.options_like(app, plugins, packs))

    @classmethod
    def options_like(
        cls, app: Hookline, plugins: Sequence[Path] = (), packs: Sequence[str | Path] = ()
    ) -> dict[str, Any]:
        """The arguments for such an app."""
        return {
            "home": app.home,
            "workspace": app.workspace,
            "profile": app.config.profile,
            "project": app.project,
            "policy": None if packs else app.given_policy,
            "overrides": without_audit(with_packs(app, packs)),
            "plugins": tuple(plugins),
            "without": app.absences.without,
            "on_load_error": app.absences.on_load_error,
        }

    def load_hooks(self, *, packages: bool = True, only_cli: bool = False) -> None:
        """Load today's plugins and hook files, then those under test."""
        super().load_hooks(packages=packages, only_cli=only_cli)
        self.hook_files.load()
        for path in self._plugin_files:
            self.notes += add_plugin(self, path)

    @cached_property
    def models(self) -> Models:
        """The recorded model, whatever it is called."""
        settings = self.config.expanded("providers")
        return RecordedModels(self.playback.model, home=self.home, settings=settings)

    @cached_property
    def tools(self) -> Registry:
        """Today's tools, each returning its recorded results."""
        registry = RecordedRegistry(self.playback.results)
        self.plugins.register_tools(registry)
        return registry

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner; people answer as they did."""
        return ToolRunner(
            self.hooks,
            self.tools,
            judge=Confinement(self).judge,
            approve=self.playback.results.approve,
        )

    @asynccontextmanager
    async def running(self, channel: Channel | None = None) -> AsyncGenerator[Hookline]:
        """The running scope, on a tape in memory."""
        if not self.hooks.pm.has_plugin(PLUGIN):
            self.hooks.add(ReplayPlugin(self.playback), name=PLUGIN)
        async with super().running(channel) as app:
            yield app


@dataclass(frozen=True, slots=True)
class Setup:
    """How the app of a replay is made, again and again, also in another process."""

    options: Mapping[str, Any]
    packages: bool = True

    @classmethod
    def like(
        cls, app: Hookline, *, plugins: Sequence[Path] = (), packs: Sequence[str | Path] = ()
    ) -> Setup:
        """Apps like another, with plugins and packs on top."""
        return cls(ReplayApp.options_like(app, [path.absolute() for path in plugins], packs))

    def __call__(self) -> ReplayApp:
        """A loaded app."""
        app = ReplayApp(**self.options)
        app.load_hooks(packages=self.packages)
        return app


class ReplayPlugin:
    """Gives the app its tape."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    @hookimpl(tryfirst=True)
    def provide_tape_store(self) -> TapeStore:
        """The one in memory."""
        return self._playback.store


class ReplayPipeline(Pipeline):
    """The pipeline without its last step: nothing is sent."""

    async def _dispatch(self, turn: ActiveTurn, outbounds: list[Envelope]) -> None:
        pass


def without_audit(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for this once, without an audit log."""
    return {**overrides, "audit": {**(overrides.get("audit") or {}), "enabled": False}}


def with_packs(app: Hookline, packs: Sequence[str | Path]) -> dict[str, Any]:
    """An app's settings for this once with packs on top; one of a known id takes its place."""
    found: dict[str, Any] = {**(app._overrides or {})}  # pyright: ignore[reportPrivateUsage]
    if packs:
        named = [str(pack) for pack in packs]
        folders = [str(Path(n).resolve()) if Path(n).is_dir() or "/" in n else n for n in named]
        fresh = {load_pack(find_pack(name, app.home, {})).id for name in folders}
        policy = app.config.own("policy")
        kept = [n for n in policy.get("packs", []) if _id_of(app, n) not in fresh]
        found["policy"] = {**(found.get("policy") or {}), "packs": [*kept, *folders]}
    return found


def _id_of(app: Hookline, name: str) -> str:
    registered = {spec.id: spec.manifest_path.parent for spec in app.plugins.pack_specs}
    return load_pack(find_pack(name, app.home, registered)).id

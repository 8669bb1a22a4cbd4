"""The watch trigger: files that are created, modified or deleted make a turn.

Changes that follow each other closely are one event. Of several processes one watches; the others wait
until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from hookline.hookspecs import TriggerEvent
from hookline.system.file_lock import Lock
from hookline.text.patterns import matches_glob

from .errors import TriggerError
from .settings import TemplateText, TriggerSettings
from .trigger import RunningTrigger

Kind: TypeAlias = Literal["created", "modified", "deleted"]

NAMES: dict[str, Kind] = {"added": "created", "modified": "modified", "deleted": "deleted"}
"""How `watchfiles` calls the changes."""
LONGEST = 20
"""How many times the debounce a stream of changes is waited for, at most."""
ASK_AGAIN = 2.0
"""Seconds after which a process asks again whether it may watch."""


class WatchSettings(TriggerSettings):
    """`type = "watch"`."""

    message: TemplateText = "These files changed: {paths}"
    paths: list[str] = Field(min_length=1)
    """Files and folders, as seen from the workspace."""
    globs: list[str] = Field(default=["*"], min_length=1)
    """Which files count: by name, or by path below the folder."""
    ignore: list[str] = Field(default_factory=list)
    """Which of them do not."""
    changes: list[Kind] = Field(default=["created", "modified", "deleted"], min_length=1)
    debounce: float = Field(default=0.5, ge=0.05, le=60)
    """Seconds of quiet that end a group of changes."""
    recursive: bool = True


class WatchTrigger(RunningTrigger[WatchSettings]):
    """Watches files, and makes a turn of each group of changes."""

    form: ClassVar[type[Any]] = WatchSettings
    watching: asyncio.Event
    """Set while this process watches."""

    async def set_up(self) -> None:
        """Refuse a path that does not exist."""
        workspace = self.context.app.workspace
        self.roots = [(workspace / Path(path).expanduser()).resolve() for path in self.settings.paths]
        for given, root in zip(self.settings.paths, self.roots, strict=True):
            if not root.exists():
                raise TriggerError(
                    f"[triggers.{self.name}] paths: {given} does not exist (looked for at {root})"
                )
        self.watching = asyncio.Event()

    def payload_by_hand(self) -> dict[str, Any]:
        """As if nothing had changed."""
        return {"changes": [], "paths": "", "count": 0}

    async def run(self) -> None:
        """Watch, as soon as no other process does."""
        lock = Lock(self.context.app.home / "triggers" / f"watch-{self.name}.lock")
        while not lock.acquire():
            await asyncio.sleep(ASK_AGAIN)
        try:
            await self._watch()
        finally:
            self.watching.clear()
            lock.release()

    async def _watch(self) -> None:
        from watchfiles import DefaultFilter, awatch  # pyright: ignore[reportUnknownVariableType]

        usual = DefaultFilter()
        step = int(self.settings.debounce * 1000)
        async with aclosing(
            awatch(
                *self.roots,
                watch_filter=lambda change, path: usual(change, path) and self.counts(Path(path)),
                debounce=step * LONGEST,
                step=step,
                recursive=self.settings.recursive,
                # The first look comes back at once: from then on nothing is missed.
                rust_timeout=1000,
                yield_on_timeout=True,
            )
        ) as groups:
            async for group in groups:
                self.watching.set()
                found = settled((NAMES[change.name], path) for change, path in group)
                await self._came(
                    {p: kind for p, kind in found.items() if kind in self.settings.changes}
                )

    def counts(self, path: Path) -> bool:
        """Whether a file is watched."""
        below = [str(path.relative_to(r)) for r in self.roots if path.is_relative_to(r) and path != r]
        names = [path.name, *below]

        def fits(patterns: Iterable[str]) -> bool:
            return any(matches_glob(name, pattern) for name in names for pattern in patterns)

        return fits(self.settings.globs) and not fits(self.settings.ignore)

    async def _came(self, found: dict[str, Kind]) -> None:
        if not found:
            return
        changes = [{"path": path, "change": kind} for path, kind in sorted(found.items())]
        payload = {
            "changes": changes,
            "paths": ", ".join(self._shown(path) for path in sorted(found)),
            "count": len(changes),
        }
        await self.context.emit(TriggerEvent(self.name, payload, time=self.context.clock.now()))

    def _shown(self, path: str) -> str:
        """A path relative to the workspace, if it lies inside."""
        workspace = self.context.app.workspace
        return str(Path(path).relative_to(workspace)) if Path(path).is_relative_to(workspace) else path


def settled(changes: Iterable[tuple[Kind, str]]) -> dict[str, Kind]:
    """One change per file, however it was written."""
    kinds: dict[str, set[Kind]] = {}
    for kind, path in changes:
        kinds.setdefault(path, set()).add(kind)
    found: dict[str, Kind] = {}
    for path, seen in kinds.items():
        is_there = Path(path).exists()
        if not is_there and "created" in seen:
            continue  # it came and went
        if not is_there:
            found[path] = "deleted"
        else:  # an editor that puts a new file in the place of the old one has modified it
            found[path] = (
                "created" if seen <= {"created", "modified"} and "created" in seen else "modified"
            )
    return found

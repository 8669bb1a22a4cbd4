"""Footprints: what was attached while something ran, so that all of it can be taken away again."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .implementation import Implementation
    from .registry import Hooks


class Footprint:
    """What a block of code leaves on hooks: plugins, handlers, observers, declared hooks.

    with Footprint(hooks) as footprint:
        set_up(hooks)
    footprint.undo()
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._span = (0, 0)
        self._observers: tuple[object, ...] = ()
        self._declared: list[str] = []
        self._plugins: set[str] = set()

    def __enter__(self) -> Footprint:
        hooks = self._hooks
        self._span = (hooks.next_seq(), 0)  # one counter orders everything that is attached
        self._observers = (*hooks.subscribers, *hooks.sinks, *hooks.watches)
        self._declared = list(hooks.catalog)
        self._plugins = self._names()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        hooks = self._hooks
        self._span = (self._span[0], hooks.next_seq())
        before = set(map(id, self._observers))
        after = (*hooks.subscribers, *hooks.sinks, *hooks.watches)
        self._observers = tuple(each for each in after if id(each) not in before)
        known = set(self._declared)
        self._declared = [name for name in hooks.catalog if name not in known]
        self._plugins = self._names() - self._plugins

    def _names(self) -> set[str]:
        return {name for name, plugin in self._hooks.pm.list_name_plugin() if plugin is not None}

    def undo(self) -> None:
        """Take away what came and is still there."""
        hooks = self._hooks
        with hooks.lock:
            for name in self._plugins & self._names():
                hooks.remove(name)
            hooks.undeclare(self._declared)
            for hook in map(hooks.__getitem__, hooks.catalog):
                for key in (None, *hook.scope_keys()):
                    hook.detach(self._is_older_or_newer, key)
            self._stop_observing()

    def _is_older_or_newer(self, impl: Implementation) -> bool:
        start, end = self._span
        return impl.plugin is not None or not start < impl.seq < end

    def _stop_observing(self) -> None:
        hooks, gone = self._hooks, set(map(id, self._observers))
        if not gone:
            return
        hooks.subscribers = tuple(each for each in hooks.subscribers if id(each) not in gone)
        hooks.sinks = tuple(each for each in hooks.sinks if id(each) not in gone)
        hooks.watches = tuple(each for each in hooks.watches if id(each) not in gone)
        for name in hooks.catalog:
            hooks[name].changed()
